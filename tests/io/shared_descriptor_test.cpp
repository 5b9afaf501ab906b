// Descriptors that are also used elsewhere: adopted descriptors that share an open file, borrowed ones, and those of a
// process that was forked.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/descriptor.hpp"
#include "pirn/io/expert/stream_parts.hpp"
#include "stack/support.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::descriptor;
using pirn::io_direction;
using pirn::io_error;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

bool blocks(int native) { return (::fcntl(native, F_GETFL) & O_NONBLOCK) == 0; }
bool is_open(int native) { return ::fcntl(native, F_GETFD) >= 0; }

/// The two ends of a pipe, terminal or socket pair, blocking, and a second number of the first end.
struct shared_pair {
  ~shared_pair() {
    for (const int each : {first, same, second}) {
      if (each >= 0) {
        ::close(each);
      }
    }
  }
  /// Returns the number that is given away.
  int give() { return std::exchange(first, -1); }
  int first = -1, same = -1, second = -1;
};

shared_pair pipe_to_read() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {.first = ends[0], .same = ::dup(ends[0]), .second = ends[1]};
}

shared_pair terminal() {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_TRUE(master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0);
  const int slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  return {.first = slave, .same = ::dup(slave), .second = master};
}

shared_pair local_sockets() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {.first = ends[0], .same = ::dup(ends[0]), .second = ends[1]};
}

TEST(adopt, leaves_those_who_share_a_terminal_or_pipe_alone) {
  pirn::runtime({.workers = 1}).run([] {
    for (shared_pair (*make)() : {pipe_to_read, terminal}) {
      shared_pair s = make();
      const int number = s.first;
      auto adopted = descriptor::adopt(s.give());
      ASSERT_TRUE(adopted) << adopted.error().message();
      EXPECT_EQ(adopted->native(), number);
      EXPECT_TRUE((::fcntl(number, F_GETFD) & FD_CLOEXEC) != 0);
      EXPECT_TRUE(blocks(s.same));
      char text[8];
      EXPECT_EQ(adopted->read(text, sizeof text, in(5ms)).error(), io_error::timed_out);
      ASSERT_EQ(::write(s.second, "x\n", 2), 2);
      EXPECT_EQ(adopted->read(text, sizeof text, in(10s)), 2u);
      EXPECT_EQ(std::string(text, 2), "x\n");
    }
  });
}

TEST(adopt, writes_to_a_pipe_of_its_own_too) {
  pirn::runtime({.workers = 1}).run([] {
    shared_pair s = pipe_to_read();
    std::swap(s.first, s.second);  // the writing end
    const descriptor same(::dup(s.first));
    auto adopted = descriptor::adopt(s.give());
    ASSERT_TRUE(adopted);
    EXPECT_TRUE(blocks(same.native()));
    const std::string much(1 << 20, 'm');
    EXPECT_EQ(adopted->write(much.data(), much.size(), in(5ms)), 65536u);
    EXPECT_EQ(adopted->write(much.data(), much.size(), in(5ms)).error(), io_error::timed_out);
  });
}

TEST(adopt, the_other_side_of_a_terminal_stays_that) {
  pirn::runtime({.workers = 1}).run([] {
    shared_pair s = terminal();
    auto master = descriptor::adopt(std::exchange(s.second, -1));
    ASSERT_TRUE(master);
    ASSERT_EQ(::write(s.first, "y", 1), 1);
    char byte = 0;
    EXPECT_EQ(master->read(&byte, 1, in(10s)), 1u);
    EXPECT_EQ(byte, 'y');
  });
}

TEST(adopt, puts_the_mode_of_a_socket_back) {
  shared_pair s = local_sockets();
  {
    auto adopted = descriptor::adopt(s.give());
    ASSERT_TRUE(adopted);
    EXPECT_FALSE(blocks(s.same));
    descriptor moved = std::move(*adopted);
    EXPECT_FALSE(blocks(s.same));
    s.first = moved.release();
    EXPECT_TRUE(blocks(s.same));
    moved = descriptor::adopt(s.give()).value();
    EXPECT_FALSE(blocks(s.same));
  }
  EXPECT_TRUE(blocks(s.same));
  const descriptor never_blocks(s.same);
  const int flags = ::fcntl(s.same, F_GETFL);
  ASSERT_EQ(::fcntl(s.same, F_SETFL, flags | O_NONBLOCK), 0);
  descriptor::adopt(::dup(s.same)).value().close();
  EXPECT_FALSE(blocks(std::exchange(s.same, -1))) << "it was so before";
}

TEST(adopt, refuses_what_would_make_printing_fail) {
  shared_pair s = local_sockets();
  const int input = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(s.same, STDIN_FILENO), STDIN_FILENO);
  const auto refused = descriptor::adopt(s.give());
  EXPECT_TRUE(blocks(s.same));
  ::dup2(input, STDIN_FILENO);
  ::close(input);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), io_error::shared);
  EXPECT_EQ(refused.error(), std::errc::device_or_resource_busy);
}

TEST(adopt, takes_what_never_blocks_as_it_is) {
  for (const char* const path : {"/dev/null", "/proc/self/exe"}) {
    const descriptor other(::open(path, O_RDONLY | O_CLOEXEC));
    const auto adopted = descriptor::adopt(::dup(other.native()));
    ASSERT_TRUE(adopted) << adopted.error().message();
    EXPECT_TRUE(blocks(other.native()));
  }
}

TEST(borrow, waits_and_leaves_everything_as_it_was) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    const shared_pair s = local_sockets();
    for (int round = 0; round < 3; ++round) {
      auto lent = descriptor::borrow(s.first);
      ASSERT_TRUE(lent);
      EXPECT_TRUE(blocks(s.first));
      EXPECT_TRUE(lent->wait(io_direction::write, in(10s)));
      EXPECT_EQ(lent->wait(io_direction::read, in(5ms)).error(), io_error::timed_out);
      pirn::fiber peer = pirn::spawn(
          [&] {
            ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
            ASSERT_EQ(::write(s.second, "x", 1), 1);
          },
          {.worker = 1});
      EXPECT_TRUE(lent->wait(io_direction::read, in(10s)));
      EXPECT_TRUE(lent->wait(io_direction::read, in(10s))) << "it is there still";
      char byte = 0;
      ASSERT_EQ(::read(s.first, &byte, 1), 1);
      peer.join();
      descriptor moved = std::move(*lent);
      if (round == 1) {
        moved.close();
      }
      if (round == 2) {
        EXPECT_EQ(moved.release(), s.first);
      }
    }
    EXPECT_TRUE(is_open(s.first));
    EXPECT_TRUE(blocks(s.first));
  });
}

TEST(borrow, says_what_is_none_and_what_is_lent_already) {
  pirn::runtime({.workers = 1}).run([] {
    const shared_pair s = local_sockets();
    EXPECT_EQ(descriptor::borrow(-1).error(), std::errc::bad_file_descriptor);
    descriptor one = descriptor::borrow(s.first).value();
    descriptor other = descriptor::borrow(s.first).value();
    EXPECT_EQ(one.wait(io_direction::read, in(1ms)).error(), io_error::timed_out);
    EXPECT_EQ(other.wait(io_direction::read, in(1ms)).error(), std::errc::file_exists);
    one.close();
    EXPECT_EQ(other.wait(io_direction::read, in(1ms)).error(), io_error::timed_out);
  });
}

// A child has the memory of its parent's descriptors, and shares their open files and engines with it.

#if defined(PIRN_TSAN)
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "ThreadSanitizer itself ends a child of a process with threads"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

struct pair_of_ends {
  pair_of_ends() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    here = descriptor(ends[0]);
    there = descriptor(ends[1]);
  }
  descriptor here, there;
};

struct inherited : testing::Test, pair_of_ends {
  /// Runs a body in a child, which is to return 0.
  static void run_in_child(const std::function<int()>& body) {
    const stack_test::child_result of = stack_test::in_child([&] {
      ::alarm(20);
      return body();
    });
    EXPECT_TRUE(of.exited_with(0)) << of.status << of.error_output;
  }
  /// Reads a byte that a fiber sends meanwhile.
  bool gets_a_byte() {
    pirn::fiber sends = pirn::spawn([this] {
      static_cast<void>(pirn::this_fiber::sleep_for(2ms));
      static_cast<void>(there.write("x", 1));
    });
    return here.read(&byte, 1, in(10s)) == 1u && byte == 'x';
  }

  char byte = 0;
};

TEST_F(inherited, its_close_leaves_the_parent_its_reports) {
  SKIP_UNDER_TSAN();
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] { EXPECT_EQ(here.read(&byte, 1, in(1ms)).error(), io_error::timed_out); });  // attached now
  run_in_child([&] {
    here.close();
    return 0;
  });
  runtime.run([&] { EXPECT_TRUE(gets_a_byte()); });
}

TEST_F(inherited, its_close_leaves_the_mode_of_an_adopted_one) {
  SKIP_UNDER_TSAN();
  shared_pair s = local_sockets();
  descriptor adopted = descriptor::adopt(s.give()).value();
  run_in_child([&] {
    adopted.close();
    return 0;
  });
  EXPECT_FALSE(blocks(adopted.native()));
}

TEST_F(inherited, its_close_waits_for_no_thread_of_the_parent) {
  SKIP_UNDER_TSAN();
  std::atomic<bool> begins = false;
  std::thread reads([&] {
    begins = true;
    char read = 0;
    EXPECT_EQ(here.read(&read, 1, in(10s)), 1u);
  });
  while (!begins) {
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(2ms);
  run_in_child([&] {
    here.close();
    return 0;
  });
  EXPECT_EQ(there.write("x", 1), 1u);
  reads.join();
}

TEST_F(inherited, the_child_waits_by_a_runtime_of_its_own) {
  SKIP_UNDER_TSAN();
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] { EXPECT_EQ(here.read(&byte, 1, in(1ms)).error(), io_error::timed_out); });
  run_in_child([&] {
    pirn::runtime own({.workers = 1});
    return own.run([&] { return gets_a_byte() ? 0 : 1; });
  });
  runtime.run([&] { EXPECT_TRUE(gets_a_byte()); });
}

TEST_F(inherited, its_close_waits_for_no_fiber_of_the_parent) {
  SKIP_UNDER_TSAN();
  for (const bool lends : {false, true}) {
    pair_of_ends one;
    pirn::runtime runtime({.workers = 1, .engine = pirn::engine_kind::epoll});
    pirn::fiber reads = runtime.spawn([&] {
      EXPECT_EQ(lends ? one.here.lend(in(10s))->bytes().size() : one.here.read(&byte, 1, in(10s)).value(), 1u);
    });
    runtime.run([] { static_cast<void>(pirn::this_fiber::sleep_for(2ms)); });
    run_in_child([&] {
      one.here.close();
      return 0;
    });
    EXPECT_EQ(one.there.write("x", 1), 1u);
    reads.join();
  }
}

}  // namespace
