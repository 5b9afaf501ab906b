// Beast of Boost 1.81 uses std::aligned_storage, which C++23 deprecates.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "pirn/net/expert/asio_stream.hpp"

#include <gtest/gtest.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http.hpp>

#include "net/support.hpp"

namespace {

using namespace test;
namespace http = boost::beast::http;
using boost::system::error_code;
using pirn::asio_stream;

static_assert(boost::beast::is_sync_stream<asio_stream>::value);

TEST(asio_stream, beast_reads_and_writes_http_on_it) {
  both_ways([] {
    connected c = connect_pair();
    asio_stream client(c.client);
    asio_stream server(c.server);
    http::request<http::string_body> asked{http::verb::post, "/path", 11, std::string(1000, 'b')};
    asked.set(http::field::host, "here");
    asked.prepare_payload();
    http::write(client, asked);
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> got;
    http::read(server, buffer, got);
    EXPECT_EQ(got.target(), "/path");
    EXPECT_EQ(got.body(), asked.body());
    http::response<http::string_body> answer{http::status::ok, 11};
    answer.body() = "fine";
    answer.chunked(true);
    http::write(server, answer);
    boost::beast::flat_buffer other;
    http::response<http::string_body> heard;
    http::read(client, other, heard);
    EXPECT_EQ(heard.body(), "fine");
  });
}

TEST(asio_stream, serves_asios_algorithms_and_scattered_buffers) {
  both_ways([] {
    connected c = connect_pair();
    asio_stream client(c.client);
    asio_stream server(c.server);
    const std::array<boost::asio::const_buffer, 3> parts{boost::asio::buffer("ab", 2), boost::asio::const_buffer(),
                                                         boost::asio::buffer("cd", 2)};
    EXPECT_EQ(boost::asio::write(client, parts), 4u);
    char first[1];
    char rest[3];
    const std::array<boost::asio::mutable_buffer, 2> into{boost::asio::buffer(first), boost::asio::buffer(rest)};
    EXPECT_EQ(boost::asio::read(server, into), 4u);
    EXPECT_EQ(first[0], 'a');
    EXPECT_EQ(std::string_view(rest, 3), "bcd");
    EXPECT_EQ(server.read_some(boost::asio::mutable_buffer()), 0u);
    EXPECT_EQ(server.write_some(boost::asio::const_buffer()), 0u);
  });
}

TEST(asio_stream, translates_errors) {
  both_ways([] {
    connected c = connect_pair();
    asio_stream client(c.client);
    error_code error;
    char text[4];
    client.expires_at(in(5ms));
    EXPECT_EQ(client.read_some(boost::asio::buffer(text), error), 0u);
    EXPECT_EQ(error, boost::asio::error::timed_out);
    client.expires_at(std::chrono::steady_clock::time_point::max());
    c.server.close();
    EXPECT_EQ(client.read_some(boost::asio::buffer(text), error), 0u);
    EXPECT_EQ(error, boost::asio::error::eof);
    EXPECT_THROW(client.read_some(boost::asio::buffer(text)), boost::system::system_error);
    client.next_layer().close();
    client.read_some(boost::asio::buffer(text), error);
    EXPECT_EQ(error, boost::asio::error::bad_descriptor);
    EXPECT_THROW(client.write_some(boost::asio::buffer(text)), boost::system::system_error);
  });
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    stop_while_blocked([&] {
      asio_stream client(c.client);
      error_code error;
      char text[4];
      client.read_some(boost::asio::buffer(text), error);
      EXPECT_EQ(error, boost::asio::error::operation_aborted);
    });
  });
}

}  // namespace
