// Ends of pipes, and what may be the standard input: pipes, terminals, sockets and files.
#include "pirn/io/pipe.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "io/sigpipe.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/io/any_stream.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/io/copy.hpp"

/// How the kernel treats pwritev2.
enum class kernel : int {
  as_it_is,
  older,           ///< it has no such write to a pipe
  another_writes,  ///< before the write, another writer takes all room
};
static std::atomic<kernel> treats{kernel::as_it_is};

extern "C" ssize_t pwritev2(int native, const ::iovec* parts, int count, ::off_t offset, int flags) {
  using call = decltype(&::pwritev2);
  static const auto real = reinterpret_cast<call>(::dlsym(RTLD_NEXT, "pwritev2"));
  if (treats == kernel::older) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (treats == kernel::another_writes) {
    const int mode = ::fcntl(native, F_GETFL);
    ::fcntl(native, F_SETFL, mode | O_NONBLOCK);
    for (char some[4096] = {}; ::write(native, some, sizeof some) > 0;) {
    }
    ::fcntl(native, F_SETFL, mode);
  }
  return real(native, parts, count, offset, flags);
}

namespace {

using namespace std::chrono_literals;
using pirn::descriptor;
using pirn::io_error;
using pirn::pipe_end;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}
static_assert(pirn::stream<pipe_end>);

bool blocks(int native) { return (::fcntl(native, F_GETFL) & O_NONBLOCK) == 0; }

/// Runs a body as a fiber and as a plain thread.
template <class Body>
void both_ways(Body body) {
  pirn::runtime({.workers = 1}).run(body);
  body();
}

TEST(pipe_end, what_is_written_is_read_and_then_the_end) {
  both_ways([] {
    auto [from, to] = pipe_end::make_pair().value();
    char text[8];
    EXPECT_EQ(from.read(text, sizeof text, in(2ms)).error(), io_error::timed_out);
    EXPECT_TRUE(to.write("hello"));
    EXPECT_EQ(from.read(text, sizeof text), 5u);
    EXPECT_EQ(std::string(text, 5), "hello");
    EXPECT_EQ(to.read(text, 1).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(from.write_some("x", 1).error(), std::errc::bad_file_descriptor);
    to.close();
    EXPECT_EQ(from.read(text, sizeof text), 0u);
    EXPECT_EQ(to.write("x").error(), io_error::closed);
  });
}

TEST(pipe_end, a_write_is_whole) {
  pirn::runtime({.workers = 1}).run([] {
    auto [from, to] = pipe_end::make_pair().value();
    const std::string much(300'000, 'm');
    pirn::fiber writer = pirn::spawn([&, &end = to] {
      EXPECT_TRUE(end.write(much));
      end.close();
    });
    std::size_t sum = 0;
    char text[4096];
    for (;;) {
      const auto got = from.read(text, sizeof text, in(10s));
      ASSERT_TRUE(got);
      if (*got == 0) {
        break;
      }
      sum += *got;
    }
    EXPECT_EQ(sum, much.size());
    writer.join();
  });
}

TEST(pipe_end, is_a_stream_that_is_copied_and_read_by_lines) {
  pirn::runtime({.workers = 1}).run([] {
    auto first = pipe_end::make_pair().value();
    auto second = pipe_end::make_pair().value();
    const pirn::const_buffer parts[] = {{"one\n", 4}, {"", 0}, {"two\n", 4}};
    EXPECT_TRUE(first.second.write(parts));
    EXPECT_TRUE(first.second.shutdown(pirn::shutdown_half::read)) << "which it does not have";
    ASSERT_TRUE(first.second.is_open());
    EXPECT_TRUE(first.second.shutdown(pirn::shutdown_half::write));
    EXPECT_FALSE(first.second.is_open());
    pirn::any_stream to(std::move(second.second));
    const auto done = pirn::copy(first.first, to);
    EXPECT_TRUE(done);
    EXPECT_EQ(done.written, 8u);
    EXPECT_TRUE(to.shutdown(pirn::shutdown_half::both));
    pirn::buffered_reader lines(second.first);
    EXPECT_EQ(lines.read_line(10), "one");
    EXPECT_EQ(lines.read_line(10), "two");
    EXPECT_EQ(lines.read_line(10).error(), io_error::end_of_stream);
    std::vector<pirn::const_buffer> many(20, {"x", 1});
    many[19] = {"y", 1};
    auto third = pipe_end::make_pair().value();
    EXPECT_EQ(third.second.write_some(many), 16u) << "one call takes no more";
    EXPECT_TRUE(third.second.write(many));
    char text[36];
    EXPECT_TRUE(third.first.read_exactly(text, sizeof text));
    EXPECT_EQ(std::string(text, sizeof text), std::string(35, 'x') + "y");
    EXPECT_TRUE(first.first.shutdown(pirn::shutdown_half::read));
    const auto again = first.first.shutdown(pirn::shutdown_half::read);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error(), io_error::closed);
  });
}

TEST(pipe_end, of_a_socket_or_terminal_shuts_down_what_it_can) {
  both_ways([] {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    auto end = pipe_end::adopt(sockets[0]).value();
    auto other = pipe_end::adopt(sockets[1]).value();
    const pirn::const_buffer parts[] = {{"a", 1}, {"b", 1}};
    EXPECT_TRUE(end.write(parts));
    EXPECT_TRUE(end.shutdown(pirn::shutdown_half::write));
    char text[3];
    EXPECT_EQ(other.read(text, 3), 2u);
    EXPECT_EQ(other.read(text, 3), 0u);
    EXPECT_TRUE(other.write("c"));
    EXPECT_EQ(end.read(text, 3), 1u) << "the other direction stays";
    auto terminal = pipe_end::adopt(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)).value();
    const auto half = terminal.shutdown(pirn::shutdown_half::write);
    ASSERT_FALSE(half);
    EXPECT_EQ(half.error(), std::errc::operation_not_supported);
    EXPECT_TRUE(terminal.shutdown(pirn::shutdown_half::both));
    EXPECT_FALSE(terminal.is_open());
  });
}

TEST(pipe_end, a_stop_and_a_close_end_a_read) {
  pirn::runtime({.workers = 1}).run([] {
    auto ends = pipe_end::make_pair().value();
    io_error wanted = io_error::stopped;
    for (int round = 0; round < 2; ++round) {
      pirn::fiber reader = pirn::spawn([&] {
        char byte;
        EXPECT_EQ(ends.first.read(&byte, 1).error(), wanted);
      });
      pirn::this_fiber::yield();
      round == 0 ? static_cast<void>(reader.request_stop()) : ends.first.close();
      reader.join();
      wanted = io_error::closed;
    }
  });
}

TEST(pipe_end, a_write_without_a_reader_raises_no_signal) {
  both_ways([] {
    struct ::sigaction usual{};
    struct ::sigaction before{};
    usual.sa_handler = SIG_DFL;
    ASSERT_EQ(::sigaction(SIGPIPE, &usual, &before), 0);
    auto [from, to] = pipe_end::make_pair().value();
    from.close();
    EXPECT_EQ(to.write("x").error(), std::errc::broken_pipe);
    ::sigset_t mask;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    EXPECT_EQ(::sigismember(&mask, SIGPIPE), 0);
    // A signal that was pending before stays so.
    ::sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &only, &mask);
    EXPECT_EQ(to.write("x").error(), std::errc::broken_pipe);
    ::sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
    ::pthread_kill(::pthread_self(), SIGPIPE);
    EXPECT_EQ(to.write("x").error(), std::errc::broken_pipe);
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 1);
    const ::timespec at_once{};
    EXPECT_EQ(::sigtimedwait(&only, nullptr, &at_once), SIGPIPE);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    ::sigaction(SIGPIPE, &before, nullptr);
  });
}

/// Puts a descriptor in the place of the standard input until its end.
struct as_input {
  explicit as_input(int native) : before(::dup(STDIN_FILENO)) { ::dup2(native, STDIN_FILENO); }
  ~as_input() {
    ::dup2(before, STDIN_FILENO);
    ::close(before);
  }
  int before;
};

TEST(standard_input, of_any_kind_is_read_and_stays_blocking) {
  both_ways([] {
    int pipe[2];
    int sockets[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_TRUE(master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0);
    const int terminal = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    const descriptor owners[] = {descriptor(pipe[0]),    descriptor(pipe[1]), descriptor(sockets[0]),
                                 descriptor(sockets[1]), descriptor(master),  descriptor(terminal)};
    const int pairs[][2] = {{pipe[0], pipe[1]}, {sockets[0], sockets[1]}, {terminal, master}};
    for (const auto& [end, other] : pairs) {
      const as_input replaced(end);
      auto input = pipe_end::standard(STDIN_FILENO).value();
      char text[8];
      EXPECT_EQ(input.read(text, sizeof text, in(2ms)).error(), io_error::timed_out);
      ASSERT_EQ(::write(other, "hi\n", 3), 3);
      EXPECT_EQ(input.read(text, sizeof text, in(10s)), 3u);
      EXPECT_TRUE(blocks(STDIN_FILENO));
      EXPECT_TRUE(blocks(end));
    }
  });
}

TEST(standard_input, from_a_file_is_read_from_its_position) {
  both_ways([] {
    const int native = ::open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    const descriptor owner(native);
    ASSERT_EQ(::write(native, "one two", 7), 7);
    ::lseek(native, 4, SEEK_SET);
    const as_input replaced(native);
    auto input = pipe_end::standard(STDIN_FILENO).value();
    char text[8];
    EXPECT_EQ(input.read(text, sizeof text), 3u);
    EXPECT_EQ(std::string(text, 3), "two");
    EXPECT_EQ(input.read(text, sizeof text), 0u);
    EXPECT_EQ(::lseek(native, 0, SEEK_CUR), 7) << "the next program continues there";
    auto nothing = pipe_end::adopt(::open("/dev/null", O_RDWR | O_CLOEXEC)).value();
    EXPECT_EQ(nothing.read(text, sizeof text), 0u);
    EXPECT_TRUE(nothing.write("x"));
    auto full = pipe_end::adopt(::open("/dev/full", O_WRONLY | O_CLOEXEC)).value();
    EXPECT_EQ(full.write("x").error(), std::errc::no_space_on_device);
    EXPECT_EQ(pipe_end::adopt(-1).error(), std::errc::bad_file_descriptor);
  });
}

TEST(any_descriptor, of_events_timers_and_changes_of_files_is_waited_for) {
  pirn::runtime({.workers = 1}).run([] {
    descriptor event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    std::uint64_t count = 0;
    EXPECT_EQ(event.read(&count, sizeof count, in(2ms)).error(), io_error::timed_out);
    ASSERT_EQ(::eventfd_write(event.native(), 3), 0);
    EXPECT_EQ(event.read(&count, sizeof count), sizeof count);
    EXPECT_EQ(count, 3u);

    descriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    const ::itimerspec soon{{}, {0, 2'000'000}};
    ASSERT_EQ(::timerfd_settime(timer.native(), 0, &soon, nullptr), 0);
    EXPECT_EQ(timer.read(&count, sizeof count, in(10s)), sizeof count);
    EXPECT_EQ(count, 1u);

    char folder[] = "/tmp/pirn_watch_XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    descriptor changes(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    ASSERT_GE(::inotify_add_watch(changes.native(), folder, IN_DELETE_SELF), 0);
    alignas(::inotify_event) char events[4096];
    EXPECT_EQ(changes.read(events, sizeof events, in(2ms)).error(), io_error::timed_out);
    ::rmdir(folder);
    ASSERT_TRUE(changes.read(events, sizeof events, in(10s)));
    EXPECT_NE(reinterpret_cast<const ::inotify_event*>(events)->mask & IN_DELETE_SELF, 0u);
  });
}

TEST(pipe_end, a_write_that_ends_early_in_the_pool_raises_no_signal) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // blocking
  pirn::runtime({.workers = 1}).run([&] {
    pirn::fiber reader = pirn::spawn([&] {
      char some[16384];
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::milliseconds(20)));
      EXPECT_GT(::read(ends[0], some, sizeof some), 0);
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::milliseconds(20)));
      ::close(ends[0]);
    });
    // As by a pipe that cannot be opened again: the write sleeps in the kernel after it has moved a part.
    const std::string much(1024 * 1024, 'x');
    const auto put = pirn::blocking([&] {
      return pirn::detail::without_sigpipe(much.size(), [&] {
        const ::ssize_t moved = ::write(ends[1], much.data(), much.size());
        return moved >= 0 ? moved : -errno;
      });
    });
    reader.join();
    EXPECT_LT(put, 1024 * 1024);
  });
  ::close(ends[1]);
}

/// Takes over a blocking pipe that cannot be opened again, as one that another user has opened.
pirn::result<pipe_end> adopt_of_another_user(int native) {
  ::fchmod(native, 0);
  const bool privileged = ::geteuid() == 0;
  if (privileged) {
    ::setfsuid(65534);
  }
  auto made = pipe_end::adopt(native);
  if (privileged) {
    ::setfsuid(0);
  }
  return made;
}

class pipe_in_the_pool : public testing::TestWithParam<kernel> {
 protected:
  pipe_in_the_pool() { treats = GetParam(); }
  ~pipe_in_the_pool() override { treats = kernel::as_it_is; }
};
INSTANTIATE_TEST_SUITE_P(pipe_end, pipe_in_the_pool, testing::Values(kernel::as_it_is, kernel::older));

TEST_P(pipe_in_the_pool, ends_a_write_with_its_deadline_or_a_stop) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  pirn::runtime({.workers = 1}).run([&] {
    auto out = adopt_of_another_user(ends[1]).value();
    EXPECT_EQ(::fcntl(out.native(), F_GETFL) & O_NONBLOCK, 0);
    const std::string much(1 << 20, 'x');
    EXPECT_EQ(out.write(much, in(20ms)).error(), io_error::timed_out);
    pirn::fiber stopped = pirn::spawn([&] { EXPECT_EQ(out.write(much).error(), io_error::stopped); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(5ms));
    stopped.request_stop();
    stopped.join();
    auto room = pipe_end::adopt(ends[0]).value();
    char some[16384];
    ASSERT_TRUE(room.read_exactly(some, sizeof some));
    EXPECT_TRUE(out.write("again", in(10s)));
  });
}

/// A terminal's other side, which cannot be opened anew. If the test takes two seconds it gets input, so that a read
/// which ignores its deadline ends and is seen.
struct other_side {
  other_side() {
    EXPECT_TRUE(::grantpt(end.native()) == 0 && ::unlockpt(end.native()) == 0);
    terminal = descriptor(::open(::ptsname(end.native()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    too_late = std::thread([this, over = is_over.get_future()] {
      if (over.wait_for(2s) == std::future_status::timeout) {
        write("late");
      }
    });
  }
  ~other_side() {
    is_over.set_value();
    too_late.join();
  }
  void write(std::string_view text) {
    EXPECT_EQ(::write(terminal.native(), text.data(), text.size()), static_cast<::ssize_t>(text.size()));
  }
  pipe_end end = pipe_end::adopt(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)).value();
  descriptor terminal;
  std::promise<void> is_over;
  std::thread too_late;
};

TEST(pipe_end, in_the_pool_is_read_until_the_deadline) {
  both_ways([] {
    other_side of;
    char text[8];
    const auto late = of.end.read(text, sizeof text, in(60ms));  // a plain thread looks at the descriptor after 50 ms
    EXPECT_TRUE(!late && late.error() == io_error::timed_out);
    of.write("a");
    EXPECT_EQ(of.end.read(text, sizeof text, in(10s)), 1u);
  });
}

TEST(pipe_end, in_the_pool_is_read_by_another_caller_meanwhile) {
  // With one thread the second of them asks after the first has read.
  pirn::runtime({.workers = 1, .max_blocking_threads = 1}).run([] {
    other_side of;
    int took = 0;
    const auto read = [&] {
      char text[8];
      const auto got = of.end.read(text, sizeof text, in(10s));
      took += got ? 1 : 0;
      EXPECT_TRUE(got ? *got == 1 : got.error() == io_error::stopped);
    };
    pirn::fiber one = pirn::spawn(read);
    pirn::fiber two = pirn::spawn(read);
    ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));  // both wait
    of.write("a");
    while (took == 0) {
      ASSERT_TRUE(pirn::this_fiber::sleep_for(1ms));
    }
    one.request_stop();
    two.request_stop();
    one.join();
    two.join();
    EXPECT_EQ(took, 1);
  });
}

TEST(pipe_end, a_write_in_the_pool_finds_no_room_any_more) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  pirn::runtime({.workers = 1}).run([&] {
    auto out = adopt_of_another_user(ends[1]).value();
    treats = kernel::another_writes;
    const auto put = out.write("late", in(20ms));
    treats = kernel::as_it_is;
    EXPECT_EQ(put.error(), io_error::timed_out);
  });
  ::close(ends[0]);
}

}  // namespace
