// Streams of any type: the concept, any_stream, copies between streams, and the error of a limit.

#include "pirn/io/any_stream.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/io/buffered_writer.hpp"
#include "pirn/io/copy.hpp"
#include "pirn/io/limit_exceeded.hpp"
#include "pirn/io/memory_stream.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::any_stream;
using pirn::const_buffer;
using pirn::copy_result;
using pirn::io_error;
using pirn::memory_stream;
using pirn::result;
using pirn::shutdown_half;
using pirn::time_limit;

/// A stream of a user: it holds an any_stream, can be made from one, and forwards. It has no room and lends nothing.
class forwarding {
 public:
  forwarding(any_stream under) : under_(std::move(under)) {}  // NOLINT(google-explicit-constructor): a trap on purpose

  result<std::size_t> read(void* into, std::size_t size, time_limit deadline) {
    return under_.read(into, size, deadline);
  }
  result<std::size_t> write_some(std::span<const const_buffer> parts, time_limit deadline) {
    return under_.write_some(parts, deadline);
  }
  result<> shutdown(shutdown_half half) { return under_.shutdown(half); }
  void close() { under_.close(); }

 private:
  any_stream under_;
};

/// As `forwarding`, but it lends whatever the stream below lends.
class lending : public forwarding {
 public:
  lending(any_stream under, any_stream lender) : forwarding(std::move(under)), lender_(std::move(lender)) {}
  result<pirn::read_view> lend(time_limit deadline) { return lender_.lend(deadline); }

 private:
  any_stream lender_;
};

/// A stream that converts to any_stream, and one whose moves throw.
struct convertible : forwarding {
  using forwarding::forwarding;
  operator any_stream() && { throw std::logic_error("any_stream should own the stream itself"); }
};
struct throwing : forwarding {
  using forwarding::forwarding;
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): so that it may throw
  throwing(throwing&& other) : forwarding(std::move(other)) {
    if (throws) {
      throw std::runtime_error("cannot be moved");
    }
  }
  static inline bool throws = false;
};
struct pinned : forwarding {
  using forwarding::forwarding;
  pinned(pinned&&) = delete;
};
struct unfinished {
  result<std::size_t> read(void*, std::size_t, time_limit);
  void close();
};

static_assert(pirn::stream<any_stream> && pirn::lending_stream<any_stream>);
static_assert(pirn::stream<forwarding> && pirn::stream<lending> && pirn::stream<convertible> && pirn::stream<pinned>);
static_assert(std::is_constructible_v<any_stream, forwarding> && std::is_move_constructible_v<forwarding>);
static_assert(std::is_convertible_v<throwing, any_stream> && std::is_convertible_v<convertible, any_stream>);
static_assert(!pirn::stream<unfinished> && !std::is_constructible_v<any_stream, unfinished>);
static_assert(!std::is_constructible_v<any_stream, forwarding&> && !std::is_constructible_v<any_stream, any_stream&>);
static_assert(!std::is_copy_constructible_v<any_stream> && std::is_nothrow_move_constructible_v<any_stream>);
static_assert(std::is_constructible_v<any_stream, std::reference_wrapper<pinned>>);
static_assert(pirn::readable_stream<unfinished> && !pirn::writable_stream<unfinished>);

std::string read_some(auto& from, std::size_t size = 100) {
  std::string text(size, '?');
  text.resize(from.read(text.data(), size, time_limit(10s)).value());
  return text;
}

// ---- any_stream ----------------------------------------------------------------------------------------------------

TEST(any_stream, has_the_calls_of_the_stream_that_it_owns) {
  auto [a, b] = memory_stream::pair(4);
  any_stream any = std::move(a);
  EXPECT_TRUE(any);
  ASSERT_TRUE(any.write("abc"));
  const const_buffer parts[] = {{"d", 1}, {"e", 1}};
  EXPECT_EQ(any.write_some(parts), 1u);
  EXPECT_EQ(any.write_some("e", 1, 1ms).error(), io_error::timed_out);
  EXPECT_EQ(any.write("e", time_limit(1ms)).error(), io_error::timed_out);
  EXPECT_EQ(read_some(b), "abcd");
  ASSERT_TRUE(b.write("1234"));
  char text[2];
  ASSERT_TRUE(any.read_exactly(text, 2));
  EXPECT_EQ(std::string(text, 2), "12");
  EXPECT_EQ(any.lend()->text(), "34");
  EXPECT_EQ(read_some(any), "34");
  ASSERT_TRUE(any.shutdown(shutdown_half::write));
  EXPECT_EQ(read_some(b), "");
  any.close();
  EXPECT_TRUE(any);
  EXPECT_EQ(any.read(text, 1).error(), io_error::closed);
  EXPECT_EQ(b.write("x").error(), std::errc::broken_pipe);
}

TEST(any_stream, an_empty_one_is_closed) {
  auto [a, b] = memory_stream::pair();
  any_stream full(std::move(a));
  any_stream moved(std::move(full));
  for (any_stream empty; any_stream* each : {&full, &empty}) {  // NOLINT(bugprone-use-after-move)
    char byte = 0;
    EXPECT_FALSE(*each);
    EXPECT_EQ(each->read(&byte, 1).error(), io_error::closed);
    EXPECT_EQ(each->read(&byte, 0).error(), io_error::closed);
    EXPECT_EQ(each->write("x").error(), io_error::closed);
    EXPECT_EQ(each->write_some("", 0).error(), io_error::closed);
    EXPECT_EQ(each->shutdown(shutdown_half::both).error(), io_error::closed);
    EXPECT_EQ(each->lend().error(), io_error::closed);
    each->close();
  }
  full = std::move(moved);
  any_stream& same = full;
  full = std::move(same);
  ASSERT_TRUE(full.write("x"));
  EXPECT_EQ(read_some(b), "x");
  full = {};
  EXPECT_EQ(read_some(b), "");
}

TEST(any_stream, refers_to_a_stream) {
  auto [a, b] = memory_stream::pair();
  {
    any_stream lent(std::ref(a));
    ASSERT_TRUE(lent.write("x"));
    any_stream moved(std::move(lent));
    ASSERT_TRUE(moved.write("y"));
  }
  ASSERT_TRUE(a.write("z"));
  EXPECT_EQ(read_some(b), "xyz");
  any_stream(std::ref(a)).close();
  EXPECT_FALSE(a.is_open());
}

TEST(any_stream, holds_streams_that_hold_it) {
  auto [a, b] = memory_stream::pair();
  any_stream any(convertible(forwarding(any_stream(std::move(a)))));
  std::vector<any_stream> several;
  several.push_back(std::move(any));
  several.emplace_back(forwarding(any_stream(std::ref(several[0]))));
  std::optional<any_stream> one = std::move(several[0]);
  ASSERT_TRUE(one->write("x"));
  EXPECT_EQ(read_some(b), "x");
  EXPECT_EQ(one->lend().error(), std::errc::operation_not_supported);
}

TEST(any_stream, an_exception_of_the_streams_move_leaves_nothing) {
  auto [a, b] = memory_stream::pair();
  throwing from{any_stream(std::move(a))};
  throwing::throws = true;
  EXPECT_THROW(any_stream{std::move(from)}, std::runtime_error);
  throwing::throws = false;
  EXPECT_EQ(read_some(b), "");  // the stream was destroyed with what the move had made
}

// ---- copy ----------------------------------------------------------------------------------------------------------

/// Copies `text` through `from(end)`, a stream on a connection, to another connection.
template <class Wrap>
void copies(const std::string& text, const Wrap& wrap) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([&] {
    auto [a, b] = memory_stream::pair(5000);
    auto [c, d] = memory_stream::pair(3000);
    std::string got(text.size(), '?');
    pirn::fiber writes = pirn::spawn([&] {
      EXPECT_TRUE(a.write(text));
      EXPECT_TRUE(a.shutdown(shutdown_half::write));
    });
    pirn::fiber reads = pirn::spawn([&] { EXPECT_TRUE(d.read_exactly(got.data(), got.size())); }, {.worker = 1});
    auto from = wrap(b);
    const copy_result done = copy(from, c);
    EXPECT_TRUE(done) << done.error.message();
    EXPECT_EQ(done.read, text.size());
    EXPECT_EQ(done.written, text.size());
    writes.join();
    reads.join();
    EXPECT_TRUE(got == text);
  });
}

TEST(any_stream, ends_one_direction_alone) {
  auto [a, b] = memory_stream::pair();
  any_stream owner(std::move(a));
  EXPECT_TRUE(owner.shutdown(shutdown_half::write));
  EXPECT_EQ(read_some(b), "");
  ASSERT_TRUE(b.write("answer"));
  EXPECT_EQ(read_some(owner), "answer");
}

TEST(copy, carries_all_until_the_end) {
  std::string text(100'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * 31 + i / 256);
  }
  copies(text, [](memory_stream& s) { return std::move(s); });
  copies(text, [](memory_stream& s) { return any_stream(std::move(s)); });
  copies(text, [](memory_stream& s) { return forwarding(std::move(s)); });
  copies(text, [](memory_stream& s) { return any_stream(forwarding(std::move(s))); });
  copies(text, [](memory_stream& s) { return lending(any_stream(), any_stream(std::move(s))); });
  copies(text, [](memory_stream& s) { return lending(any_stream(std::ref(s)), forwarding(std::ref(s))); });
  copies(text, [](memory_stream& s) { return pirn::buffered_reader(std::move(s), 64); });
  copies(text, [](memory_stream& s) { return pirn::buffered_reader(forwarding(std::move(s))); });
  copies("", [](memory_stream& s) { return std::move(s); });
}

TEST(copy, takes_what_a_reader_has_buffered_and_what_a_writer_has_not_flushed) {
  auto [a, b] = memory_stream::pair();
  auto [c, d] = memory_stream::pair();
  ASSERT_TRUE(a.write("head\nbody"));
  a.close();
  pirn::buffered_reader reader(b);
  pirn::buffered_writer writer(c);
  EXPECT_EQ(reader.read_line(10), "head");
  ASSERT_TRUE(writer.write("<"));
  EXPECT_EQ(copy(reader, writer).written, 4u);
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(read_some(d), "<body");
}

TEST(copy, says_how_far_it_came) {
  for (const bool lends : {true, false}) {
    auto [a, b] = memory_stream::pair();
    auto [c, d] = memory_stream::pair(4);
    forwarding plain(std::ref(b));
    any_stream from = lends ? any_stream(std::ref(b)) : any_stream(std::ref(plain));
    ASSERT_TRUE(a.write("123456"));
    const copy_result no_room = copy(from, c, 5ms);
    EXPECT_FALSE(no_room);
    EXPECT_TRUE(no_room.target_failed);
    EXPECT_EQ(no_room.error, io_error::timed_out);
    EXPECT_EQ(no_room.read, lends ? 4u : 6u);
    EXPECT_EQ(no_room.written, 4u);
    EXPECT_EQ(a.unacknowledged(), lends ? 2u : 0u);  // what is lent is not lost
    EXPECT_EQ(read_some(d), "1234");
    ASSERT_TRUE(a.write("78"));
    const copy_result no_data = copy(from, c, 5ms);
    EXPECT_EQ(no_data.error, io_error::timed_out);
    EXPECT_FALSE(no_data.target_failed);
    EXPECT_EQ(no_data.written, lends ? 4u : 2u);
    EXPECT_EQ(read_some(d), lends ? "5678" : "78");
    d.close();
    ASSERT_TRUE(a.write("9"));
    const copy_result no_reader = copy(from, c);
    EXPECT_EQ(no_reader.error, std::errc::broken_pipe);
    EXPECT_TRUE(no_reader.target_failed);
  }
  memory_stream closed;
  any_stream empty;
  EXPECT_EQ(copy(closed, empty).error, io_error::closed);
  EXPECT_EQ(copy(empty, closed).error, io_error::closed);
}

TEST(copy, is_selected_where_std_copy_is_found_too) {
  auto [a, b] = memory_stream::pair();
  auto [c, d] = memory_stream::pair();
  EXPECT_EQ(copy(b, c, 0ms).error, io_error::timed_out);
  EXPECT_EQ(copy(b, c, std::chrono::steady_clock::now()).error, io_error::timed_out);
  EXPECT_EQ(copy(b, c, std::chrono::system_clock::now()).error, io_error::timed_out);
  EXPECT_EQ(pirn::copy(b, c, pirn::time_limit()).error, io_error::timed_out);
}

TEST(copy, a_stop_ends_it) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    auto [a, b] = memory_stream::pair();
    pirn::fiber copies = pirn::spawn([&] { EXPECT_EQ(copy(b, b).error, io_error::stopped); });
    ASSERT_TRUE(a.write("echo"));
    EXPECT_EQ(read_some(a), "echo");
    copies.request_stop();
    copies.join();
  });
}

TEST(write_all, says_how_much_was_written) {
  auto [a, b] = memory_stream::pair(5);
  const const_buffer parts[] = {{"ab", 2}, {nullptr, 0}, {"cdefg", 5}};
  const copy_result some = write_all(a, parts, 1ms);
  EXPECT_TRUE(some.target_failed);
  EXPECT_EQ(some.error, io_error::timed_out);
  EXPECT_EQ(some.written, 5u);
  EXPECT_EQ(some.read, 5u);
  EXPECT_EQ(read_some(b), "abcde");
  const copy_result all = write_all(a, "fg");
  EXPECT_TRUE(all);
  EXPECT_EQ(all.written, 2u);
}

TEST(write_all, a_stream_that_takes_nothing_does_not_hang_it) {
  struct {
    result<std::size_t> write_some(std::span<const const_buffer>, time_limit) { return 0; }
  } broken;
  EXPECT_EQ(pirn::write_all(broken, "x").error, std::errc::io_error);
  pirn::buffered_writer writer(broken);
  ASSERT_TRUE(writer.write("x"));
  EXPECT_EQ(writer.flush().error(), std::errc::io_error);
}

// ---- limit_exceeded ------------------------------------------------------------------------------------------------

TEST(limit_exceeded, is_an_error_that_has_the_limit) {
  const std::size_t most = (std::size_t{1} << 37) - 1;
  const std::size_t limits[] = {0,
                                1,
                                4096,
                                INT_MAX - 1,
                                INT_MAX,
                                std::size_t{INT_MAX} + 1,
                                std::size_t{INT_MAX} + 10,
                                std::size_t{UINT_MAX} - 1,
                                UINT_MAX,
                                std::size_t{5'000'000'001},
                                most};
  for (const std::size_t limit : limits) {
    const std::error_code error = pirn::limit_exceeded(limit);
    EXPECT_TRUE(error) << limit;
    EXPECT_NE(error.value(), 0) << limit;
    EXPECT_EQ(error, std::errc::message_size);
    EXPECT_EQ(pirn::exceeded_limit(error), limit);
    EXPECT_EQ(error.message(), "longer than the limit of " + std::to_string(limit) + " bytes");
  }
  EXPECT_EQ(pirn::exceeded_limit(pirn::limit_exceeded(SIZE_MAX)), most);
  EXPECT_NE(pirn::limit_exceeded(1), pirn::limit_exceeded(2));
  EXPECT_EQ(pirn::exceeded_limit(make_error_code(io_error::closed)), std::nullopt);
  EXPECT_EQ(pirn::exceeded_limit({}), std::nullopt);
}

}  // namespace
