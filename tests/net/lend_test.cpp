// `lend` of sockets: order and ends, large transfers, more connections than buffers, readers elsewhere, errors, and
// what is refused after it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io/pattern.hpp"
#include "net/support.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/io/copy.hpp"
#include "pirn/io/expert/operation.hpp"
#include "pirn/net/tcp_stream.hpp"
#include "pirn/net/unix_stream.hpp"

namespace {

using namespace test;
using pirn::fiber;
using pirn::io_error;
using pirn::operation;
using pirn::read_view;
using pirn::shutdown_half;
using pirn::tcp_stream;
using pirn::unix_stream;

static_assert(pirn::lending_stream<tcp_stream> && pirn::lending_stream<unix_stream>);

/// Takes `size` bytes, however they come.
template <class Stream>
std::string take(Stream& from, std::size_t size) {
  std::string all;
  while (all.size() < size) {
    auto view = from.lend(in(long_enough));
    if (!view || view->empty()) {
      ADD_FAILURE() << (view ? "an early end" : view.error().message());
      break;
    }
    const std::size_t count = std::min(view->bytes().size(), size - all.size());
    all += view->text().substr(0, count);
    view->consume(count);
  }
  return all;
}

/// Makes the engine of the calling fiber receive for the stream.
void arm(tcp_stream& stream) { EXPECT_EQ(stream.lend(in(1ms)).error(), io_error::timed_out); }

TEST(lend, shows_the_bytes_and_the_end) {
  both_ways([] {
    connected c = connect_pair();
    ASSERT_TRUE(c.client.write("head:body"));
    {
      read_view view = c.server.lend().value();
      EXPECT_EQ(view.text(), "head:body");
      EXPECT_EQ(c.server.lend().error(), std::errc::device_or_resource_busy);
      view.consume(5);
    }
    EXPECT_EQ(c.server.lend()->text(), "body");
    char text[16];
    EXPECT_EQ(c.server.read(text, 2), 2u);
    EXPECT_TRUE(c.server.wait_readable());
    EXPECT_EQ(c.server.read(text, sizeof text), 2u);
    EXPECT_EQ(std::string_view(text, 2), "dy");
    EXPECT_EQ(c.server.wait_readable(in(1ms)).error(), io_error::timed_out);
    ASSERT_TRUE(c.client.shutdown(shutdown_half::write));
    EXPECT_TRUE(c.server.wait_readable());
    EXPECT_TRUE(c.server.lend()->empty());
    EXPECT_TRUE(c.server.lend()->empty());
    EXPECT_EQ(c.server.read(text, sizeof text), 0u);
    ASSERT_TRUE(c.server.write("still"));
    EXPECT_EQ(take(c.client, 5), "still");
  });
}

TEST(lend, views_of_two_streams_have_memory_of_their_own) {
  both_ways([] {
    connected one = connect_pair(), two = connect_pair();
    for (int i = 0; i < 3; ++i) {  // also in buffers that were given back
      ASSERT_TRUE(one.client.write("one"));
      ASSERT_TRUE(two.client.write("two"));
      read_view first = one.server.lend().value();
      read_view second = two.server.lend().value();
      EXPECT_EQ(first.text(), "one");
      EXPECT_EQ(second.text(), "two");
      first.consume(3);
      second.consume(3);
    }
  });
}

TEST(lend, of_unix_streams) {
  both_ways([] {
    auto [a, b] = unix_stream::pair().value();
    ASSERT_TRUE(a.write("abc"));
    EXPECT_EQ(take(b, 3), "abc");
    pirn::descriptor none[1];
    char byte;
    EXPECT_EQ(b.receive_descriptors(none, &byte, 1).error(), std::errc::operation_not_supported);
    a.close();
    EXPECT_TRUE(b.lend()->empty());
  });
}

TEST(lend, ends_with_a_deadline_a_stop_a_close_or_a_reset) {
  pirn::runtime({.workers = 2}).run([] {
    connected c = connect_pair();
    EXPECT_EQ(c.server.lend(in(2ms)).error(), io_error::timed_out);
    stop_while_blocked([&] { EXPECT_EQ(c.server.lend().error(), io_error::stopped); });
    fiber closed = pirn::spawn([&] { EXPECT_EQ(c.server.lend().error(), io_error::closed); }, {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    c.server.close();
    closed.join();
    EXPECT_EQ(c.server.lend().error(), io_error::closed);

    connected other = connect_pair();
    fiber reset =
        pirn::spawn([&] { EXPECT_EQ(other.client.lend().error(), std::errc::connection_reset); }, {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    other.server.close_with_reset();
    reset.join();
  });
}

TEST(lend, carries_much_in_order) {
  pirn::runtime({.workers = 2}).run([] {
    const std::string much = pattern(large_transfer);
    connected in_here = connect_pair(), out = connect_pair();
    fiber writes = pirn::spawn([&] {
      EXPECT_TRUE(in_here.client.write(much));
      EXPECT_TRUE(in_here.client.shutdown(shutdown_half::write));
    });
    fiber copies = pirn::spawn(
        [&] {
          EXPECT_EQ(pirn::copy(in_here.server, out.client).written, much.size());
          EXPECT_TRUE(out.client.shutdown(shutdown_half::write));
        },
        {.worker = 1});
    std::string got(much.size(), '\0');
    EXPECT_TRUE(out.server.read_exactly(got.data(), got.size()));
    EXPECT_TRUE(got == much);
    writes.join();
    copies.join();
  });
}

TEST(lend, bursts_and_pauses_keep_their_order) {
  pirn::runtime({.workers = 2}).run([] {
    const std::string much = pattern(300'000);
    connected c = connect_pair();
    fiber writes = pirn::spawn(
        [&] {
          std::size_t sent = 0;
          for (std::size_t size = 1; sent < much.size(); size = size * 7 % 40'009) {
            const std::size_t part = std::min(size, much.size() - sent);
            EXPECT_TRUE(c.client.write(much.data() + sent, part));
            sent += part;
            if (size % 4 == 0) {
              EXPECT_TRUE(pirn::this_fiber::sleep_for(200us));
            }
          }
        },
        {.worker = 1});
    EXPECT_TRUE(take(c.server, much.size()) == much);
    writes.join();
  });
}

TEST(lend, more_connections_than_buffers) {
  pirn::runtime({.workers = 1}).run([] {
    constexpr int connections = 1100;
    ::rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    std::vector<std::pair<unix_stream, unix_stream>> all;
    for (int i = 0; i < connections; ++i) {
      auto made = unix_stream::pair();
      if (!made) {
        GTEST_SKIP() << "the limit of descriptors is too low";
      }
      all.push_back(std::move(*made));
    }
    pirn::scope readers;
    std::vector<read_view> views(connections);
    for (int i = 0; i < connections; ++i) {
      readers.spawn([&, i] { views[i] = all[i].second.lend(in(long_enough)).value(); });
    }
    ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));
    for (int i = 0; i < connections; ++i) {
      ASSERT_TRUE(all[i].first.write(std::to_string(i)));
    }
    readers.join();
    for (int i = 0; i < connections; ++i) {
      EXPECT_EQ(views[i].text(), std::to_string(i));
      views[i].release();
      ASSERT_TRUE(all[i].first.write("again"));
      EXPECT_EQ(take(all[i].second, std::to_string(i).size() + 5), std::to_string(i) + "again");
    }
  });
}

TEST(lend, readers_on_other_workers_and_threads_get_what_an_engine_received) {
  std::optional<pirn::runtime> both(std::in_place, pirn::runtime_options{.workers = 2});
  connected c = connect_pair();
  both->run([&] {
    pirn::spawn([&] { arm(c.server); }, {.worker = 0}).join();
    ASSERT_TRUE(c.client.write("one"));
    pirn::spawn([&] { EXPECT_EQ(take(c.server, 3), "one"); }, {.worker = 1}).join();
    pirn::spawn([&] { arm(c.server); }, {.worker = 0}).join();
  });
  ASSERT_TRUE(c.client.write("two"));
  EXPECT_EQ(take(c.server, 3), "two");
  both->run([&] { arm(c.server); });
  ASSERT_TRUE(c.client.write("three"));
  both.reset();
  EXPECT_EQ(take(c.server, 5), "three");
  pirn::runtime({.workers = 1}).run([&] {
    ASSERT_TRUE(c.client.write("four"));
    EXPECT_EQ(take(c.server, 4), "four");
  });
}

TEST(lend, a_stream_of_the_calling_thread_is_closed_while_that_is_away) {
  pirn::runtime runtime({.workers = 1, .calling_thread = true});
  connected c = connect_pair();
  runtime.run([&] { arm(c.server); });
  c.server.close();
  char byte;
  EXPECT_EQ(c.client.read(&byte, 1, in(long_enough)), 0u);
}

#if !defined(PIRN_TSAN)  // a child of a process with threads
/// Runs a body in a process made by fork, for at most 20 s. Returns how it has ended, as waitpid(2) does.
int in_child(const std::function<void()>& body) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    body();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(lend, a_stream_in_a_forked_process_is_closed_and_not_read) {
  pirn::runtime runtime({.workers = 1});
  connected c = connect_pair();
  runtime.run([&] { arm(c.server); });
  EXPECT_EQ(in_child([&] { c.server.close(); }), 0);
  ASSERT_TRUE(c.client.write("parent"));
  EXPECT_EQ(take(c.server, 6), "parent");
}
#endif

TEST(lend, a_view_outlives_its_stream_and_runtime) {
  read_view kept;
  connected c = connect_pair();
  pirn::runtime({.workers = 1}).run([&] {
    fiber reader = pirn::spawn([&] { kept = c.server.lend().value(); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));
    ASSERT_TRUE(c.client.write("kept"));
    reader.join();
    c.server.close();
  });
  EXPECT_EQ(kept.text(), "kept");
  kept.consume(4);
}

TEST(lend, a_moved_stream_takes_its_bytes_along) {
  pirn::runtime({.workers = 1}).run([] {
    connected c = connect_pair();
    arm(c.server);
    tcp_stream moved = std::move(c.server);
    ASSERT_TRUE(c.client.write("ab"));
    EXPECT_EQ(take(moved, 1), "a");
    tcp_stream again;
    again = std::move(moved);
    EXPECT_EQ(take(again, 1), "b");
  });
}

TEST(lend, a_close_is_heard_at_once) {
  pirn::runtime({.workers = 2}).run([] {
    for (const int worker : {0, 1}) {
      connected c = connect_pair();
      pirn::spawn([&] { arm(c.server); }, {.worker = worker}).join();
      c.server.close();
      EXPECT_TRUE(c.client.lend(in(long_enough))->empty());
    }
  });
}

TEST(lend, a_close_passes_on_its_cancellation_at_once) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] {
    constexpr std::uint64_t many = 30;
    std::vector<connected> pairs;
    for (std::uint64_t i = 0; i < many; ++i) {
      arm(pairs.emplace_back(connect_pair()).server);
    }
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
    const std::uint64_t before = runtime.statistics(0).switches;
    for (connected& each : pairs) {
      each.server.close();
    }
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
    EXPECT_LT(runtime.statistics(0).switches - before, 20 * many) << "it yields until the usual time has come";
  });
}

TEST(lend, a_released_descriptor_is_not_received_from) {
  pirn::runtime({.workers = 1}).run([] {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    pirn::descriptor a(ends[0]);
    EXPECT_EQ(a.lend(in(1ms)).error(), io_error::timed_out);
    const int native = a.release();
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    char byte = '?';
    EXPECT_EQ(::read(native, &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    ::close(native);
    ::close(ends[1]);
  });
}

TEST(lend, of_other_than_stream_sockets_is_refused_and_leaves_them_as_they_were) {
  pirn::runtime({.workers = 1}).run([] {
    int pipe[2], datagrams[2];
    ASSERT_EQ(::pipe2(pipe, O_NONBLOCK | O_CLOEXEC), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, datagrams), 0);
    for (const auto& ends : {pipe, datagrams}) {
      pirn::descriptor from(ends[0]), to(ends[1]);
      EXPECT_EQ(from.lend(in(1ms)).error(), std::errc::operation_not_supported);
      EXPECT_EQ(to.write("x", 1), 1u);
      char byte = '?';
      EXPECT_EQ(from.read(&byte, 1), 1u);
      EXPECT_EQ(byte, 'x');
    }
  });
}

TEST(lend, other_ways_to_read_are_refused_after_it) {
  pirn::runtime({.workers = 1}).run([] {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    pirn::descriptor a(ends[0]), b(ends[1]);
    EXPECT_EQ(a.lend(in(1ms)).error(), io_error::timed_out);
    char byte = '?';
    ::iovec part{&byte, 1};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const auto refused = std::errc::operation_not_supported;
    EXPECT_EQ(perform(operation::read(a, {&part, 1})).error(), refused);
    EXPECT_EQ(perform(operation::receive_message(a, message)).error(), refused);
    EXPECT_EQ(perform(operation::receive(a, &byte, 1, MSG_PEEK)).error(), refused);
    EXPECT_EQ(perform(operation::splice(a, b, 1)).error(), refused);
    EXPECT_EQ(perform(operation::send(b, "x", 1)), 1);
    EXPECT_EQ(perform(operation::receive(a, &byte, 1)), 1);
    EXPECT_EQ(byte, 'x');
  });
}

}  // namespace
