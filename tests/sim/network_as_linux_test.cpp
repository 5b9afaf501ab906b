// The sockets of an exploration behave as Linux's do: random programs run on both.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "detail/system.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/net/address.hpp"
#include "pirn/sim/explore.hpp"

namespace {

namespace platform = pirn::platform;

/// The system calls of one of the two.
struct system_calls {
  decltype(&::socket) socket;
  decltype(&::bind) bind;
  decltype(&::listen) listen;
  decltype(&::accept4) accept4;
  decltype(&::connect) connect;
  decltype(&::getsockname) getsockname;
  decltype(&::getsockopt) getsockopt;
  decltype(&::setsockopt) setsockopt;
  decltype(&::recv) recv;
  decltype(&::send) send;
  decltype(&::shutdown) shutdown;
  decltype(&::close) close;
  decltype(&::poll) poll;
  decltype(&::sendmsg) sendmsg;
  decltype(&::recvmsg) recvmsg;
  decltype(&::socketpair) socketpair;
  decltype(&::sendto) sendto;
  decltype(&::recvfrom) recvfrom;
  decltype(&::pipe2) pipe2;
  decltype(&::readv) readv;
  decltype(&::writev) writev;
  std::chrono::microseconds arrival;  ///< the time until sent data has arrived
};
#define PIRN_CALLS(of)                                                                                             \
  of::socket, of::bind, of::listen, of::accept4, of::connect, of::getsockname, of::getsockopt, of::setsockopt,     \
      of::recv, of::send, of::shutdown, of::close, of::poll, of::sendmsg, of::recvmsg, of::socketpair, of::sendto, \
      of::recvfrom, of::pipe2, of::readv, of::writev
const system_calls of_linux{PIRN_CALLS(), std::chrono::microseconds(100)};
const system_calls of_exploration{PIRN_CALLS(platform::system), std::chrono::microseconds(0)};
#undef PIRN_CALLS

std::string outcome(long result) { return result < 0 ? strerrorname_np(errno) : std::to_string(result); }

struct name {
  ::sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;
  ::sockaddr* get() { return reinterpret_cast<::sockaddr*>(&bytes); }
};

/// Binds a socket to a free port or abstract name.
name bind_anywhere(const system_calls& by, int socket, int family) {
  ::sockaddr_in free{};
  free.sin_family = static_cast<::sa_family_t>(family);
  free.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  by.bind(socket, reinterpret_cast<::sockaddr*>(&free), family == AF_UNIX ? sizeof free.sin_family : sizeof free);
  name made;
  by.getsockname(socket, made.get(), &made.size);
  return made;
}

/// A message with room for descriptors.
struct message {
  ::iovec memory;
  ::msghdr header{};
  alignas(::cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  message(void* data, std::size_t size) : memory{data, size} {
    header.msg_iov = &memory;
    header.msg_iovlen = 1;
  }
  message(const message&) = delete;
  message& operator=(const message&) = delete;
  void make_room(std::size_t count) {
    header.msg_control = control;
    header.msg_controllen = count != 0 ? CMSG_LEN(count * sizeof(int)) : 0;
  }
  void attach(int descriptor) {
    make_room(1);
    ::cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(first), &descriptor, sizeof descriptor);
  }
  [[nodiscard]] std::vector<int> descriptors() const {
    std::vector<int> found;
    if (header.msg_controllen >= CMSG_LEN(sizeof(int))) {
      const ::cmsghdr* const first = CMSG_FIRSTHDR(&header);
      found.resize((first->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(found.data(), CMSG_DATA(first), found.size() * sizeof(int));
    }
    return found;
  }
};

/// A program of connections to one listener, and the result of each of its calls.
class random_program {
 public:
  random_program(const system_calls& by, int family, std::uint64_t seed)
      : by_(by), family_(family), arrival_(family == AF_UNIX ? by.arrival * 0 : by.arrival), numbers_(seed) {
    listener_ = open();
    address_ = bind_anywhere(by_, listener_, family);
    by_.listen(listener_, 64);
    by_.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, token_);
  }
  std::vector<std::string> run(int calls) {
    for (int i = 0; i < calls; ++i) {
      const std::uint64_t number = numbers_.next();
      if (ends_.empty() || (number % 12 == 0 && ends_.size() < 4)) {
        connect();
      } else if (number % 12 == 1 && listener_ >= 0) {
        accept();
      } else if (number % 97 == 2 && listener_ >= 0) {
        note("the listener", "closes", by_.close(std::exchange(listener_, -1)));
      } else {
        call(number);
      }
      if (arrival_.count() != 0) {
        std::this_thread::sleep_for(arrival_);
      }
    }
    for (const end& each : ends_) {
      by_.close(each.number);
    }
    if (listener_ >= 0) {
      by_.close(listener_);
    }
    if (token_[0] >= 0) {
      by_.close(token_[0]);
    }
    watch_token();  // by now no copy of it is left
    by_.close(token_[1]);
    return std::move(log_);
  }

 private:
  struct end {
    int number;
    std::string name;
  };
  int open() {
    const int made = by_.socket(family_, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int on = 1;  // otherwise small writes wait for each other
    by_.setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
  }
  void note(std::string_view who, std::string_view what, long result) {
    log_.push_back(std::string(who) + " " + std::string(what) + ": " + outcome(result));
  }
  int error_of(int number) {
    int error = 0;
    socklen_t size = sizeof error;
    by_.getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }

  void connect() {
    const int made = open();
    bool connected = by_.connect(made, address_.get(), address_.size) == 0;
    if (!connected && errno == EINPROGRESS) {  // each reports it in its own way
      std::this_thread::sleep_for(arrival_);
      connected = error_of(made) == 0;
    }
    const std::string name = "client " + std::to_string(names_++);
    note(name, "connects", connected ? 1 : 0);
    if (connected) {
      ends_.push_back({made, name});
    } else {
      by_.close(made);
    }
  }
  void accept() {
    const int made = by_.accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
    note("the listener", "accepts", made < 0 ? made : 1);
    if (made >= 0) {
      const int on = 1;
      by_.setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ends_.push_back({made, "server " + std::to_string(names_++)});
    }
  }
  /// Passes a copy of the token with some bytes.
  void pass(const end& by, std::size_t bytes) {
    char buffer[30] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    message one(buffer, bytes);
    one.attach(token_[0]);
    note(by.name, "passes with " + std::to_string(bytes), by_.sendmsg(by.number, &one.header, MSG_NOSIGNAL));
  }
  /// Receives bytes and up to `places` tokens, which it closes.
  void receive_token(const end& by, std::size_t bytes, std::size_t places) {
    char buffer[30];
    message one(buffer, bytes);
    one.make_room(places);
    const ssize_t got = by_.recvmsg(by.number, &one.header, MSG_CMSG_CLOEXEC);
    note(by.name, "receives " + std::to_string(bytes), got);
    if (got >= 0) {
      const std::vector<int> tokens = one.descriptors();
      log_.back() += " " + std::string(buffer, static_cast<std::size_t>(got)) + " " + std::to_string(tokens.size()) +
                     ((one.header.msg_flags & MSG_CTRUNC) != 0 ? " lost" : "");
      for (const int each : tokens) {
        by_.close(each);
      }
    }
  }
  /// The other end of the token reads its end once no copy is open.
  void watch_token() {
    char byte;
    note("the token", "is", by_.recv(token_[1], &byte, 1, 0));
  }
  void call_about_token(const end& by, std::uint64_t number) {
    switch (number / 64 % 8) {
      case 0:
      case 1:
        if (token_[0] >= 0) {
          pass(by, 1 + number / 512 % 5);
        }
        break;
      case 2:
        if (token_[0] >= 0 && number % 5 == 0) {
          note("the token", "closes", by_.close(std::exchange(token_[0], -1)));
        }
        break;
      case 3:
        watch_token();
        break;
      default:
        receive_token(by, 1 + number / 512 % 7, number / 128 % 3);
    }
  }
  void call(std::uint64_t number) {
    if (family_ == AF_UNIX && number / 8192 % 3 == 0) {
      call_about_token(ends_[number / 16 % ends_.size()], number);
      return;
    }
    const std::size_t which = number / 16 % ends_.size();
    const auto [socket, name] = ends_[which];
    const std::size_t bytes = 1 + number / 4096 % 30;
    char buffer[30] = "abcdefghijklmnopqrstuvwxyz";
    switch (number / 1024 % 10) {
      case 0:
      case 1:
        note(name, "sends " + std::to_string(bytes), by_.send(socket, buffer, bytes, MSG_NOSIGNAL));
        break;
      case 2:
      case 3:
      case 4: {
        const ssize_t got = by_.recv(socket, buffer, bytes, 0);
        note(name, "receives " + std::to_string(bytes), got);
        log_.back() += " " + std::string(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
        break;
      }
      case 5:
        if (number % 3 == 0) {
          const int how = static_cast<int>(number / 64 % 3);
          note(name, "shuts down " + std::to_string(how), by_.shutdown(socket, how));
        }
        break;
      case 6:
        if (number % 2 == 0) {
          note(name, "closes", by_.close(socket));
          ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(which));
        }
        break;
      case 7:
        note(name, "has the error", error_of(socket));
        break;
      default: {
        ::pollfd asked{socket, POLLIN | POLLOUT, 0};
        by_.poll(&asked, 1, 0);
        note(name, "is ready for", asked.revents & (POLLIN | POLLOUT));
      }
    }
  }

  const system_calls& by_;
  int family_;
  std::chrono::microseconds arrival_;
  platform::random numbers_;
  name address_;
  int token_[2] = {-1, -1};
  int listener_ = -1;
  int names_ = 0;
  std::vector<end> ends_;
  std::vector<std::string> log_;
};

/// A program of sockets for datagrams, and the result of each of its calls.
class random_datagrams {
 public:
  random_datagrams(const system_calls& by, int family, std::uint64_t seed)
      : by_(by), arrival_(family == AF_UNIX ? by.arrival * 0 : by.arrival), numbers_(seed) {
    for (int i = 0; i < 3; ++i) {
      sockets_.push_back(by_.socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0));
      names_.push_back(bind_anywhere(by_, sockets_.back(), family));
    }
  }
  std::vector<std::string> run(int calls) {
    for (int i = 0; i < calls; ++i) {
      const std::uint64_t number = numbers_.next();
      call(number % 3, number / 4 % 3, number / 16);
      if (arrival_.count() != 0) {
        std::this_thread::sleep_for(arrival_);
      }
    }
    for (const int each : sockets_) {
      if (each >= 0) {
        by_.close(each);
      }
    }
    return std::move(log_);
  }

 private:
  void note(std::size_t who, const std::string& what, long result) {
    log_.push_back(std::to_string(who) + " " + what + ": " + outcome(result));
  }
  std::string name_of(const name& asked) {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i].size == asked.size && std::memcmp(&names_[i].bytes, &asked.bytes, asked.size) == 0) {
        return std::to_string(i);
      }
    }
    return "none";
  }
  void call(std::size_t which, std::size_t other, std::uint64_t number) {
    const int socket = sockets_[which];
    if (socket < 0) {
      return;
    }
    const char text[] = "abcdefghij";
    const std::size_t bytes = number / 64 % 8;
    switch (number % 32) {
      case 0:
        note(which, "closes", by_.close(std::exchange(sockets_[which], -1)));
        break;
      case 1:
      case 2:
      case 3:
        note(which, "connects to " + std::to_string(other),
             by_.connect(socket, names_[other].get(), names_[other].size));
        break;
      case 4: {
        int error = 0;
        socklen_t size = sizeof error;
        by_.getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
        note(which, "has the error", error);
        break;
      }
      case 5:
      case 6: {
        ::pollfd asked{socket, POLLIN | POLLOUT, 0};
        by_.poll(&asked, 1, 0);
        note(which, "is ready for", asked.revents & (POLLIN | POLLOUT));
        break;
      }
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
      case 12:
      case 13:
        note(which, "sends " + std::to_string(bytes), by_.send(socket, text, bytes, MSG_NOSIGNAL));
        break;
      case 14:
      case 15:
      case 16:
      case 17:
      case 18:
      case 19:
      case 20:
        note(which, "sends to " + std::to_string(other),
             by_.sendto(socket, text, bytes, MSG_NOSIGNAL, names_[other].get(), names_[other].size));
        break;
      default: {
        char buffer[5];
        name from;
        const ssize_t got = by_.recvfrom(socket, buffer, sizeof buffer, MSG_TRUNC, from.get(), &from.size);
        note(which, "receives", got);
        if (got >= 0) {
          log_.back() += " " + std::string(buffer, std::min<std::size_t>(sizeof buffer, static_cast<std::size_t>(got)));
          log_.back() += " from " + name_of(from);
        }
      }
    }
  }

  const system_calls& by_;
  std::chrono::microseconds arrival_;
  platform::random numbers_;
  std::vector<int> sockets_;
  std::vector<name> names_;
  std::vector<std::string> log_;
};

/// A program that reaches for sockets at each address, and the result of each of its calls.
class all_addresses {
 public:
  all_addresses(const system_calls& by, int type, std::uint64_t /*seed*/) : by_(by), type_(type) {}
  std::vector<std::string> run(int /*calls*/) {
    const char* const all[] = {"127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::"};
    for (const char* const own : all) {
      for (const char* const to : all) {
        reach(pirn::ip_address::parse(own).value(), pirn::ip_address::parse(to).value());
      }
    }
    return std::move(log_);
  }

 private:
  int open(const pirn::ip_address& like) {
    return by_.socket(like.is_v6() ? AF_INET6 : AF_INET, type_ | SOCK_CLOEXEC, 0);
  }
  void reach(const pirn::ip_address& own, const pirn::ip_address& to) {
    const int server = open(own);
    name bound;
    bound.size = pirn::detail::to_native({own, 0}, bound.bytes);
    by_.bind(server, bound.get(), bound.size);
    by_.getsockname(server, bound.get(), &bound.size);
    name there;
    there.size = pirn::detail::to_native({to, pirn::detail::from_native(bound.bytes).port}, there.bytes);
    for (const pirn::ip_address& of : {pirn::ip_address::any_v4(), pirn::ip_address::any_v6()}) {
      const int client = open(of);
      std::string line =
          (of.is_v6() ? "by IPv6 to " : "by IPv4 to ") + to.to_string() + " at " + own.to_string() + ": ";
      if (type_ == SOCK_STREAM && of.is_v6() == to.is_v6()) {
        by_.listen(server, 8);
        log_.push_back(line + outcome(by_.connect(client, there.get(), there.size)));
      } else if (type_ == SOCK_DGRAM) {
        line += outcome(by_.sendto(client, "x", 1, 0, there.get(), there.size));
        std::this_thread::sleep_for(by_.arrival);
        char byte;
        log_.push_back(line + (by_.recv(server, &byte, 1, MSG_DONTWAIT) == 1 ? ", arrives" : ""));
        reinterpret_cast<::sockaddr_in&>(there.bytes).sin_port = 0;  // where it is in both families
        log_.push_back("to no port: " + outcome(by_.sendto(client, "x", 1, 0, there.get(), there.size)));
        reinterpret_cast<::sockaddr_in&>(there.bytes).sin_port = reinterpret_cast<::sockaddr_in&>(bound.bytes).sin_port;
      }
      by_.close(client);
    }
    by_.close(server);
  }

  const system_calls& by_;
  int type_;
  std::vector<std::string> log_;
};

/// A program of one pipe, and the result of each of its calls.
class random_pipe {
 public:
  random_pipe(const system_calls& by, int /*family*/, std::uint64_t seed) : by_(by), numbers_(seed) {
    by_.pipe2(ends_, O_NONBLOCK | O_CLOEXEC);
  }
  std::vector<std::string> run(int calls) {
    for (int i = 0; i < calls; ++i) {
      const std::uint64_t number = numbers_.next() / 16;
      const std::size_t which = number % 2;
      if (ends_[which] >= 0) {
        call(which, number / 2);
      }
    }
    for (const int each : ends_) {
      by_.close(each);
    }
    return std::move(log_);
  }

 private:
  void note(std::size_t who, std::string_view what, long result) {
    log_.push_back((who == 0 ? "reader " : "writer ") + std::string(what) + ": " + outcome(result));
  }
  void call(std::size_t which, std::uint64_t number) {
    char text[10] = "abcdefghi";
    const std::size_t bytes = 1 + number / 16 % 9;
    const ::iovec part{text, bytes};
    switch (number % 16) {
      case 0:
        if (number / 16 % 4 == 0) {
          note(which, "closes", by_.close(std::exchange(ends_[which], -1)));
        }
        break;
      case 1:
        note(which, "does the other", which == 0 ? by_.writev(ends_[0], &part, 1) : by_.readv(ends_[1], &part, 1));
        break;
      case 2:
      case 3: {
        ::pollfd asked{ends_[which], static_cast<short>(which == 0 ? POLLIN : POLLOUT), 0};
        note(which, "is ready", by_.poll(&asked, 1, 0));
        break;
      }
      default:
        if (which == 1) {
          note(which, "writes", by_.writev(ends_[1], &part, 1));
          break;
        }
        const ssize_t got = by_.readv(ends_[0], &part, 1);
        note(which, "reads", got);
        log_.back() += " " + std::string(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    }
  }

  const system_calls& by_;
  platform::random numbers_;
  int ends_[2] = {-1, -1};
  std::vector<std::string> log_;
};

using lines = std::vector<std::string>::const_iterator;
std::string text_of(lines from, lines to) {
  std::string text;
  for (; from != to; ++from) {
    text += *from + "\n";
  }
  return text;
}

template <class Program>
void expect_alike(int family, int calls, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::vector<std::string> here;
    const pirn::sim::result found = pirn::sim::explore([&] { here = Program(of_exploration, family, seed).run(calls); },
                                                       {.strategy = pirn::sim::strategy::random, .executions = 1});
    ASSERT_TRUE(found) << found.text();
    std::vector<std::string> there;
    // On a busy machine Linux may deliver late.
    for (int attempt = 0; attempt < 5 && here != there; ++attempt) {
      there = Program(of_linux, family, seed).run(calls);
    }
    const auto differs = std::ranges::mismatch(here, there);
    ASSERT_EQ(here, there) << "seed " << seed << "\n"
                           << text_of(here.begin(), differs.in1) << "here:  " << text_of(differs.in1, here.end())
                           << "Linux: " << text_of(differs.in2, there.end());
  }
}

TEST(network, sockets_do_what_those_of_linux_do) { expect_alike<random_program>(AF_INET, 60, 40); }

TEST(network, pipes_do_what_those_of_linux_do) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  expect_alike<random_pipe>(AF_UNSPEC, 80, 100);
  ::signal(SIGPIPE, before);
}

TEST(network, unix_sockets_do_what_those_of_linux_do) { expect_alike<random_program>(AF_UNIX, 120, 200); }

TEST(network, datagrams_do_what_those_of_linux_do) { expect_alike<random_datagrams>(AF_INET, 80, 20); }

TEST(network, addresses_do_what_those_of_linux_do) {
  const int v6 = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  name loopback;
  loopback.size = pirn::detail::to_native({pirn::ip_address::loopback_v6(), 0}, loopback.bytes);
  const bool has_v6 = ::bind(v6, loopback.get(), loopback.size) == 0;
  ::close(v6);
  if (!has_v6) {
    GTEST_SKIP() << "no IPv6 on this machine";
  }
  expect_alike<all_addresses>(SOCK_STREAM, 1, 1);
  expect_alike<all_addresses>(SOCK_DGRAM, 1, 1);
}

TEST(network, unix_datagrams_do_what_those_of_linux_do) { expect_alike<random_datagrams>(AF_UNIX, 120, 200); }

}  // namespace
