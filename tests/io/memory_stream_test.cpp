// memory_stream: both directions, waits and what ends them, halves and closes, sizes of 0, and views.

#include "pirn/io/memory_stream.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "io/pattern.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::const_buffer;
using pirn::io_error;
using pirn::memory_stream;
using pirn::shutdown_half;
using test::pattern;

static_assert(pirn::stream<memory_stream> && pirn::lending_stream<memory_stream>);

pirn::time_point in(std::chrono::milliseconds time) { return pirn::clock::now() + time; }

/// Runs a body as a fiber and as a plain thread.
template <class Body>
void both_ways(Body body) {
  {
    SCOPED_TRACE("fiber");
    pirn::runtime({.workers = 1}).run(body);
  }
  {
    SCOPED_TRACE("thread");
    body();
  }
}

std::string read_some(memory_stream& from, std::size_t size = 100) {
  std::string text(size, '?');
  text.resize(from.read(text.data(), size, in(10s)).value());
  return text;
}

/// Runs `call` in a fiber of worker 1, and `meanwhile` once that waits.
template <class Call, class Meanwhile>
void while_it_waits(Call call, Meanwhile meanwhile) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([&] {
    pirn::fiber waiting = pirn::spawn(std::move(call), {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    meanwhile(waiting);
    waiting.join();
  });
}

TEST(memory_stream, carries_bytes_both_ways) {
  both_ways([] {
    auto [a, b] = memory_stream::pair();
    ASSERT_TRUE(a.write("ping"));
    EXPECT_EQ(read_some(b, 3), "pin");
    EXPECT_EQ(read_some(b), "g");
    ASSERT_EQ(b.write_some("pong", 4), 4u);
    EXPECT_EQ(read_some(a), "pong");
  });
}

TEST(memory_stream, takes_as_much_as_there_is_room_for) {
  both_ways([] {
    auto [a, b] = memory_stream::pair(5);
    EXPECT_EQ(a.write_some("1234567", 7), 5u);
    EXPECT_EQ(read_some(b, 3), "123");
    const const_buffer parts[] = {{"a", 1}, {nullptr, 0}, {"bcdefg", 6}};
    EXPECT_EQ(a.write_some(parts), 3u);  // around the end of the ring
    EXPECT_EQ(read_some(b), "45abc");
    auto [c, d] = memory_stream::pair(0);
    EXPECT_EQ(c.write_some("xy", 2), 1u);
    EXPECT_EQ(read_some(d), "x");
  });
}

TEST(memory_stream, a_call_moves_at_most_16_kib) {
  both_ways([] {
    auto [a, b] = memory_stream::pair(40000);
    const std::string much = pattern(40000);
    EXPECT_EQ(a.write_some(much.data(), much.size()), 16384u);
    ASSERT_TRUE(a.write(std::string_view(much).substr(16384)));
    EXPECT_EQ(read_some(b, 40000), much.substr(0, 16384));
  });
}

TEST(memory_stream, carries_much_between_workers_and_threads) {
  const std::string much = pattern(1 << 20);
  for (const std::size_t capacity : {std::size_t{4096}, std::size_t{1} << 16}) {
    auto [a, b] = memory_stream::pair(capacity);
    std::string there(much.size(), '\0');
    std::string back(much.size(), '\0');
    pirn::runtime runtime({.workers = 2});
    runtime.run([&] {
      pirn::fiber writes = pirn::spawn([&] { EXPECT_TRUE(a.write(much)); }, {.worker = 0});
      pirn::fiber reads = pirn::spawn([&] { EXPECT_TRUE(b.read_exactly(there.data(), there.size())); }, {.worker = 1});
      std::jthread thread([&] { EXPECT_TRUE(b.write(much)); });
      EXPECT_TRUE(a.read_exactly(back.data(), back.size()));
      writes.join();
      reads.join();
    });
    EXPECT_TRUE(there == much && back == much);
  }
}

TEST(memory_stream, a_thread_waits_for_data_and_for_room) {
  auto [a, b] = memory_stream::pair(2);
  std::jthread other([&] {
    std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(a.write("abc"));
  });
  std::this_thread::sleep_for(10ms);
  char text[3];
  EXPECT_TRUE(b.read_exactly(text, sizeof text, in(10s)));
  EXPECT_EQ(std::string_view(text, 3), "abc");
}

TEST(memory_stream, a_deadline_ends_each_wait) {
  both_ways([] {
    auto [a, b] = memory_stream::pair(1);
    char byte = 0;
    const auto before = pirn::clock::now();
    EXPECT_EQ(b.read(&byte, 1, in(10ms)).error(), io_error::timed_out);
    EXPECT_GE(pirn::clock::now() - before, 10ms);
    EXPECT_EQ(b.lend(1ms).error(), io_error::timed_out);
    EXPECT_EQ(b.wait_readable(1ms).error(), io_error::timed_out);
    ASSERT_TRUE(a.write("x"));
    EXPECT_EQ(a.write_some("y", 1, 1ms).error(), io_error::timed_out);
    EXPECT_EQ(read_some(b), "x");
  });
}

TEST(memory_stream, a_passed_deadline_ends_a_call_that_need_not_wait) {
  both_ways([] {
    auto [a, b] = memory_stream::pair();
    ASSERT_TRUE(a.write("x"));
    char byte = 0;
    EXPECT_EQ(b.read(&byte, 1, in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(b.lend(in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(b.wait_readable(in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(a.write_some("y", 1, in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(read_some(b), "x");
  });
}

TEST(memory_stream, a_stop_ends_a_wait_and_each_later_call) {
  auto [a, b] = memory_stream::pair();
  while_it_waits(
      [&] {
        char byte = 0;
        EXPECT_EQ(b.read(&byte, 1).error(), io_error::stopped);
        ASSERT_EQ(b.write_some("x", 1).error(), io_error::stopped);
        EXPECT_EQ(b.lend().error(), io_error::stopped);
        EXPECT_EQ(b.wait_readable().error(), io_error::stopped);
      },
      [](pirn::fiber& waiting) { waiting.request_stop(); });
  EXPECT_EQ(a.read(nullptr, 0), 0u);
}

TEST(memory_stream, what_was_written_is_read_after_the_end_of_a_half) {
  both_ways([] {
    auto [a, b] = memory_stream::pair();
    ASSERT_TRUE(a.write("last"));
    ASSERT_TRUE(a.shutdown(shutdown_half::write));
    EXPECT_EQ(a.write("more").error(), std::errc::broken_pipe);
    EXPECT_EQ(read_some(b), "last");
    EXPECT_EQ(read_some(b), "");
    EXPECT_EQ(read_some(b), "");
    ASSERT_TRUE(b.write("answer"));  // the other half is open
    EXPECT_EQ(read_some(a), "answer");
  });
}

TEST(memory_stream, an_end_of_the_reading_half_drops_what_is_left) {
  both_ways([] {
    auto [a, b] = memory_stream::pair();
    ASSERT_TRUE(a.write("unread"));
    EXPECT_EQ(a.unacknowledged(), 6u);
    ASSERT_TRUE(b.shutdown(shutdown_half::read));
    EXPECT_EQ(read_some(b), "");
    EXPECT_EQ(a.unacknowledged(), 0u);
    EXPECT_EQ(a.write("x").error(), std::errc::broken_pipe);
    ASSERT_TRUE(b.write("answer"));
    EXPECT_EQ(read_some(a), "answer");
    ASSERT_TRUE(b.shutdown(shutdown_half::both));
    EXPECT_EQ(read_some(a), "");
  });
}

TEST(memory_stream, a_shutdown_ends_waits_of_both_sides) {
  auto [a, b] = memory_stream::pair(1);
  while_it_waits([&] { EXPECT_EQ(read_some(b), ""); }, [&](auto&) { EXPECT_TRUE(a.shutdown(shutdown_half::write)); });
  while_it_waits([&] { EXPECT_EQ(read_some(a), ""); }, [&](auto&) { EXPECT_TRUE(a.shutdown(shutdown_half::read)); });
  auto [c, d] = memory_stream::pair(1);
  while_it_waits([&] { EXPECT_EQ(c.write("xy").error(), std::errc::broken_pipe); },
                 [&](auto&) { EXPECT_TRUE(d.shutdown(shutdown_half::read)); });
  auto [e, f] = memory_stream::pair(1);
  while_it_waits([&] { EXPECT_EQ(e.write("xy").error(), std::errc::broken_pipe); },
                 [&](auto&) { EXPECT_TRUE(e.shutdown(shutdown_half::write)); });
  EXPECT_EQ(read_some(f), "x");
}

TEST(memory_stream, a_close_ends_waits_of_this_end) {
  auto [a, b] = memory_stream::pair(1);
  ASSERT_TRUE(a.write("x"));
  while_it_waits([&] { EXPECT_EQ(a.write("y").error(), io_error::closed); }, [&](auto&) { a.close(); });
  auto [c, d] = memory_stream::pair(1);
  char byte = 0;
  while_it_waits([&] { EXPECT_EQ(c.read(&byte, 1).error(), io_error::closed); }, [&](auto&) { c.close(); });
  auto [e, f] = memory_stream::pair(1);
  while_it_waits([&] { EXPECT_EQ(e.wait_readable().error(), io_error::closed); }, [&](auto&) { e.close(); });
}

TEST(memory_stream, a_close_ends_waits_of_the_peer) {
  auto [a, b] = memory_stream::pair(1);
  ASSERT_TRUE(a.write("x"));
  while_it_waits([&] { EXPECT_EQ(a.write("y").error(), std::errc::broken_pipe); }, [&](auto&) { b.close(); });
  EXPECT_EQ(a.unacknowledged(), 0u);
  auto [c, d] = memory_stream::pair(1);
  while_it_waits([&] { EXPECT_EQ(read_some(c), ""); }, [&](auto&) { d.close(); });
}

TEST(memory_stream, an_end_may_be_closed_and_destroyed_while_it_is_in_use) {
  auto [a, b] = memory_stream::pair(1);
  std::optional<memory_stream> end(std::move(a));
  while_it_waits(
      [&] {
        char byte = 0;
        const auto got = end->read(&byte, 1);
        EXPECT_TRUE(!got && got.error() == io_error::closed);
      },
      [&](auto&) {
        end.reset();
        b = {};  // and the connection with it
      });
}

TEST(memory_stream, the_peer_reads_what_was_written_before_a_close) {
  both_ways([] {
    auto [a, b] = memory_stream::pair();
    ASSERT_TRUE(a.write("bye"));
    a.close();
    a.close();
    EXPECT_FALSE(a.is_open());
    EXPECT_TRUE(b.is_open());
    EXPECT_EQ(read_some(b), "bye");
    EXPECT_EQ(read_some(b), "");
    EXPECT_EQ(b.write("x").error(), std::errc::broken_pipe);
  });
}

TEST(memory_stream, calls_for_no_bytes) {
  both_ways([] {
    auto [a, b] = memory_stream::pair(1);
    EXPECT_EQ(b.read(nullptr, 0, 1ms), 0u);  // nothing to read, and no wait
    ASSERT_TRUE(a.write("x"));
    EXPECT_EQ(a.write_some(nullptr, 0, 1ms), 0u);  // no room, and no wait
    EXPECT_EQ(a.write_some(std::span<const const_buffer>(), 1ms), 0u);
    EXPECT_EQ(b.read(nullptr, 0), 0u);
    ASSERT_TRUE(a.shutdown(shutdown_half::write));
    EXPECT_EQ(a.write_some("", 0).error(), std::errc::broken_pipe);
    EXPECT_EQ(read_some(b), "x");
    EXPECT_EQ(b.read(nullptr, 0), 0u);
    a.close();
    EXPECT_EQ(a.read(nullptr, 0).error(), io_error::closed);
    EXPECT_EQ(a.write_some("", 0).error(), io_error::closed);
    EXPECT_EQ(b.write_some("", 0).error(), std::errc::broken_pipe);
    EXPECT_TRUE(a.write("", 0));  // as it says: without a look at the stream
  });
}

TEST(memory_stream, one_that_was_moved_from_is_closed) {
  both_ways([] {
    auto [a, b] = memory_stream::pair();
    memory_stream moved(std::move(a));
    char byte = 0;
    for (memory_stream empty; memory_stream* each : {&a, &empty}) {  // NOLINT(bugprone-use-after-move)
      EXPECT_FALSE(each->is_open());
      EXPECT_EQ(each->read(&byte, 1).error(), io_error::closed);
      EXPECT_EQ(each->write("x").error(), io_error::closed);
      EXPECT_EQ(each->lend().error(), io_error::closed);
      EXPECT_EQ(each->wait_readable().error(), io_error::closed);
      EXPECT_EQ(each->shutdown(shutdown_half::both).error(), io_error::closed);
      EXPECT_EQ(each->unacknowledged().error(), io_error::closed);
      each->close();
    }
    ASSERT_TRUE(moved.write("x"));
    EXPECT_EQ(read_some(b), "x");
    moved = memory_stream();
    EXPECT_EQ(read_some(b), "");
  });
}

TEST(memory_stream, closed_calls_say_so) {
  auto [a, b] = memory_stream::pair();
  a.close();
  EXPECT_EQ(a.shutdown(shutdown_half::read).error(), io_error::closed);
  EXPECT_EQ(a.shutdown(shutdown_half::write).error(), io_error::closed);
  EXPECT_EQ(a.unacknowledged().error(), io_error::closed);
  EXPECT_EQ(a.lend().error(), io_error::closed);
  EXPECT_TRUE(b.shutdown(shutdown_half::both));
}

TEST(memory_stream, counts_what_the_peer_has_not_read) {
  auto [a, b] = memory_stream::pair();
  EXPECT_EQ(a.unacknowledged(), 0u);
  ASSERT_TRUE(a.write("12345"));
  EXPECT_EQ(a.unacknowledged(), 5u);
  EXPECT_EQ(read_some(b, 2), "12");
  EXPECT_EQ(a.unacknowledged(), 3u);
  ASSERT_TRUE(a.shutdown(shutdown_half::write));
  EXPECT_EQ(a.unacknowledged(), 3u);
  b.close();
  EXPECT_EQ(a.unacknowledged(), 0u);
}

TEST(memory_stream, lends_its_bytes) {
  both_ways([] {
    auto [a, b] = memory_stream::pair(8);
    ASSERT_TRUE(a.write("abcdef"));
    {
      auto view = b.lend();
      ASSERT_TRUE(view);
      EXPECT_EQ(view->text(), "abcdef");
      view->consume(2);
      EXPECT_EQ(view->text(), "cdef");
      EXPECT_EQ(view->bytes().size(), 4u);
      EXPECT_EQ(a.write_some("ghij", 4), 2u);  // the room of a view is not free before it ends
      EXPECT_EQ(view->text(), "cdef");
    }
    EXPECT_EQ(a.write_some("ij", 2), 2u);
    EXPECT_EQ(b.lend()->text(), "cdefgh");  // the view ends at the end of the ring
    EXPECT_EQ(read_some(b), "cdefghij");
    ASSERT_TRUE(a.shutdown(shutdown_half::write));
    EXPECT_TRUE(b.lend()->empty());
  });
}

TEST(memory_stream, lends_one_view_at_a_time) {
  both_ways([] {
    auto [a, b] = memory_stream::pair();
    ASSERT_TRUE(a.write("abc"));
    auto view = b.lend();
    char byte = 0;
    EXPECT_EQ(b.lend().error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(b.read(&byte, 1).error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(b.read(&byte, 0).error(), std::errc::device_or_resource_busy);
    EXPECT_TRUE(b.wait_readable(20s));
    pirn::read_view moved(std::move(*view));
    EXPECT_EQ(moved.text(), "abc");
    moved.consume(3);
    EXPECT_TRUE(b.wait_readable(20s));
    moved = pirn::read_view();
    EXPECT_EQ(b.wait_readable(1ms).error(), io_error::timed_out);
    ASSERT_TRUE(a.write("d"));
    EXPECT_EQ(read_some(b), "d");
  });
}

TEST(memory_stream, an_ended_view_wakes_a_writer) {
  auto [a, b] = memory_stream::pair(1);
  ASSERT_TRUE(a.write("x"));
  auto view = b.lend();
  view->consume(1);
  while_it_waits([&] { EXPECT_TRUE(a.write("y")); }, [&](auto&) { view->release(); });
  EXPECT_EQ(read_some(b), "y");
}

TEST(memory_stream, a_view_outlives_both_ends) {
  both_ways([] {
    std::optional<std::pair<memory_stream, memory_stream>> ends = memory_stream::pair();
    ASSERT_TRUE(ends->first.write("abc"));
    auto view = ends->second.lend();
    ends->first.close();
    EXPECT_EQ(view->text(), "abc");
    ASSERT_TRUE(ends->second.shutdown(shutdown_half::read));
    view->consume(1);
    ends.reset();
    EXPECT_EQ(view->text(), "bc");
    view->release();
    EXPECT_TRUE(view->empty());
    view->release();
  });
}

TEST(memory_stream_death, a_view_is_not_consumed_beyond_its_end) {
  const auto consume_too_much = [] {
    auto [a, b] = memory_stream::pair();
    static_cast<void>(a.write("abc"));
    b.lend()->consume(4);
  };
  EXPECT_DEATH(consume_too_much(), "pirn: consume of 4 bytes of a read_view with 3");
}

TEST(memory_stream, a_fiber_that_never_waits_lets_others_run) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    auto [a, b] = memory_stream::pair();
    int calls = 0;
    int seen = 0;
    pirn::fiber other = pirn::spawn([&] { seen = calls; });
    for (; calls < 100; ++calls) {
      ASSERT_TRUE(a.write("x"));
    }
    EXPECT_EQ(seen, 31);
    other.join();
    pirn::fiber one_more = pirn::spawn([&] { seen = calls; });
    for (calls = 0; calls < 100; ++calls) {
      read_some(b, 1);
    }
    EXPECT_EQ(seen, 31);
    one_more.join();
  });
}

TEST(memory_stream, several_waiting_readers_share_what_comes) {
  auto [a, b] = memory_stream::pair(2);
  pirn::runtime runtime({.workers = 2});
  runtime.run([&] {
    const auto read_one = [&] {
      char byte = 0;
      EXPECT_EQ(b.read(&byte, 1, in(10s)), 1u);
    };
    pirn::fiber first = pirn::spawn(read_one, {.worker = 0});
    pirn::fiber second = pirn::spawn(read_one, {.worker = 1});
    pirn::fiber third = pirn::spawn([&] { EXPECT_TRUE(b.wait_readable(in(10s))); }, {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    ASSERT_TRUE(a.write("xyz", in(10s)));
    first.join();
    second.join();
    third.join();
  });
  EXPECT_EQ(read_some(b), "z");
}

}  // namespace
