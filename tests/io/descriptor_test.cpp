// Operations on a descriptor: waits, deadlines, stops, closes, readiness, and runtimes that end.

#include "pirn/io/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "pirn/fiber/runtime.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::descriptor;
using pirn::io_error;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

struct pair_of_sockets {
  pair_of_sockets() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    a = descriptor(ends[0]);
    b = descriptor(ends[1]);
  }
  descriptor a, b;
};

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

TEST(descriptor, reads_what_was_written) {
  both_ways([] {
    pair_of_sockets s;
    ASSERT_EQ(s.a.write("hello", 5), 5u);
    char text[16];
    ASSERT_EQ(s.b.read(text, sizeof text), 5u);
    EXPECT_EQ(std::string(text, 5), "hello");
    s.a.close();
    EXPECT_EQ(s.b.read(text, sizeof text), 0u);
  });
}

TEST(descriptor, waits_for_what_is_not_there_yet) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    pair_of_sockets s;
    char got = 0;
    pirn::fiber reader = pirn::spawn([&] { EXPECT_EQ(s.b.read(&got, 1), 1u); }, {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    ASSERT_EQ(s.a.write("x", 1), 1u);
    reader.join();
    EXPECT_EQ(got, 'x');
  });
}

TEST(descriptor, a_thread_waits_too) {
  pair_of_sockets s;
  std::thread writer([&] {
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(s.a.write("x", 1), 1u);
  });
  char got = 0;
  EXPECT_EQ(s.b.read(&got, 1), 1u);
  writer.join();
}

TEST(descriptor, deadline_ends_a_wait) {
  both_ways([] {
    pair_of_sockets s;
    char got = 0;
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(s.b.read(&got, 1, in(20ms)).error(), io_error::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
    EXPECT_EQ(s.b.wait(pirn::io_direction::read, in(5ms)).error(), io_error::timed_out);
    const std::string much(1 << 20, 'm');
    auto put = s.a.write(much.data(), much.size(), in(20ms));
    while (put) {
      put = s.a.write(much.data(), much.size(), in(20ms));
    }
    EXPECT_EQ(put.error(), io_error::timed_out);
  });
}

TEST(descriptor, a_passed_deadline_ends_a_call_that_need_not_wait) {
  both_ways([] {
    pair_of_sockets s;
    ASSERT_EQ(s.a.write("x", 1), 1u);
    char got = 0;
    EXPECT_EQ(s.b.read(&got, 1, in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(s.a.write("x", 1, in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(s.b.read(&got, 1, in(10s)), 1u);
  });
}

TEST(descriptor, stop_ends_a_wait_and_every_later_call) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    pair_of_sockets s;
    pirn::fiber reader = pirn::spawn(
        [&] {
          char got = 0;
          EXPECT_EQ(s.b.read(&got, 1).error(), io_error::stopped);
          EXPECT_EQ(s.b.write("x", 1).error(), io_error::stopped);
          EXPECT_EQ(s.b.wait(pirn::io_direction::write).error(), io_error::stopped);
        },
        {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    reader.request_stop();
    reader.join();
  });
}

TEST(descriptor, close_ends_operations_under_way) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    pair_of_sockets s;
    const auto read = [&] {
      char got = 0;
      EXPECT_EQ(s.b.read(&got, 1).error(), io_error::closed);
    };
    pirn::fiber here = pirn::spawn(read, {.worker = 0});
    pirn::fiber there = pirn::spawn(read, {.worker = 1});
    std::thread thread(read);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(10ms));
    s.b.close();
    EXPECT_FALSE(s.b.is_open());
    EXPECT_EQ(s.b.native(), -1);
    here.join();
    there.join();
    thread.join();
    char got = 0;
    EXPECT_EQ(s.a.read(&got, 1), 0u);
    EXPECT_EQ(s.b.read(&got, 1).error(), io_error::closed);
    EXPECT_EQ(descriptor().read(&got, 1).error(), io_error::closed);
  });
}

TEST(descriptor, kernel_errors_are_values) {
  both_ways([] {
    descriptor folder(::open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY));
    char got = 0;
    EXPECT_EQ(folder.read(&got, 1).error(), std::errc::is_a_directory);
    EXPECT_EQ(folder.write("x", 1).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(descriptor::adopt(-1).error(), std::errc::bad_file_descriptor);
  });
}

TEST(descriptor, what_never_blocks_is_always_ready) {
  both_ways([] {
    for (const char* path : {"/proc/self/exe", "/dev/null", "/dev/zero", "/"}) {
      auto file = descriptor::adopt(::open(path, O_RDONLY | O_CLOEXEC));
      ASSERT_TRUE(file);
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(file->wait(pirn::io_direction::read)) << path;
        EXPECT_TRUE(file->wait(pirn::io_direction::write)) << path;
      }
      EXPECT_EQ(file->wait(pirn::io_direction::read, in(-1ms)).error(), io_error::timed_out);
    }
  });
}

TEST(descriptor, adopts_a_blocking_descriptor) {
  both_ways([] {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    auto reader = descriptor::adopt(ends[0]);
    auto writer = descriptor::adopt(ends[1]);
    ASSERT_TRUE(reader && writer);
    char got = 0;
    EXPECT_EQ(reader->read(&got, 1, in(5ms)).error(), io_error::timed_out);
    EXPECT_EQ(writer->write("x", 1), 1u);
    EXPECT_EQ(reader->read(&got, 1), 1u);
  });
}

TEST(descriptor, works_from_a_worker_that_did_not_attach_it) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([] {
    pair_of_sockets s;
    const auto read = [&](char expected) {
      return [&s, expected] {
        char got = 0;
        EXPECT_EQ(s.b.read(&got, 1, in(10s)), 1u);
        EXPECT_EQ(got, expected);
      };
    };
    for (int round = 0; round < 20; ++round) {
      pirn::fiber reader = pirn::spawn(read(static_cast<char>('a' + round)), {.worker = round % 2});
      ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));
      const char next = static_cast<char>('a' + round);
      ASSERT_EQ(s.a.write(&next, 1), 1u);
      reader.join();
    }
  });
}

TEST(descriptor, outlives_its_runtime_and_serves_the_next) {
  pair_of_sockets s;
  for (int round = 0; round < 2; ++round) {
    pirn::runtime runtime({.workers = 1});
    runtime.run([&] {
      pirn::fiber writer = pirn::spawn([&] {
        ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
        ASSERT_EQ(s.a.write("x", 1), 1u);
      });
      char got = 0;
      EXPECT_EQ(s.b.read(&got, 1, in(10s)), 1u);
      writer.join();
    });
  }
}

TEST(descriptor, outlives_its_runtime_and_serves_two_workers_of_the_next) {
  const std::string much(1 << 20, 'm');
  for (int round = 0; round < 20; ++round) {
    pair_of_sockets s;
    pirn::runtime({.workers = 1}).run([&] {
      char got = 0;
      EXPECT_EQ(s.b.read(&got, 1, in(1ms)).error(), io_error::timed_out);
    });
    pirn::runtime next({.workers = 2});
    std::atomic<int> begun = 0;
    const auto together = [&] {
      ++begun;
      while (begun < 2) {
      }
    };
    pirn::fiber reader = next.spawn(
        [&] {
          together();
          char got = 0;
          EXPECT_EQ(s.b.read(&got, 1, in(10s)), 1u);
        },
        {.worker = 0});
    pirn::fiber writer = next.spawn(
        [&] {
          together();
          while (s.b.write(much.data(), much.size(), in(1ms))) {
          }
          EXPECT_EQ(s.a.write("x", 1), 1u);
        },
        {.worker = 1});
    reader.join();
    writer.join();
  }
}

TEST(descriptor, a_fiber_that_waits_at_the_engine_of_another_runtime_outlasts_that) {
  pair_of_sockets s;
  pirn::runtime stays({.workers = 1});
  pirn::fiber reader;
  {
    pirn::runtime goes({.workers = 1});
    goes.run([&] {
      char got = 0;
      EXPECT_EQ(s.b.read(&got, 1, in(1ms)).error(), io_error::timed_out);
    });
    reader = stays.spawn([&] {
      char got = 0;
      EXPECT_EQ(s.b.read(&got, 1, in(10s)), 1u);
    });
    std::this_thread::sleep_for(5ms);
  }
  ASSERT_EQ(s.a.write("x", 1), 1u);
  reader.join();
}

TEST(descriptor, readiness_is_only_a_hint) {
  // One byte, two readers: both are woken. One finds nothing and must continue to wait instead of failing.
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    pair_of_sockets s;
    int done = 0;
    const auto read = [&] {
      char got = 0;
      EXPECT_EQ(s.b.read(&got, 1, in(10s)), 1u);
      ++done;
    };
    pirn::fiber one = pirn::spawn(read);
    pirn::fiber two = pirn::spawn(read);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    ASSERT_EQ(s.a.write("x", 1), 1u);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(10ms));
    EXPECT_EQ(done, 1);
    ASSERT_EQ(s.a.write("y", 1), 1u);
    one.join();
    two.join();
    EXPECT_EQ(done, 2);
  });
}

TEST(descriptor, lets_others_run_though_it_never_waits) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    descriptor zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    int reads = 0;
    bool ran = false;
    pirn::fiber other = pirn::spawn([&] { ran = true; });
    while (!ran && reads < 1000) {
      char got = 0;
      ASSERT_EQ(zero.read(&got, 1), 1u);
      ++reads;
    }
    EXPECT_LE(reads, 64);
    other.join();
  });
}

/// Sends a text together with a descriptor, which ends a read of the other side.
void send_with_descriptor(const descriptor& to, std::string_view text) {
  const descriptor passed(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::iovec bytes{const_cast<char*>(text.data()), text.size()};
  alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  ::msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ::cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = passed.native();
  std::memcpy(CMSG_DATA(rights), &number, sizeof number);
  ASSERT_EQ(::sendmsg(to.native(), &message, 0), static_cast<ssize_t>(text.size()));
}

TEST(descriptor, a_short_read_between_passed_descriptors_is_not_all) {
  pirn::runtime({.workers = 1}).run([] {
    pair_of_sockets s;
    std::string got;
    pirn::fiber reader = pirn::spawn([&] {
      char text[100];
      for (;;) {
        const auto more = s.b.receive(text, sizeof text, in(10s));
        if (!more || *more == 0) {
          EXPECT_TRUE(more) << more.error().message();
          return;
        }
        got.append(text, *more).append(1, '|');
      }
    });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));  // it waits
    send_with_descriptor(s.a, "first");
    send_with_descriptor(s.a, "second");
    ASSERT_EQ(s.a.write("third", 5), 5u);
    const auto limit = in(5s);
    while (got.size() < 18 && std::chrono::steady_clock::now() < limit) {
      ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));
    }
    EXPECT_EQ(got, "first|second|third|");  // before the end of the stream reports anything
    s.a.close();
    reader.join();
  });
}

TEST(descriptor, a_call_keeps_the_number_from_a_close_elsewhere) {
  pair_of_sockets s;
  struct stage {
    std::atomic<bool> inside = false;
    std::atomic<bool> leave = false;
  } now;
  std::thread user([&] {
    const descriptor::syscall look = [](int native, void* argument) noexcept -> std::int64_t {
      auto& there = *static_cast<stage*>(argument);
      there.inside = true;
      while (!there.leave) {
      }
      return ::fcntl(native, F_GETFD) >= 0 ? 1 : -EBADF;
    };
    EXPECT_EQ(std::as_const(s.a).invoke(look, &now), 1);
    EXPECT_EQ(std::as_const(s.a).invoke(look, &now).error(), io_error::closed);
  });
  while (!now.inside) {
  }
  std::thread closer([&] { s.a.close(); });
  while (s.a.is_open()) {
  }
  now.leave = true;
  closer.join();
  user.join();
  EXPECT_EQ(s.a.native(), -1);
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
// Sanitizers check the memory of a system call before the kernel does.
TEST(descriptor, a_kernel_write_into_a_guard_is_an_overflow) {
  pirn::guarded_pool pool;
  const pirn::stack memory = pool.allocate(65536).value;
  pair_of_sockets s;
  ASSERT_EQ(s.a.write("x", 1), 1u);
  char* const guard = reinterpret_cast<char*>(memory.limit()) - 4096;
  const auto got = s.b.read(guard, 16);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error(), io_error::stack_overflow);
  EXPECT_EQ(s.b.read(reinterpret_cast<void*>(8), 16).error(), std::errc::bad_address);
  EXPECT_NE(s.b.read(reinterpret_cast<void*>(8), 16).error(), std::error_code(io_error::stack_overflow));
  pool.deallocate(memory);
}
#endif

TEST(descriptor, moves_and_releases) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    pair_of_sockets s;
    char got = 0;
    ASSERT_FALSE(s.b.read(&got, 1, in(1ms)));  // attached now
    descriptor moved = std::move(s.b);
    EXPECT_FALSE(s.b.is_open());
    ASSERT_EQ(s.a.write("x", 1), 1u);
    EXPECT_EQ(moved.read(&got, 1), 1u);
    const int native = moved.release();
    EXPECT_FALSE(moved.is_open());
    EXPECT_GE(::fcntl(native, F_GETFD), 0);
    descriptor again(native);
    ASSERT_EQ(s.a.write("x", 1), 1u);
    EXPECT_EQ(again.read(&got, 1), 1u);
    s.a = std::move(again);
    EXPECT_EQ(s.a.read(&got, 1), 0u);  // the other end was closed by the assignment
  });
}

// A static object outlives a static runtime that is made after it.
TEST(descriptor_death, a_process_ends_beside_a_read_whose_runtime_is_gone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::alarm(20);
        static pair_of_sockets sockets;
        static pirn::runtime rt({.workers = 1});
        static std::atomic<bool> reads = false;
        rt.spawn([] {
            char c = 0;
            reads = true;
            static_cast<void>(sockets.a.read(&c, 1));
          }).detach();
        while (!reads) {
          std::this_thread::yield();
        }
        rt.run([] { pirn::this_fiber::yield(); });
        std::exit(5);
      },
      testing::ExitedWithCode(5), "");
}

}  // namespace
