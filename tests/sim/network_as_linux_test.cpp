// The sockets of an exploration behave as Linux's do: random programs run on both.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "detail/system.hpp"
#include "pirn/detail/platform.hpp"
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
  std::chrono::microseconds arrival;  ///< the time until sent data has arrived
};
#define PIRN_CALLS(of)                                                                                         \
  of::socket, of::bind, of::listen, of::accept4, of::connect, of::getsockname, of::getsockopt, of::setsockopt, \
      of::recv, of::send, of::shutdown, of::close, of::poll
const system_calls of_linux{PIRN_CALLS(), std::chrono::microseconds(100)};
const system_calls of_exploration{PIRN_CALLS(platform::system), std::chrono::microseconds(0)};
#undef PIRN_CALLS

std::string outcome(long result) { return result < 0 ? strerrorname_np(errno) : std::to_string(result); }

/// A program of connections to one listener, and the result of each of its calls.
class random_program {
 public:
  random_program(const system_calls& by, std::uint64_t seed) : by_(by), numbers_(seed) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = open();
    by_.bind(listener_, address(), sizeof address_);
    by_.listen(listener_, 64);
    socklen_t size = sizeof address_;
    by_.getsockname(listener_, address(), &size);
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
      if (by_.arrival.count() != 0) {
        std::this_thread::sleep_for(by_.arrival);
      }
    }
    for (const end& each : ends_) {
      by_.close(each.number);
    }
    if (listener_ >= 0) {
      by_.close(listener_);
    }
    return std::move(log_);
  }

 private:
  struct end {
    int number;
    std::string name;
  };
  ::sockaddr* address() { return reinterpret_cast<::sockaddr*>(&address_); }
  int open() {
    const int made = by_.socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
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
    bool connected = by_.connect(made, address(), sizeof address_) == 0;
    if (!connected && errno == EINPROGRESS) {  // each reports it in its own way
      std::this_thread::sleep_for(by_.arrival);
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
  void call(std::uint64_t number) {
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
  platform::random numbers_;
  ::sockaddr_in address_{};
  int listener_ = -1;
  int names_ = 0;
  std::vector<end> ends_;
  std::vector<std::string> log_;
};

TEST(network, sockets_do_what_those_of_linux_do) {
  constexpr int calls = 60;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<std::string> here;
    const pirn::sim::result found = pirn::sim::explore([&] { here = random_program(of_exploration, seed).run(calls); },
                                                       {.strategy = pirn::sim::strategy::random, .executions = 1});
    ASSERT_TRUE(found) << found.text();
    std::vector<std::string> there;
    // On a busy machine Linux may deliver late.
    for (int attempt = 0; attempt < 5 && here != there; ++attempt) {
      there = random_program(of_linux, seed).run(calls);
    }
    ASSERT_EQ(here, there) << "seed " << seed;
  }
}

}  // namespace
