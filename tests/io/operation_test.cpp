// Operations of every kind, on a fiber and on a plain thread: their results, deadlines, stops and closes.
#include "pirn/io/expert/operation.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "pirn/fiber/runtime.hpp"

namespace {

using namespace std::chrono_literals;
using pirn::descriptor;
using pirn::io_error;
using pirn::operation;
using pirn::perform;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

struct pair_of_sockets {
  explicit pair_of_sockets(int type = SOCK_STREAM) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    a = descriptor(ends[0]);
    b = descriptor(ends[1]);
  }
  descriptor a, b;
};

struct pair_of_pipe_ends {
  pair_of_pipe_ends() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    out = descriptor(ends[0]);
    in = descriptor(ends[1]);
  }
  descriptor out, in;
};

/// An empty file without a name.
descriptor temporary_file(int flags = 0) {
  const auto opened = perform(operation::open("/tmp", O_RDWR | O_TMPFILE | flags, 0600));
  EXPECT_TRUE(opened) << opened.error().message();
  return descriptor(static_cast<int>(opened.value_or(-1)));
}

::iovec part(std::string& text) { return {text.data(), text.size()}; }

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

/// Runs two bodies as fibers of two workers; the second begins once the first probably waits.
template <class First, class Second>
void beside(First first, Second second) {
  pirn::runtime runtime({.workers = 2});
  runtime.run([&] {
    pirn::fiber waits = pirn::spawn(first, {.worker = 1});
    ASSERT_TRUE(pirn::this_fiber::sleep_for(3ms));
    second(waits);
    waits.join();
  });
}

TEST(socket_operation, bytes_are_sent_and_received) {
  both_ways([] {
    pair_of_sockets s;
    char got[16];
    EXPECT_EQ(perform(operation::send(s.a, "hello", 5)), 5);
    EXPECT_EQ(perform(operation::receive(s.b, got, sizeof got, MSG_PEEK)), 5);
    EXPECT_EQ(perform(operation::receive(s.b, got, sizeof got)), 5);
    EXPECT_EQ(std::string_view(got, 5), "hello");
    s.a.close();
    EXPECT_EQ(perform(operation::receive(s.b, got, sizeof got)), 0);
    EXPECT_EQ(perform(operation::send(s.b, "x", 1)).error(), std::errc::broken_pipe);
  });
}

TEST(socket_operation, a_receive_waits_for_bytes) {
  pair_of_sockets s;
  char got = 0;
  beside([&] { EXPECT_EQ(perform(operation::receive(s.b, &got, 1)), 1); },
         [&](pirn::fiber&) { EXPECT_EQ(perform(operation::send(s.a, "x", 1)), 1); });
  EXPECT_EQ(got, 'x');
}

TEST(socket_operation, messages_keep_their_borders) {
  both_ways([] {
    pair_of_sockets s(SOCK_DGRAM);
    std::string sent = "message", got(16, ' ');
    ::iovec from = part(sent), into = part(got);
    ::msghdr out{}, message{};
    out.msg_iov = &from;
    message.msg_iov = &into;
    out.msg_iovlen = message.msg_iovlen = 1;
    EXPECT_EQ(perform(operation::receive_message(s.b, message), in(2ms)).error(), io_error::timed_out);
    EXPECT_EQ(perform(operation::send_message(s.a, out)), 7);
    EXPECT_EQ(perform(operation::send_message(s.a, out)), 7);
    EXPECT_EQ(perform(operation::receive_message(s.b, message)), 7);
    EXPECT_EQ(got.substr(0, 8), "message ");
  });
}

TEST(socket_operation, connections_are_made_and_accepted) {
  both_ways([] {
    descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<::sockaddr*>(&at);
    ASSERT_EQ(::bind(listener.native(), name, sizeof at), 0);
    ASSERT_EQ(::listen(listener.native(), 8), 0);
    ::socklen_t size = sizeof at;
    ASSERT_EQ(::getsockname(listener.native(), name, &size), 0);
    EXPECT_EQ(perform(operation::accept(listener), in(2ms)).error(), io_error::timed_out);
    descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(perform(operation::connect(client, name, sizeof at)), 0);
    ::sockaddr_in peer{};
    size = sizeof peer;
    descriptor server(
        static_cast<int>(perform(operation::accept(listener, reinterpret_cast<::sockaddr*>(&peer), &size)).value()));
    EXPECT_EQ(peer.sin_family, AF_INET);
    EXPECT_EQ(::fcntl(server.native(), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    EXPECT_EQ(::fcntl(server.native(), F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(perform(operation::send(client, "x", 1)), 1);
    char got = 0;
    EXPECT_EQ(perform(operation::receive(server, &got, 1)), 1);
    listener.close();
    descriptor refused(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(perform(operation::connect(refused, name, sizeof at)).error(), std::errc::connection_refused);
  });
}

TEST(stream_operation, parts_are_gathered_and_scattered) {
  both_ways([] {
    pair_of_pipe_ends p;
    std::string first = "ab", second = "cdef", left(4, ' '), right(4, ' ');
    const ::iovec from[] = {part(first), part(second)}, into[] = {part(left), part(right)};
    EXPECT_EQ(perform(operation::read(p.out, into), in(2ms)).error(), io_error::timed_out);
    EXPECT_EQ(perform(operation::write(p.in, from)), 6);
    EXPECT_EQ(perform(operation::poll(p.out, pirn::io_direction::read)), 0);
    EXPECT_EQ(perform(operation::read(p.out, into)), 6);
    EXPECT_EQ(left + right, "abcdef  ");
    EXPECT_EQ(perform(operation::poll(p.out, pirn::io_direction::read), in(2ms)).error(), io_error::timed_out);
    p.in.close();
    EXPECT_EQ(perform(operation::read(p.out, into)), 0);
  });
}

TEST(stream_operation, splice_waits_for_either_side) {
  both_ways([] {
    pair_of_pipe_ends p;
    pair_of_sockets s;
    EXPECT_EQ(perform(operation::splice(s.b, p.in, 16), in(2ms)).error(), io_error::timed_out);
    EXPECT_EQ(perform(operation::send(s.a, "hello", 5)), 5);
    EXPECT_EQ(perform(operation::splice(s.b, p.in, 16)), 5);
    char got[8];
    EXPECT_EQ(p.out.read(got, sizeof got), 5u);
    while (::write(p.in.native(), got, sizeof got) > 0) {
    }
    EXPECT_EQ(perform(operation::send(s.a, "hello", 5)), 5);
    EXPECT_EQ(perform(operation::splice(s.b, p.in, 16), in(2ms)).error(), io_error::timed_out);
    p.out.close();
    s.b.close();
    EXPECT_EQ(perform(operation::splice(s.b, p.in, 16)).error(), io_error::closed);
    s.a.close();
    p.in.close();
    EXPECT_EQ(perform(operation::splice(s.a, p.in, 16)).error(), io_error::closed);
  });
}

TEST(file_operation, bytes_are_written_and_read_at_positions) {
  both_ways([] {
    descriptor file = temporary_file();
    std::string first = "ab", second = "cdef", left(2, ' '), right(8, ' ');
    const ::iovec from[] = {part(first), part(second)}, into[] = {part(left), part(right)};
    EXPECT_EQ(perform(operation::write_at(file, from, 3)), 6);
    EXPECT_EQ(perform(operation::read_at(file, into, 4)), 5);
    EXPECT_EQ(left + right.substr(0, 3), "bcdef");
    EXPECT_EQ(perform(operation::read_at(file, into, 4, pirn::page_cache::bypass)), 5);
    EXPECT_EQ(perform(operation::read_at(file, into, 9)), 0);
    const std::uint64_t position_of_the_file = ~std::uint64_t{0};  // to some calls of the kernel
    EXPECT_EQ(perform(operation::read_at(file, into, position_of_the_file)).error(), std::errc::invalid_argument);
    EXPECT_EQ(perform(operation::write_at(file, from, position_of_the_file)).error(), std::errc::invalid_argument);
    EXPECT_EQ(perform(operation::sync(file)), 0);
    EXPECT_EQ(perform(operation::sync(file, pirn::sync_scope::data)), 0);
    struct ::statx about{};
    EXPECT_EQ(perform(operation::stat(file, about)), 0);
    EXPECT_EQ(about.stx_size, 9u);
  });
}

TEST(file_operation, paths_are_opened_and_asked_about) {
  both_ways([] {
    struct ::statx about{};
    EXPECT_EQ(perform(operation::stat("/dev/null", about)), 0);
    EXPECT_TRUE(S_ISCHR(about.stx_mode));
    EXPECT_EQ(perform(operation::stat("/dev/no_such_file", about)).error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(perform(operation::open("/dev/no_such_file", O_RDONLY)).error(), std::errc::no_such_file_or_directory);
    const descriptor folder(static_cast<int>(perform(operation::open("/dev", O_RDONLY | O_DIRECTORY)).value()));
    const descriptor null(static_cast<int>(perform(operation::open("null", O_RDONLY, 0, folder.native())).value()));
    EXPECT_EQ(::fcntl(null.native(), F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(perform(operation::stat("null", about, 0, STATX_TYPE, folder.native())), 0);
  });
}

TEST(file_operation, an_error_of_the_kernel_is_the_result) {
  both_ways([] {
    descriptor folder(static_cast<int>(perform(operation::open("/", O_RDONLY)).value()));
    std::string text = "abc";
    const ::iovec parts[] = {part(text)};
    EXPECT_EQ(perform(operation::read_at(folder, parts, 0)).error(), std::errc::is_a_directory);
    EXPECT_EQ(perform(operation::write_at(folder, parts, 0)).error(), std::errc::bad_file_descriptor);
    folder.close();
    EXPECT_EQ(perform(operation::read_at(folder, parts, 0)).error(), io_error::closed);
    EXPECT_EQ(perform(operation::sync(folder)).error(), io_error::closed);
  });
}

TEST(file_operation, the_pool_runs_any_other_call) {
  both_ways([] {
    descriptor file = temporary_file();
    ::off_t size = 100;
    const descriptor::syscall truncate = [](int native, void* argument) noexcept -> std::int64_t {
      EXPECT_EQ(pirn::detail::current_worker(), nullptr);
      return ::ftruncate(native, *static_cast<::off_t*>(argument)) == 0 ? 0 : -errno;
    };
    EXPECT_EQ(perform(operation::call(truncate, &size, &file)), 0);
    EXPECT_EQ(perform(operation::call(truncate, &size)).error(), std::errc::bad_file_descriptor);
  });
}

TEST(file_operation, without_a_pool_only_cached_reads_are_possible) {
  descriptor file = temporary_file();
  std::string text = "abc";
  const ::iovec parts[] = {part(text)};
  EXPECT_EQ(perform(operation::write_at(file, parts, 0)), 3);
  pirn::runtime runtime({.workers = 1, .max_blocking_threads = 0});
  runtime.run([&] {
    const auto read = perform(operation::read_at(file, parts, 0));
    EXPECT_TRUE(read == 3 || read.error() == std::errc::operation_not_permitted);  // as the file system can
    const descriptor::syscall nothing = [](int, void*) noexcept -> std::int64_t { return 0; };
    EXPECT_EQ(perform(operation::call(nothing, nullptr)).error(), std::errc::operation_not_permitted);
  });
}

TEST(file_operation, a_close_waits_for_it) {
  descriptor file = temporary_file();
  static std::atomic<bool> under_way;
  under_way = false;
  beside(
      [&] {
        const descriptor::syscall slow = [](int native, void*) noexcept -> std::int64_t {
          under_way = true;
          std::this_thread::sleep_for(10ms);
          return ::fcntl(native, F_GETFD);
        };
        EXPECT_EQ(perform(operation::call(slow, nullptr, &file)), FD_CLOEXEC);
      },
      [&](pirn::fiber&) {
        while (!under_way) {
          pirn::this_fiber::yield();
        }
        file.close();
      });
}

TEST(an_operation, ends_at_its_deadline) {
  both_ways([] {
    pair_of_sockets s;
    descriptor file = temporary_file();
    std::string text = "abc";
    const ::iovec parts[] = {part(text)};
    EXPECT_EQ(perform(operation::send(s.a, "x", 1)), 1);
    EXPECT_EQ(perform(operation::receive(s.b, text.data(), 1), in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(perform(operation::write_at(file, parts, 0), in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(perform(operation::open("/", O_RDONLY), in(-1ms)).error(), io_error::timed_out);
    EXPECT_EQ(perform(operation::receive(s.b, text.data(), 1), in(10s)), 1);
    EXPECT_EQ(perform(operation::receive(s.b, text.data(), 1), in(2ms)).error(), io_error::timed_out);
  });
}

TEST(an_operation, ends_at_a_stop) {
  pair_of_sockets s;
  beside(
      [&] {
        char got = 0;
        EXPECT_EQ(perform(operation::receive(s.b, &got, 1)).error(), io_error::stopped);
        EXPECT_EQ(perform(operation::open("/", O_RDONLY)).error(), io_error::stopped);
        EXPECT_EQ(perform(operation::send(s.b, "x", 1)).error(), io_error::stopped);
      },
      [](pirn::fiber& waits) { waits.request_stop(); });
}

TEST(an_operation, ends_at_a_close) {
  pair_of_sockets s;
  beside(
      [&] {
        char got = 0;
        EXPECT_EQ(perform(operation::receive(s.b, &got, 1)).error(), io_error::closed);
        EXPECT_EQ(perform(operation::receive(s.b, &got, 1)).error(), io_error::closed);
      },
      [&](pirn::fiber&) { s.b.close(); });
}

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
// Sanitizers check the memory of a system call before the kernel does.
TEST(an_operation, whose_buffer_lies_in_a_guard_says_so) {
  both_ways([] {
    pirn::guarded_pool pool;
    const pirn::stack memory = pool.allocate(65536).value;
    char* const guard = reinterpret_cast<char*>(memory.limit()) - 4096;
    pair_of_sockets s;
    EXPECT_EQ(perform(operation::send(s.a, "x", 1)), 1);
    EXPECT_EQ(perform(operation::receive(s.b, guard, 1)).error(), io_error::stack_overflow);
    descriptor zero(static_cast<int>(perform(operation::open("/dev/zero", O_RDONLY)).value()));
    const ::iovec parts[] = {{guard, 1}};
    EXPECT_EQ(perform(operation::read_at(zero, parts, 0)).error(), io_error::stack_overflow);
    pool.deallocate(memory);
  });
}
#endif

TEST(an_operation, that_never_waits_lets_others_run) {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    descriptor file = temporary_file();
    std::string text = "abc";
    const ::iovec parts[] = {part(text)};
    EXPECT_EQ(perform(operation::write_at(file, parts, 0)), 3);
    bool ran = false;
    pirn::fiber other = pirn::spawn([&] { ran = true; });
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(perform(operation::read_at(file, parts, 0)), 3);
    }
    EXPECT_TRUE(ran);
    other.join();
  });
}

}  // namespace
