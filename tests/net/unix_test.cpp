// Unix sockets: addresses, streams, listeners and their files, datagrams, passed descriptors, credentials.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "net/support.hpp"
#include "pirn/net/acceptor.hpp"
#include "pirn/net/unix_datagram_socket.hpp"
#include "pirn/net/unix_listener.hpp"
#include "pirn/net/unix_stream.hpp"

namespace {

using namespace test;
using pirn::descriptor;
using pirn::io_error;
using pirn::unix_address;
using pirn::unix_datagram_socket;
using pirn::unix_listener;
using pirn::unix_stream;

/// A folder that is removed with all that the test leaves in it.
class folder {
 public:
  folder() { EXPECT_NE(::mkdtemp(name_.data()), nullptr); }
  ~folder() { std::filesystem::remove_all(name_); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  [[nodiscard]] std::string path(const char* file = "socket") const { return name_ + "/" + file; }

 private:
  std::string name_ = "/tmp/pirn_unix_XXXXXX";
};

unix_address at(const std::string& path) { return unix_address::path(path).value(); }
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Binds a socket to the path, as a program does that is about to crash.
descriptor crashing(const std::string& path, int type) {
  descriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  ::sockaddr_un name{AF_UNIX, {}};
  path.copy(name.sun_path, sizeof name.sun_path);
  EXPECT_EQ(::bind(socket.native(), reinterpret_cast<const ::sockaddr*>(&name), sizeof name), 0);
  return socket;
}

/// Counts this process's open descriptors.
int open_descriptors() {
  int count = 0;
  for (int i = 0; i < 256; ++i) {
    count += ::fcntl(i, F_GETFD) >= 0 ? 1 : 0;
  }
  return count;
}

struct file_pair {
  file_pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reading = descriptor(ends[0]);
    writing = descriptor(ends[1]);
  }
  descriptor reading, writing;
};

TEST(unix_address, is_a_path_or_an_abstract_name_or_none) {
  const unix_address path = unix_address::parse("/run/x").value();
  EXPECT_TRUE(path.is_path() && !path.is_abstract());
  EXPECT_EQ(path.name(), "/run/x");
  EXPECT_EQ(path.to_string(), "/run/x");
  const unix_address abstract = unix_address::parse("@x").value();
  EXPECT_TRUE(abstract.is_abstract() && !abstract.is_path());
  EXPECT_EQ(abstract.name(), "x");
  EXPECT_EQ(abstract.to_string(), "@x");
  EXPECT_NE(path, abstract);
  EXPECT_EQ(unix_address::abstract(std::string_view("a\0b", 3)).value().name(), std::string_view("a\0b", 3));
  EXPECT_EQ(unix_address().to_string(), "");
  EXPECT_FALSE(unix_address().is_path() || unix_address().is_abstract());
}

TEST(unix_address, has_limits) {
  EXPECT_TRUE(unix_address::path(std::string(107, 'x')));
  EXPECT_TRUE(unix_address::abstract(std::string(107, 'x')));
  EXPECT_EQ(unix_address::path(std::string(108, 'x')).error(), std::errc::filename_too_long);
  EXPECT_EQ(unix_address::abstract(std::string(108, 'x')).error(), std::errc::filename_too_long);
  EXPECT_EQ(unix_address::path("").error(), io_error::bad_syntax);
  EXPECT_EQ(unix_address::parse("@").error(), io_error::bad_syntax);
  EXPECT_EQ(unix_address::path(std::string_view("a\0b", 3)).error(), io_error::bad_syntax);
}

TEST(unix_address, the_longest_ones_reach_the_kernel_and_come_back) {
  for (const unix_address& each : {unix_address::abstract(std::string(107, 'x')).value(),
                                   unix_address::path("/tmp/" + std::string(102, 'x')).value()}) {
    auto listener = unix_listener::listen(each);
    ASSERT_TRUE(listener) << listener.error().message();
    EXPECT_EQ(listener->local_address(), each);
    EXPECT_TRUE(unix_stream::connect(each));
  }
}

TEST(unix_stream, carries_bytes_both_ways_and_ends) {
  both_ways([] {
    auto [one, other] = unix_stream::pair().value();
    ASSERT_TRUE(one.write("ping"));
    char text[8];
    ASSERT_TRUE(other.read_exactly(text, 4));
    EXPECT_EQ(std::string_view(text, 4), "ping");
    const pirn::const_buffer parts[] = {{"p", 1}, {"on", 2}, {"g", 1}};
    ASSERT_TRUE(other.write(parts));
    EXPECT_EQ(one.read(text, sizeof text), 4u);
    ASSERT_TRUE(one.shutdown(pirn::shutdown_half::write));
    EXPECT_EQ(other.read(text, sizeof text), 0u);
    ASSERT_TRUE(other.write("x"));
    other.close();
    EXPECT_FALSE(other.is_open());
    EXPECT_EQ(one.read(text, sizeof text), 1u);
    EXPECT_EQ(one.read(text, sizeof text), 0u);
    EXPECT_EQ(one.write("x").error(), std::errc::broken_pipe);  // and no signal
    EXPECT_EQ(one.local_address(), unix_address());
  });
}

TEST(unix_stream, a_peer_that_closes_with_unread_data_resets) {
  auto [one, other] = unix_stream::pair().value();
  ASSERT_TRUE(one.write("unread"));
  other.close();
  char byte;
  EXPECT_EQ(one.read(&byte, 1).error(), std::errc::connection_reset);
}

TEST(unix_stream, waits_end_by_a_deadline_a_stop_and_a_close) {
  pirn::runtime({.workers = 1}).run([] {
    auto [one, other] = unix_stream::pair().value();
    char byte;
    EXPECT_EQ(one.read(&byte, 1, 2ms).error(), io_error::timed_out);
    EXPECT_EQ(one.receive_descriptors({}, &byte, 1, 2ms).error(), io_error::timed_out);
    stop_while_blocked([&] { EXPECT_EQ(one.receive_descriptors({}, &byte, 1).error(), io_error::stopped); });
    stop_while_blocked([&] { EXPECT_EQ(one.write(std::string(1 << 20, 'x')).error(), io_error::stopped); });
    pirn::fiber reader = pirn::spawn([&] { EXPECT_EQ(one.read(&byte, 1).error(), io_error::closed); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    one.close();
    reader.join();
    EXPECT_EQ(unix_stream().read(&byte, 1).error(), io_error::closed);
  });
}

TEST(unix_stream, knows_its_peer) {
  folder in_here;
  auto listener = unix_listener::listen(at(in_here.path())).value();
  auto client = unix_stream::connect(at(in_here.path())).value();
  auto server = listener.accept().value();
  EXPECT_EQ(client.remote_address(), at(in_here.path()));
  EXPECT_EQ(server.local_address(), at(in_here.path()));
  EXPECT_EQ(server.remote_address(), unix_address());
  for (const unix_stream* each : {&client, &server}) {
    const auto peer = each->peer_credentials().value();
    EXPECT_EQ(peer.process, ::getpid());
    EXPECT_EQ(peer.user, ::geteuid());
    EXPECT_EQ(peer.group, ::getegid());
  }
  EXPECT_EQ(unix_stream().peer_credentials().error(), io_error::closed);
}

TEST(unix_stream, cannot_connect_where_nobody_listens) {
  both_ways([] {
    folder in_here;
    EXPECT_EQ(unix_stream::connect(at(in_here.path())).error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(unix_stream::connect(unix_address::parse("@pirn_unix_none").value()).error(),
              std::errc::connection_refused);
    const auto silent = unix_datagram_socket::bind(at(in_here.path())).value();
    EXPECT_EQ(unix_stream::connect(at(in_here.path())).error(), std::errc::wrong_protocol_type);
  });
}

TEST(unix_stream, a_connect_waits_for_a_place_in_the_queue) {
  pirn::runtime({.workers = 1}).run([] {
    auto listener = unix_listener::listen({}, {.backlog = 0}).value();
    const unix_address there = listener.local_address().value();
    EXPECT_TRUE(there.is_abstract());
    auto first = unix_stream::connect(there);
    ASSERT_TRUE(first);
    EXPECT_EQ(unix_stream::connect(there, 3ms).error(), io_error::timed_out);
    stop_while_blocked([&] { EXPECT_EQ(unix_stream::connect(there).error(), io_error::stopped); });
    pirn::fiber second = pirn::spawn([&] { EXPECT_TRUE(unix_stream::connect(there, in(long_enough))); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    EXPECT_TRUE(listener.accept());
    second.join();
  });
}

TEST(unix_listener, removes_its_file_and_no_other) {
  folder in_here;
  auto first = unix_listener::listen(at(in_here.path())).value();
  EXPECT_EQ(unix_listener::listen(at(in_here.path())).error(), std::errc::address_in_use);
  auto moved = std::move(first);
  first.close();  // NOLINT(bugprone-use-after-move): what it removes then is the question
  EXPECT_TRUE(exists(in_here.path()));
  moved.close();
  EXPECT_FALSE(exists(in_here.path()));
  EXPECT_EQ(moved.accept().error(), io_error::closed);
  {
    const auto second = unix_listener::listen(at(in_here.path())).value();
    ASSERT_EQ(::unlink(in_here.path().c_str()), 0);
    ASSERT_EQ(::close(::open(in_here.path().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
  }
  EXPECT_TRUE(exists(in_here.path()));  // the file of another program
}

TEST(unix_listener, replaces_what_a_crash_has_left_and_nothing_else) {
  folder in_here;
  crashing(in_here.path(), SOCK_STREAM).close();
  EXPECT_EQ(unix_listener::listen(at(in_here.path()), {.replace_stale = false}).error(), std::errc::address_in_use);
  EXPECT_TRUE(unix_listener::listen(at(in_here.path())));
  ASSERT_EQ(::close(::open(in_here.path("file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
  EXPECT_EQ(unix_listener::listen(at(in_here.path("file"))).error(), std::errc::address_in_use);
  EXPECT_TRUE(exists(in_here.path("file")));
}

TEST(unix_listener, a_child_that_exits_leaves_its_parent_the_file) {
#if defined(PIRN_TSAN)
  GTEST_SKIP() << "ThreadSanitizer itself ends a child of a process with threads";
#endif
  folder in_here;
  static unix_listener listener;
  static unix_datagram_socket socket;
  listener = unix_listener::listen(at(in_here.path())).value();
  socket = unix_datagram_socket::bind(at(in_here.path("datagrams"))).value();
  std::fflush(nullptr);
  const ::pid_t child = ::fork();
  if (child == 0) {
    std::exit(0);  // destroys both
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_TRUE(unix_stream::connect(at(in_here.path())));
  EXPECT_TRUE(exists(in_here.path("datagrams")));
  listener.close();
  socket.close();
  EXPECT_FALSE(exists(in_here.path()) || exists(in_here.path("datagrams")));
}

TEST(unix_listener, gives_its_file_the_permissions_at_once) {
  folder in_here;
  const auto listener = unix_listener::listen(at(in_here.path()), {.permissions = 0600}).value();
  struct ::stat about;
  ASSERT_EQ(::stat(in_here.path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0600u);
}

TEST(unix_listener, adopts_only_listening_unix_sockets) {
  EXPECT_EQ(unix_listener::adopt(descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0))).error(),
            std::errc::wrong_protocol_type);
  folder in_here;
  auto listener = unix_listener::listen(at(in_here.path())).value();
  auto again = unix_listener::adopt(descriptor(::dup(listener.native())));
  ASSERT_TRUE(again);
  auto client = unix_stream::connect(at(in_here.path()));
  EXPECT_TRUE(again->accept());
  again->close();
  EXPECT_TRUE(exists(in_here.path()));
}

TEST(unix_listener, an_acceptor_serves_it) {
  pirn::runtime({.workers = 2}).run([] {
    auto listener = unix_listener::listen({}).value();
    const unix_address there = listener.local_address().value();
    pirn::acceptor clients;
    pirn::fiber accepting = pirn::spawn([&] {
      static_cast<void>(clients.run(listener, [](unix_stream stream) {
        char text[8];
        const auto got = stream.read(text, sizeof text, in(long_enough));
        ASSERT_TRUE(got);
        EXPECT_TRUE(stream.write(text, *got));
      }));
    });
    for (int i = 0; i < 3; ++i) {
      auto client = unix_stream::connect(there, in(long_enough)).value();
      char text[8];
      ASSERT_TRUE(client.write("hello"));
      EXPECT_EQ(client.read(text, sizeof text, in(long_enough)), 5u);
    }
    accepting.request_stop();
    accepting.join();
    EXPECT_EQ(clients.statistics().accepted, 3u);
  });
}

TEST(descriptor_passing, a_descriptor_arrives_with_its_bytes) {
  both_ways([] {
    auto [one, other] = unix_stream::pair().value();
    file_pair pipe;
    ASSERT_TRUE(one.write("a"));
    const int natives[] = {pipe.reading.native(), pipe.writing.native()};
    EXPECT_EQ(one.send_descriptors(natives, "bc", 2), 2u);
    ASSERT_TRUE(one.write("d"));
    pipe.reading.close();
    pipe.writing.close();
    std::string bytes;
    std::array<descriptor, 4> into;
    std::size_t descriptors = 0;
    while (bytes.size() < 4) {
      char text[8];
      const auto got = other.receive_descriptors(std::span(into).subspan(descriptors), text, sizeof text);
      ASSERT_TRUE(got);
      EXPECT_FALSE(got->descriptors_lost);
      bytes.append(text, got->size);
      descriptors += got->descriptors;
      EXPECT_EQ(descriptors, bytes.size() < 2 ? 0u : 2u);
    }
    EXPECT_EQ(bytes, "abcd");
    ASSERT_EQ(descriptors, 2u);
    EXPECT_NE(::fcntl(into[0].native(), F_GETFD) & FD_CLOEXEC, 0);
    char byte = 0;
    EXPECT_EQ(into[0].read(&byte, 1, 2ms).error(), io_error::timed_out);  // although it was made a blocking one
    ASSERT_TRUE(into[1].write("x", 1));
    EXPECT_EQ(into[0].read(&byte, 1), 1u);
  });
}

TEST(descriptor_passing, what_is_not_taken_is_closed) {
  auto [one, other] = unix_stream::pair().value();
  file_pair pipe;
  const int before = open_descriptors();
  const int natives[] = {pipe.writing.native(), pipe.writing.native(), pipe.writing.native()};
  char byte;
  EXPECT_EQ(one.send_descriptors(natives, "a", 1), 1u);
  EXPECT_EQ(other.read(&byte, 1), 1u);
  EXPECT_EQ(one.send_descriptors(natives, "b", 1), 1u);
  {
    descriptor into[2];
    const auto got = other.receive_descriptors(into, &byte, 1).value();
    EXPECT_EQ(got.descriptors, 2u);
    EXPECT_TRUE(got.descriptors_lost);
    EXPECT_EQ(open_descriptors(), before + 2);
  }
  EXPECT_EQ(one.send_descriptors(natives, "c", 1), 1u);
  EXPECT_TRUE(other.receive_descriptors({}, &byte, 1).value().descriptors_lost);
  EXPECT_EQ(one.send_descriptors(natives, "d", 1), 1u);
  EXPECT_EQ(open_descriptors(), before);
  other.close();
  pipe.writing.close();
  EXPECT_EQ(pipe.reading.read(&byte, 1, in(long_enough)), 0u);  // no writer is left anywhere
}

TEST(descriptor_passing, has_limits) {
  auto [one, other] = unix_stream::pair().value();
  const std::vector<int> many(unix_stream::max_descriptors + 1, one.native());
  EXPECT_EQ(one.send_descriptors(many, "a", 1).error(), std::errc::invalid_argument);
  EXPECT_EQ(one.send_descriptors(std::vector<int>(1000, one.native()), "a", 1).error(), std::errc::invalid_argument);
  EXPECT_EQ(one.send_descriptors({}, "", 0).error(), std::errc::invalid_argument);
  const int wrong[] = {one.native(), 1 << 20};
  EXPECT_EQ(one.send_descriptors(wrong, "a", 1).error(), std::errc::bad_file_descriptor);
  EXPECT_EQ(one.send_descriptors(std::span(many).first(unix_stream::max_descriptors), "a", 1), 1u);
  std::vector<descriptor> into(300);
  char text[2];
  const auto got = other.receive_descriptors(into, text, sizeof text).value();
  EXPECT_EQ(got.descriptors, unix_stream::max_descriptors);
  EXPECT_FALSE(got.descriptors_lost);
  EXPECT_EQ(text[0], 'a');
}

TEST(descriptor_passing, a_process_without_free_numbers_loses_descriptors_and_no_bytes) {
  auto [one, other] = unix_stream::pair().value();
  const int natives[] = {one.native(), one.native()};
  EXPECT_EQ(one.send_descriptors(natives, "a", 1), 1u);
  ::rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(one.native());
  ::close(next);
  const ::rlimit low{static_cast<::rlim_t>(next) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  descriptor into[2];
  char byte;
  const auto got = other.receive_descriptors(into, &byte, 1);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->size, 1u);
  EXPECT_EQ(got->descriptors, 1u);
  EXPECT_TRUE(got->descriptors_lost);
}

TEST(unix_datagrams, carry_whole_messages_and_the_sender) {
  both_ways([] {
    folder in_here;
    auto server = unix_datagram_socket::bind(at(in_here.path())).value();
    auto client = unix_datagram_socket::bind({}).value();
    const unix_address name = client.local_address().value();
    EXPECT_TRUE(name.is_abstract());
    ASSERT_TRUE(client.send_to(at(in_here.path()), "question"));
    ASSERT_TRUE(client.send_to(at(in_here.path()), ""));
    char text[6];
    auto got = server.receive(text, sizeof text).value();
    EXPECT_EQ(std::string_view(text, got.size), "questi");
    EXPECT_TRUE(got.truncated);
    EXPECT_EQ(got.from, name);
    got = server.receive(text, sizeof text).value();
    EXPECT_EQ(got.size, 0u);
    EXPECT_FALSE(got.truncated);
    ASSERT_TRUE(server.send_to(got.from, "answer"));
    EXPECT_EQ(client.receive(text, sizeof text).value().from, at(in_here.path()));
    auto unnamed = unix_datagram_socket::connect(at(in_here.path())).value();
    ASSERT_TRUE(unnamed.send("x"));
    EXPECT_EQ(server.receive(text, sizeof text).value().from, unix_address());
    server.close();
    EXPECT_FALSE(exists(in_here.path()));
    EXPECT_EQ(unnamed.send("x").error(), std::errc::connection_refused);
    EXPECT_EQ(client.send("x").error(), std::errc::not_connected);
    EXPECT_EQ(client.send_to(at(in_here.path()), "x").error(), std::errc::no_such_file_or_directory);
    ASSERT_TRUE(client.set_peer(name));  // itself
    ASSERT_TRUE(client.send("x"));
    EXPECT_EQ(client.receive(text, sizeof text).value().size, 1u);
  });
}

TEST(unix_datagrams, replace_what_a_crash_has_left_and_nothing_else) {
  folder in_here;
  const unix_address there = at(in_here.path());
  crashing(in_here.path(), SOCK_DGRAM).close();
  EXPECT_EQ(unix_datagram_socket::bind(there, {.replace_stale = false}).error(), std::errc::address_in_use);
  auto socket = unix_datagram_socket::bind(there);
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_EQ(unix_datagram_socket::bind(there).error(), std::errc::address_in_use);
  char text[8];
  EXPECT_EQ(socket->receive(text, sizeof text, 1ms).error(), io_error::timed_out) << "the probe sends nothing";
  const descriptor open = crashing(in_here.path("stream"), SOCK_STREAM);
  EXPECT_EQ(unix_datagram_socket::bind(at(in_here.path("stream"))).error(), std::errc::address_in_use);
  EXPECT_TRUE(exists(in_here.path("stream")));
}

TEST(unix_datagrams, carry_descriptors) {
  auto [one, other] = unix_datagram_socket::pair().value();
  file_pair pipe;
  const int natives[] = {pipe.reading.native()};
  ASSERT_TRUE(one.send_descriptors(natives, "", 0));
  ASSERT_TRUE(one.send_descriptors(natives, "b", 1));
  descriptor into[2];
  char text[2];
  auto got = other.receive_descriptors(into, text, sizeof text).value();
  EXPECT_EQ(got.descriptors, 1u);
  EXPECT_EQ(got.size, 0u);
  ASSERT_TRUE(pipe.writing.write("x", 1));
  EXPECT_EQ(into[0].read(text, 1), 1u);
  got = other.receive(text, sizeof text).value();
  EXPECT_EQ(got.descriptors, 0u);
  EXPECT_TRUE(got.descriptors_lost);
  const std::vector<int> many(unix_stream::max_descriptors + 1, pipe.reading.native());
  EXPECT_EQ(one.send_descriptors(many, "a", 1).error(), std::errc::invalid_argument);
}

TEST(unix_datagrams, a_sender_waits_for_a_full_receiver) {
  pirn::runtime({.workers = 1}).run([] {
    auto receiver = unix_datagram_socket::bind({}).value();
    const unix_address there = receiver.local_address().value();
    auto with_peer = unix_datagram_socket::connect(there).value();
    auto without = unix_datagram_socket::bind({}).value();
    int sent = 0;
    while (with_peer.send("x", 1, 2ms)) {
      ++sent;
    }
    EXPECT_EQ(without.send_to(there, "y", 1, 2ms).error(), io_error::timed_out);
    stop_while_blocked([&] { EXPECT_EQ(without.send_to(there, "y").error(), io_error::stopped); });
    for (const bool peer : {true, false}) {
      pirn::fiber sender = pirn::spawn([&, peer] {
        EXPECT_TRUE(peer ? with_peer.send("x", 1, in(long_enough)) : without.send_to(there, "y", in(long_enough)));
      });
      ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
      char text[2];
      for (int i = 0; i < sent; ++i) {  // the kernel lets a sender continue only at half of the limit
        ASSERT_TRUE(receiver.receive(text, sizeof text));
      }
      sender.join();
      sent = 1;
    }
    char byte;
    EXPECT_EQ(receiver.receive(&byte, 1, in(long_enough)).value().size, 1u);
    pirn::fiber waits = pirn::spawn([&] { EXPECT_EQ(receiver.receive(&byte, 1).error(), io_error::closed); });
    ASSERT_TRUE(pirn::this_fiber::sleep_for(2ms));
    receiver.close();
    waits.join();
  });
}

TEST(unix_datagrams, adopt_only_unix_datagram_sockets) {
  EXPECT_TRUE(unix_datagram_socket::adopt(descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0))));
  EXPECT_EQ(unix_datagram_socket::adopt(descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0))).error(),
            std::errc::wrong_protocol_type);
}

}  // namespace
