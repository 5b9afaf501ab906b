// The engine on io_uring: files, sockets and wake-ups by it, with each feature of the kernel masked; the choice of the
// engine, and what a dump says about it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "detail/sandbox.hpp"
#include "pirn/fiber/expert/engine.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/io/expert/operation.hpp"
#include "pirn/io/expert/stream_parts.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::descriptor;
using pirn::engine_kind;
using pirn::io_error;
using pirn::operation;
using pirn::perform;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// A variable of the environment, for as long as this exists.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) {
      before_ = old;
    }
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~variable() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

std::string dump_of(pirn::runtime& runtime) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  runtime.dump(ends[1]);
  ::close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  return text;
}

bool dump_has(const pirn::runtime_options& options, const char* text) {
  pirn::runtime runtime(options);
  const std::string all = dump_of(runtime);
  return all.find(text) != std::string::npos || (std::fputs(all.c_str(), stderr), false);
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

::iovec part(std::string& text) { return {text.data(), text.size()}; }

void read_and_write_a_file() {
  descriptor file(static_cast<int>(perform(operation::open("/tmp", O_RDWR | O_TMPFILE, 0600)).value()));
  std::string first = "ab", second = "cdef", got(8, ' ');
  const ::iovec from[] = {part(first), part(second)}, into[] = {part(got)};
  EXPECT_EQ(perform(operation::write_at(file, from, 1)), 6);
  EXPECT_EQ(perform(operation::sync(file)), 0);
  EXPECT_EQ(perform(operation::sync(file, pirn::sync_scope::data)), 0);
  EXPECT_EQ(perform(operation::read_at(file, into, 2, pirn::page_cache::bypass)), 5);
  EXPECT_EQ(got, "bcdef   ");
  struct ::statx about{};
  EXPECT_EQ(perform(operation::stat(file, about)), 0);
  EXPECT_EQ(about.stx_size, 7u);
  EXPECT_EQ(perform(operation::stat("/dev/no_such_file", about)).error(), std::errc::no_such_file_or_directory);
}

void talk(descriptor& a, descriptor& b, int rounds) {
  pirn::fiber other = pirn::spawn(
      [&] {
        for (char byte = 0; perform(operation::receive(b, &byte, 1)).value_or(0) == 1;) {
          EXPECT_EQ(perform(operation::send(b, &byte, 1)), 1);
        }
      },
      {.worker = 1});
  for (int i = 0; i < rounds; ++i) {
    const char sent = static_cast<char>(i);
    char got = 0;
    EXPECT_EQ(perform(operation::send(a, &sent, 1)), 1);
    EXPECT_EQ(perform(operation::receive(a, &got, 1)), 1);
    EXPECT_EQ(got, sent);
  }
  a.close();
  other.join();
}

void use_everything() {
  pirn::runtime runtime({.workers = 2, .engine = engine_kind::uring});
  runtime.run([] {
    read_and_write_a_file();
    pair_of_sockets s, silent;
    talk(s.a, s.b, 100);
    pair_of_sockets lent;
    EXPECT_EQ(lent.a.lend(in(2ms)).error(), io_error::timed_out);
    EXPECT_EQ(perform(operation::send(lent.b, "ab", 2)), 2);
    EXPECT_EQ(lent.a.lend()->text(), "ab");
    char byte;
    EXPECT_EQ(perform(operation::receive(silent.a, &byte, 1), in(2ms)).error(), io_error::timed_out);
    EXPECT_EQ(silent.a.wait(pirn::io_direction::read, in(2ms)).error(), io_error::timed_out);
    pirn::fiber stopped = pirn::spawn(
        [&] { EXPECT_EQ(perform(operation::receive(silent.b, &byte, 1)).error(), io_error::stopped); }, {.worker = 1});
    EXPECT_TRUE(pirn::this_fiber::sleep_for(2ms));
    stopped.request_stop();
  });
}

class masked : public testing::TestWithParam<const char*> {};

TEST_P(masked, everything_works) {
  const variable without("PIRN_URING_WITHOUT", GetParam());
  use_everything();
}

TEST_P(masked, a_ring_survives_the_end_of_another_runtime) {
  const variable without("PIRN_URING_WITHOUT", GetParam());
  pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
  runtime.run([] {
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
    pirn::runtime({.workers = 1, .engine = engine_kind::uring}).run([] {
      EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
    });
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
  });
}

INSTANTIATE_TEST_SUITE_P(uring, masked,
                         testing::Values("", "submit_all", "skip_success", "coop_taskrun", "single_issuer",
                                         "defer_taskrun", "no_sqarray", "registered_ring", "no_iowait",
                                         "multishot_poll", "send", "multishot_receive", "all",
                                         "single_issuer,no_sqarray,registered_ring,no_iowait,multishot_poll",
                                         // as Linux 5.15
                                         "submit_all,skip_success,coop_taskrun,single_issuer,no_sqarray,"
                                         "registered_ring,no_iowait,multishot_receive"));

TEST(uring, a_dump_says_which_engine_runs_and_why) {
  const variable none("PIRN_ENGINE", nullptr);
  EXPECT_TRUE(dump_has({.workers = 1}, "engine: epoll (the default)\n"));
  EXPECT_TRUE(dump_has({.workers = 1, .engine = engine_kind::epoll}, "engine: epoll (runtime_options::engine)\n"));
  EXPECT_TRUE(dump_has({.workers = 1, .make_engine = pirn::make_epoll_engine}, "engine: of the program ("));
  {
    const variable without("PIRN_URING_WITHOUT", "all");
    EXPECT_TRUE(dump_has({.workers = 1, .engine = engine_kind::uring}, "engine: epoll (PIRN_URING_WITHOUT"));
  }
  {
    const variable named("PIRN_ENGINE", "epoll");
    EXPECT_TRUE(dump_has({.workers = 1}, "engine: epoll (PIRN_ENGINE)\n"));
  }
  if (pirn::uring_refusal() == nullptr) {
    const variable named("PIRN_ENGINE", "uring");
    EXPECT_TRUE(dump_has({.workers = 1}, "engine: io_uring (PIRN_ENGINE)\n"));
  }
  const variable wrong("PIRN_ENGINE", "kqueue");
  EXPECT_THROW(pirn::runtime({.workers = 1}), std::system_error);
}

/// Has more requests under way than the queues hold, and ends half of them at once by one write, without a worker that
/// waits. Returns how often the queue of ends was full.
std::uint64_t overflows_of_many_requests() {
  pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
  constexpr int many = 1500;
  int got = 0;
  runtime.run([&] {
    pair_of_sockets s;
    std::vector<pirn::fiber> readers;
    for (int i = 0; i < 2 * many; ++i) {
      readers.push_back(pirn::spawn([&] {
        char byte;
        got += static_cast<int>(perform(operation::receive(s.b, &byte, 1)).value_or(0));
      }));
    }
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
    EXPECT_EQ(s.a.write(std::string(many, 'x').data(), many), static_cast<std::size_t>(many));
    const auto limit = in(30s);
    while (got < many && std::chrono::steady_clock::now() < limit) {
      pirn::this_fiber::yield();
    }
    EXPECT_EQ(got, many);
    for (pirn::fiber& each : readers) {
      each.request_stop();
    }
    for (pirn::fiber& each : readers) {
      each.join();
    }
    EXPECT_EQ(got, many);
  });
  return runtime.statistics(0).overflows;
}

TEST(uring, more_requests_than_the_queues_hold) { overflows_of_many_requests(); }

// Without this feature the kernel ends requests during any system call, here during one write, and not only while the
// engine has room for their ends.
TEST(uring, more_ends_at_once_than_the_queue_holds_are_late_and_not_lost) {
  const variable without("PIRN_URING_WITHOUT", "defer_taskrun");
  if (const char* const refusal = pirn::uring_refusal()) {
    GTEST_SKIP() << refusal;
  }
  EXPECT_GT(overflows_of_many_requests(), 0u);
}

// Sockets, since a read of an eventfd is an event too, which makes the ring look again.
TEST(uring, more_ready_descriptors_than_are_fetched_at_once) {
  pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
  runtime.run([] {
    constexpr int many = 300;
    std::vector<pair_of_sockets> pairs(many);
    std::vector<pirn::fiber> waiters;
    for (pair_of_sockets& each : pairs) {
      waiters.push_back(pirn::spawn([&each] { EXPECT_TRUE(each.b.wait(pirn::io_direction::read, in(10s))); }));
    }
    EXPECT_TRUE(pirn::this_fiber::sleep_for(1ms));
    for (pair_of_sockets& each : pairs) {
      EXPECT_EQ(::write(each.a.native(), "x", 1), 1);
    }
    for (pirn::fiber& each : waiters) {
      each.join();
    }
  });
}

TEST(uring, a_stream_is_read_by_every_kind_of_caller) {
  pair_of_sockets s;
  char byte = 0;
  for (const engine_kind kind : {engine_kind::uring, engine_kind::epoll, engine_kind::uring}) {
    pirn::runtime runtime({.workers = 1, .engine = kind});
    runtime.run([&] {
      EXPECT_EQ(s.b.receive(&byte, 1, in(2ms)).error(), io_error::timed_out);
      EXPECT_EQ(s.a.write("ab", 2), 2u);
      EXPECT_EQ(s.b.receive(&byte, 1), 1u);
      EXPECT_EQ(byte, 'a');
    });
    EXPECT_EQ(s.b.receive(&byte, 1), 1u);  // on a plain thread
    EXPECT_EQ(byte, 'b');
  }
}

// ThreadSanitizer has to know that.
TEST(uring, bytes_order_what_their_sender_did_before_what_their_receiver_does) {
  pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
  pair_of_sockets s;
  std::thread sender;
  int value = 0;
  runtime.run([&] {
    pirn::fiber starter = pirn::spawn([&] {
      sender = std::thread([&] {
        value = 1;
        EXPECT_EQ(::send(s.a.native(), "x", 1, 0), 1);
      });
    });
    char byte;
    EXPECT_EQ(perform(operation::receive(s.b, &byte, 1)), 1);
    EXPECT_EQ(value, 1);
    starter.join();
  });
  sender.join();
}

/// Sends a byte while another fiber of the worker is ready.
pirn::result<std::int64_t> send_beside_another(descriptor& to) {
  pirn::fiber other = pirn::spawn([] {});
  const auto sent = perform(operation::send(to, "x", 1));
  other.join();
  return sent;
}

TEST(uring, bytes_of_a_request_order_too) {
  pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
  pair_of_sockets s;
  int value = 0;
  std::thread receiver([&] {
    char byte = 0;
    EXPECT_EQ(s.b.receive(&byte, 1), 1u);
    EXPECT_EQ(value, 1);
  });
  runtime.run([&] {
    value = 1;
    EXPECT_EQ(send_beside_another(s.a), 1);
  });
  receiver.join();
}

TEST(uring, idle_workers_wait_without_cpu_time) {
  pirn::runtime runtime({.workers = 2, .engine = engine_kind::uring});
  runtime.run([] { EXPECT_TRUE(pirn::this_fiber::sleep_for(2ms)); });
  const std::clock_t before = std::clock();
  runtime.run([] { EXPECT_TRUE(pirn::this_fiber::sleep_for(60ms)); });
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 50);
}

class uring_death : public testing::Test {
 protected:
  uring_death() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// A container may refuse the ring or, what is worse, its use.
TEST_F(uring_death, a_container_refuses_it) {
  if (!pirn_test::can_refuse_calls()) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  const struct {
    long call;
    const char* reason;
  } refusals[] = {{425, "engine: epoll (io_uring is forbidden"}, {426, "engine: epoll (the kernel does not carry out"}};
  for (const auto& refusal : refusals) {
    EXPECT_EXIT(
        {
          pirn_test::refuse_calls({refusal.call}, EPERM);
          const bool said = dump_has({.workers = 1, .engine = engine_kind::uring}, refusal.reason);
          use_everything();
          std::_Exit(said && !testing::Test::HasFailure() ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << refusal.reason;
  }
}

// Such a profile is older than the call.
TEST_F(uring_death, files_are_read_where_a_container_refuses_preadv2) {
  if (!pirn_test::can_refuse_calls()) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  for (const engine_kind each : {engine_kind::epoll, engine_kind::uring}) {
    EXPECT_EXIT(
        {
          pirn_test::refuse_calls({SYS_preadv2}, EPERM);
          pirn::runtime({.workers = 1, .engine = each}).run([] {
            descriptor file(static_cast<int>(perform(operation::open("/tmp", O_RDWR | O_TMPFILE, 0600)).value()));
            std::string text = "abc";
            const ::iovec parts[] = {part(text)};
            EXPECT_EQ(perform(operation::write_at(file, parts, 0)), 3);
            EXPECT_EQ(perform(operation::read_at(file, parts, 0)), 3);
          });
          std::_Exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST_F(uring_death, no_engine_takes_the_number_of_a_standard_descriptor) {
  for (const engine_kind each : {engine_kind::epoll, engine_kind::uring}) {
    EXPECT_EXIT(
        {
          for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            ::close(standard);
          }
          int open = 0;
          pirn::runtime({.workers = 2, .engine = each}).run([&] {
            for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
              open += ::fcntl(standard, F_GETFD) < 0 ? 0 : 1;
            }
          });
          std::_Exit(open);
        },
        testing::ExitedWithCode(0), "");
  }
}

#if defined(PIRN_TSAN)

/// Performs `into_memory` while a thread writes to the memory, which ThreadSanitizer has to report.
template <class Operation>
void race_with_the_kernel(Operation into_memory) {
  pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
  std::thread other;
  runtime.run([&] {
    char byte = 0;
    other = std::thread([&byte] { static_cast<volatile char&>(byte) = 1; });
    EXPECT_TRUE(pirn::this_fiber::sleep_for(20ms));
    EXPECT_EQ(into_memory(byte), 1);
    other.join();
  });
  std::abort();  // reached only when no race was reported
}

TEST_F(uring_death, a_race_with_a_receive_is_found) {
  EXPECT_DEATH(race_with_the_kernel([](char& byte) {
                 pair_of_sockets s;
                 pirn::fiber sender = pirn::spawn([&] { EXPECT_EQ(s.a.write("x", 1), 1u); });
                 const auto got = perform(operation::receive(s.b, &byte, 1));
                 sender.join();
                 return got;
               }),
               "data race");
}

TEST_F(uring_death, a_race_with_the_read_of_a_file_is_found) {
  EXPECT_DEATH(race_with_the_kernel([](char& byte) {
                 descriptor file(static_cast<int>(perform(operation::open("/proc/self/exe", O_RDONLY)).value()));
                 const ::iovec into[] = {{&byte, 1}};
                 return perform(operation::read_at(file, into, 0, pirn::page_cache::bypass));
               }),
               "data race");
}

#endif

/// Expects that the body returns true in a process in which send(2) fails. Skips the test where that cannot be had.
template <class Body>
void expect_without_sendto(Body body) {
  if (!pirn_test::can_refuse_calls()) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  EXPECT_EXIT(
      {
        pirn_test::refuse_calls({SYS_sendto}, ENOSYS);
        pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
        std::_Exit(runtime.run(body) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(uring_death, a_send_costs_a_call_only_where_no_other_fiber_is_ready) {
  expect_without_sendto([] {
    pair_of_sockets s;
    return send_beside_another(s.a) == 1 && !perform(operation::send(s.a, "x", 1));
  });
}

// It would leave after their turns.
TEST_F(uring_death, a_send_beside_fibers_that_compute_is_a_call) {
  expect_without_sendto([] {
    pair_of_sockets s;
    bool enough = false;
    pirn::fiber computes = pirn::spawn([&] {
      while (!enough) {
        const auto end = in(1ms);
        while (std::chrono::steady_clock::now() < end) {
        }
        pirn::this_fiber::yield();
      }
    });
    for (int i = 0; i < 200; ++i) {
      pirn::this_fiber::yield();
    }
    const auto sent = perform(operation::send(s.a, "x", 1));
    enough = true;
    computes.join();
    return !sent;
  });
}

TEST_F(uring_death, a_request_in_a_forked_process_is_diagnosed) {
  EXPECT_DEATH(
      {
        pirn::runtime runtime({.workers = 1, .engine = engine_kind::uring});
        runtime.run([] {
          descriptor file(static_cast<int>(perform(operation::open("/tmp", O_RDWR | O_TMPFILE, 0600)).value()));
          const auto read = [&] {
            char byte;
            const ::iovec into{&byte, 1};
            static_cast<void>(perform(operation::read_at(file, {&into, 1}, 0, pirn::page_cache::bypass)));
          };
          // Three requests wait until there are four, or for a tick.
          pirn::fiber waiting[] = {pirn::spawn(read), pirn::spawn(read), pirn::spawn(read)};
          pirn::this_fiber::yield();
          if (::fork() == 0) {
            read();
            ::_exit(0);
          }
          int status = 0;
          ::wait(&status);
          if (WIFSIGNALED(status)) {
            std::abort();
          }
        });
      },
      "made by fork uses a runtime of its parent");
}

}  // namespace
