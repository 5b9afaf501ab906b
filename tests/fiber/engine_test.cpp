// The engine: readiness of descriptors, and polls that end in time.
#include "pirn/fiber/expert/engine.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::io_direction;
using pirn::wake_reason;

/// The two ends of a non-blocking local stream.
struct socket_pair {
  int ends[2] = {-1, -1};
  socket_pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0); }
  ~socket_pair() {
    close_end(0);
    close_end(1);
  }
  socket_pair(const socket_pair&) = delete;
  socket_pair& operator=(const socket_pair&) = delete;
  void close_end(int which) {
    if (ends[which] >= 0) {
      ::close(ends[which]);
      ends[which] = -1;
    }
  }
};

pirn::engine& engine_here() { return *pirn::detail::current_worker()->io; }

pirn::readiness* attach(pirn::engine& engine, int descriptor, io_direction direction = io_direction::read) {
  std::error_code error;
  pirn::readiness* const handle = engine.attach(descriptor, direction, error);
  EXPECT_NE(handle, nullptr) << error.message();
  return handle;
}

bool read_byte(int descriptor, char& byte) { return ::read(descriptor, &byte, 1) == 1; }
void write_byte(int descriptor, char byte) { EXPECT_EQ(::write(descriptor, &byte, 1), 1); }

/// Reads as io does: tries, and waits for readiness in between.
char receive(pirn::readiness& handle, int descriptor) {
  char byte = 0;
  while (!read_byte(descriptor, byte)) {
    EXPECT_EQ(handle.wait(io_direction::read, pirn::platform::never), wake_reason::notified);
  }
  return byte;
}

TEST(engine, wakes_a_reader_and_a_writer) {
  rig r(1);
  r.rt.run([] {
    const socket_pair pair;
    pirn::readiness* const handle = attach(engine_here(), pair.ends[0], io_direction::write);
    // A fresh socket is writable. The engine reports that a few times at most, so a writer that does not fill it waits.
    EXPECT_EQ(handle->wait(io_direction::write, pirn::platform::never), wake_reason::notified);
    int hints = 0;
    while (handle->wait(io_direction::write, clock::now() + 1ms) == wake_reason::notified) {
      ASSERT_LT(++hints, 5);
    }
    EXPECT_EQ(handle->wait(io_direction::read, clock::now() + 1ms), wake_reason::timed_out);
    std::string got;
    pirn::fiber reader = pirn::spawn([&] {
      for (int i = 0; i < 3; ++i) {
        got += receive(*handle, pair.ends[0]);
      }
    });
    for (const char c : {'x', 'y', 'z'}) {
      static_cast<void>(pirn::this_fiber::sleep_for(200us));
      write_byte(pair.ends[1], c);
    }
    reader.join();
    EXPECT_EQ(got, "xyz");

    // Fill it: the writer wakes when the other end reads.
    std::array<char, 4096> block{};
    while (::write(pair.ends[0], block.data(), block.size()) > 0) {
    }
    while (handle->wait(io_direction::write, clock::now() + 1ms) == wake_reason::notified) {
    }
    pirn::fiber drain = pirn::spawn([&] {
      static_cast<void>(pirn::this_fiber::sleep_for(500us));
      while (::read(pair.ends[1], block.data(), block.size()) > 0) {
      }
    });
    EXPECT_EQ(handle->wait(io_direction::write, pirn::platform::never), wake_reason::notified);
    drain.join();
    engine_here().detach(handle);
  });
}

TEST(engine, reports_writes_from_when_it_is_asked_to) {
  rig r(1);
  r.rt.run([] {
    const socket_pair pair;
    pirn::readiness* const handle = attach(engine_here(), pair.ends[0]);
    EXPECT_EQ(handle->wait(io_direction::write, clock::now() + 1ms), wake_reason::timed_out);
    EXPECT_FALSE(handle->reported(io_direction::write));
    std::error_code error;
    EXPECT_TRUE(engine_here().report_writes(*handle, error)) << error.message();
    EXPECT_TRUE(handle->reported(io_direction::write));
    EXPECT_EQ(handle->wait(io_direction::write, pirn::platform::never), wake_reason::notified);
    write_byte(pair.ends[1], 'r');
    EXPECT_EQ(receive(*handle, pair.ends[0]), 'r');
    engine_here().detach(handle);
  });
}

TEST(engine, is_asked_in_time_though_many_events_are_not_handled_yet) {
  rig r(1);
  r.rt.run([] {
    constexpr int count = 100;
    const auto compute = [] {
      const auto until = clock::now() + 100us;
      compute_until([until] { return clock::now() >= until; });
    };
    const std::array<socket_pair, count + 1> pairs;
    int handled = 0, handled_before_urgent = 0;
    std::vector<pirn::fiber> all;
    const auto reads = [&](int which, auto then) {
      return [&pairs, which, then] {
        const int end = pairs[static_cast<std::size_t>(which)].ends[0];
        pirn::readiness* const handle = attach(engine_here(), end);
        receive(*handle, end);
        engine_here().detach(handle);
        then();
      };
    };
    for (int i = 0; i < count; ++i) {
      all.push_back(pirn::spawn(reads(i, [&] {
        if (handled++ == 0) {
          write_byte(pairs[count].ends[1], 'u');
        }
        compute();
      })));
    }
    all.push_back(
        pirn::spawn(reads(count, [&] { handled_before_urgent = handled; }), {.priority = pirn::fiber_priority::high}));
    static_cast<void>(pirn::this_fiber::sleep_for(1ms));  // until all wait
    pirn::fiber other = pirn::spawn([&] {
      while (pirn::this_fiber::check_stop()) {
        compute();
        pirn::this_fiber::yield();
      }
    });
    for (int i = 0; i < 300; ++i) {  // until the worker has a tick after each of these turns
      compute();
      pirn::this_fiber::yield();
    }
    other.request_stop();
    other.join();
    for (int i = 0; i < count; ++i) {
      write_byte(pairs[static_cast<std::size_t>(i)].ends[1], 'r');
    }
    join_all(all);
    EXPECT_LT(handled_before_urgent, count / 2);  // as a rule 4
  });
}

TEST(engine, an_event_before_the_wait_is_not_lost) {
  rig r(1);
  r.rt.run([] {
    const socket_pair pair;
    pirn::readiness* const handle = attach(engine_here(), pair.ends[0]);
    write_byte(pair.ends[1], 'a');
    static_cast<void>(pirn::this_fiber::sleep_for(1ms));  // the engine has seen it by now
    EXPECT_EQ(handle->wait(io_direction::read, pirn::platform::never), wake_reason::notified);
    engine_here().detach(handle);
  });
}

TEST(engine, the_end_of_the_other_side_wakes_both_directions) {
  rig r(1);
  r.rt.run([] {
    socket_pair pair;
    pirn::readiness* const handle = attach(engine_here(), pair.ends[0]);
    std::array<char, 4096> block{};
    while (::write(pair.ends[0], block.data(), block.size()) > 0) {
    }
    while (handle->wait(io_direction::write, clock::now() + 500us) == wake_reason::notified) {
    }
    pirn::fiber reader =
        pirn::spawn([&] { EXPECT_EQ(handle->wait(io_direction::read, pirn::platform::never), wake_reason::notified); });
    pirn::fiber writer = pirn::spawn(
        [&] { EXPECT_EQ(handle->wait(io_direction::write, pirn::platform::never), wake_reason::notified); });
    static_cast<void>(pirn::this_fiber::sleep_for(500us));
    pair.close_end(1);
    reader.join();
    writer.join();
    engine_here().detach(handle);
  });
}

TEST(engine, a_stop_or_deadline_ends_the_wait_and_leaves_the_rest) {
  rig r(2);
  const socket_pair pair;
  pirn::readiness* handle = nullptr;
  r.rt.spawn([&] { handle = attach(engine_here(), pair.ends[0]); }, {.worker = 0}).join();
  pirn::fiber stopped = r.rt.spawn(
      [&] { EXPECT_EQ(handle->wait(io_direction::read, pirn::platform::never), wake_reason::stopped); }, {.worker = 0});
  pirn::fiber timed = r.rt.spawn(
      [&] { EXPECT_EQ(handle->wait(io_direction::read, clock::now() + 2ms), wake_reason::timed_out); }, {.worker = 1});
  char got = 0;
  pirn::fiber reader = r.rt.spawn([&] { got = receive(*handle, pair.ends[0]); }, {.worker = 1});
  timed.join();
  stopped.request_stop();
  stopped.join();
  write_byte(pair.ends[1], 'k');
  reader.join();
  EXPECT_EQ(got, 'k');
  r.rt.spawn([&] { engine_here().detach(handle); }, {.worker = 0}).join();
}

TEST(engine, plain_threads_may_wait_too) {
  rig r(1);
  const socket_pair pair;
  pirn::readiness* handle = nullptr;
  r.rt.run([&] { handle = attach(engine_here(), pair.ends[0]); });
  std::jthread writer([&] {
    std::this_thread::sleep_for(2ms);
    write_byte(pair.ends[1], 't');
  });
  EXPECT_EQ(receive(*handle, pair.ends[0]), 't');
  r.rt.run([&] { engine_here().detach(handle); });
}

TEST(engine, says_why_it_cannot_watch_something) {
  const auto engine = pirn::make_epoll_engine();
  std::error_code error;
  EXPECT_EQ(engine->attach(-1, io_direction::read, error), nullptr);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(engine->attach(file, io_direction::read, error), nullptr);
  EXPECT_EQ(error, std::errc::operation_not_permitted);
  ::close(file);
}

TEST(engine, a_reused_handle_remembers_nothing) {
  const auto engine = pirn::make_epoll_engine();
  for (int i = 0; i < 20; ++i) {
    const socket_pair pair;
    pirn::readiness* const handle = attach(*engine, pair.ends[0]);
    EXPECT_EQ(handle->wait(io_direction::read, {}), wake_reason::timed_out) << i;
    write_byte(pair.ends[1], 'a');
    engine->poll({});
    if (i % 2 == 0) {
      EXPECT_EQ(handle->wait(io_direction::read, {}), wake_reason::notified);
    }
    engine->detach(handle);
  }
}

TEST(engine, a_wait_without_a_tick_of_its_own_hears_of_what_another_was_told) {
  const auto engine = pirn::make_epoll_engine();
  for (int i = 0; i < 2; ++i) {  // also with a reused handle
    const socket_pair pair;
    pirn::readiness* const handle = attach(*engine, pair.ends[0], io_direction::write);
    EXPECT_EQ(handle->tick(io_direction::write), pirn::readiness::first_tick);
    engine->poll({});
    EXPECT_EQ(handle->wait(io_direction::write, {}), wake_reason::notified);
    EXPECT_EQ(handle->wait(io_direction::write, {}, pirn::readiness::first_tick), wake_reason::notified);
    EXPECT_EQ(handle->wait(io_direction::write, {}, handle->tick(io_direction::write)), wake_reason::timed_out);
    engine->detach(handle);
    engine->poll({});
  }
}

TEST(engine, what_another_one_takes_over_is_reported_in_both_directions) {
  const auto first = pirn::make_epoll_engine(), second = pirn::make_epoll_engine();
  const socket_pair pair;
  pirn::readiness* const handle = attach(*first, pair.ends[0]);
  first->retire();
  EXPECT_FALSE(handle->reported(io_direction::read));
  std::error_code error;
  EXPECT_TRUE(second->take_over(*handle, *first, io_direction::write, error)) << error.message();
  EXPECT_TRUE(handle->reported(io_direction::read));
  EXPECT_TRUE(handle->reported(io_direction::write));
  const std::uint32_t before = handle->tick(io_direction::write);
  second->poll({});
  EXPECT_EQ(handle->wait(io_direction::write, {}, before), wake_reason::notified);
  second->detach(handle);
}

TEST(engine, a_refusal_to_report_writes_wakes_who_waits_already) {
  rig r(1);
  r.rt.run([] {
    socket_pair pair;
    pirn::readiness* const handle = attach(engine_here(), pair.ends[0]);
    pirn::fiber other = pirn::spawn([handle] {
      EXPECT_EQ(handle->wait(io_direction::write, pirn::platform::never, pirn::readiness::first_tick),
                wake_reason::notified);
    });
    pirn::this_fiber::yield();
    pair.close_end(0);
    std::error_code error;
    EXPECT_FALSE(engine_here().report_writes(*handle, error));
    EXPECT_TRUE(error);
    EXPECT_FALSE(handle->reported(io_direction::write));
    other.join();
    engine_here().detach(handle);
  });
}

TEST(engine, poll_sleeps_no_longer_than_asked) {
  const auto engine = pirn::make_epoll_engine();
  auto begin = clock::now();
  engine->poll(begin - 1s);  // does not sleep
  engine->poll({});
  EXPECT_LT(clock::now() - begin, 5s);
  begin = clock::now();
  engine->poll(begin + 3ms);
  EXPECT_GE(clock::now() - begin, 3ms);
  engine->interrupt_poll();
  engine->interrupt_poll();
  engine->poll(pirn::platform::never);  // ended by the earlier notifications
  begin = clock::now();
  engine->poll(begin + 3ms);  // which end only one poll
  EXPECT_GE(clock::now() - begin, 3ms);
  std::jthread t([&] {
    std::this_thread::sleep_for(2ms);
    engine->interrupt_poll();
  });
  engine->poll(pirn::platform::never);
}

TEST(engine, many_descriptors) {
  rig r(2);
  const int count = scaled(300) + 2;
  std::vector<pirn::fiber> all;
  std::atomic<int> received = 0;
  for (int i = 0; i < count; ++i) {
    all.push_back(r.rt.spawn([&] {
      const socket_pair pair;
      pirn::readiness* const handle = attach(engine_here(), pair.ends[0]);
      pirn::fiber echo = pirn::spawn(
          [&] {
            for (int k = 0; k < 10; ++k) {
              write_byte(pair.ends[1], static_cast<char>('0' + k));
              pirn::this_fiber::yield();
            }
          },
          {.worker = pirn::spawn_options::any_worker});
      for (int k = 0; k < 10; ++k) {
        EXPECT_EQ(receive(*handle, pair.ends[0]), '0' + k);
        ++received;
      }
      echo.join();
      engine_here().detach(handle);
    }));
  }
  join_all(all);
  EXPECT_EQ(received, 10 * count);
}

}  // namespace
