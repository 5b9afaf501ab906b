// The other side of the workload `echo`: sends messages over many connections, each as soon as its last one has come
// back, in a closed loop of epoll without any library; checks what comes back; prints rows. PORT, CONNECTIONS and BYTES
// are arguments; SERVER is the process whose CPU time counts, SECONDS how long.
//     echo_driver PORT CONNECTIONS BYTES SERVER SECONDS
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "echo_driver: %s: %s\n", what, std::strerror(errno));
  std::exit(EXIT_FAILURE);
}

std::int64_t read_clock(::clockid_t clock) {
  ::timespec now;
  if (::clock_gettime(clock, &now) != 0) {
    fail("cannot read a clock");
  }
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

struct connection {
  int socket;
  std::size_t sent = 0;      ///< bytes of the message under way
  std::size_t received = 0;  ///< of these, bytes that have come back
  std::int64_t began = 0;
};

class driver {
 public:
  driver(int port, std::size_t connections, std::size_t bytes) : message_(bytes), into_(1 << 16) {
    for (std::size_t i = 0; i < bytes; ++i) {
      message_[i] = static_cast<char>('a' + i % 26);
    }
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < connections; ++i) {
      connect(port);
    }
  }

  /// Sends messages for some time; keeps the latencies of those that come back after `begin`.
  void run(std::int64_t until) {
    for (connection& each : all_) {
      if (each.began == 0) {
        each.began = read_clock(CLOCK_MONOTONIC);
        send(each);
      }
    }
    ::epoll_event events[256];
    while (read_clock(CLOCK_MONOTONIC) < until) {
      const int count = ::epoll_wait(epoll_, events, 256, 100);
      for (int i = 0; i < count; ++i) {
        connection& ready = all_[events[i].data.u64];
        receive(ready);
        if (ready.sent < message_.size()) {
          send(ready);
        }
      }
    }
  }

  std::vector<std::int64_t>& latencies() { return latencies_; }

 private:
  void connect(int port) {
    ::sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (made < 0 || ::connect(made, reinterpret_cast<::sockaddr*>(&to), sizeof to) != 0 ||
        ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 || ::fcntl(made, F_SETFL, O_NONBLOCK) != 0) {
      fail("cannot connect");
    }
    ::epoll_event interest{};
    interest.events = EPOLLIN | EPOLLOUT | EPOLLET;
    interest.data.u64 = all_.size();
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, made, &interest) != 0) {
      fail("cannot watch a connection");
    }
    all_.push_back({made});
  }

  void send(connection& over) {
    while (over.sent < message_.size()) {
      const ssize_t put = ::send(over.socket, message_.data() + over.sent, message_.size() - over.sent, MSG_NOSIGNAL);
      if (put < 0) {
        if (errno != EAGAIN) {
          fail("cannot send");
        }
        return;
      }
      over.sent += static_cast<std::size_t>(put);
    }
  }

  void receive(connection& from) {
    for (;;) {
      const ssize_t got = ::recv(from.socket, into_.data(), into_.size(), 0);
      if (got <= 0) {
        if (got == 0 || errno != EAGAIN) {
          fail("the server ended a connection");
        }
        return;
      }
      const auto bytes = static_cast<std::size_t>(got);
      if (bytes > from.sent - from.received || std::memcmp(into_.data(), message_.data() + from.received, bytes) != 0) {
        errno = EPROTO;
        fail("check failed: these bytes were not sent");
      }
      from.received += bytes;
      if (from.received == message_.size()) {
        const std::int64_t now = read_clock(CLOCK_MONOTONIC);
        latencies_.push_back(now - from.began);
        from = {from.socket, 0, 0, now};
        send(from);
      }
      if (bytes < into_.size()) {
        return;  // the socket is empty: edge-triggered epoll reports what comes next
      }
    }
  }

  std::vector<char> message_, into_;
  std::vector<connection> all_;
  std::vector<std::int64_t> latencies_;
  int epoll_;
};

void print(const char* measure, const char* unit, double value, const char* const* arguments) {
  std::printf(
      "{\"params\": {\"connections\": %s, \"bytes\": %s, \"measure\": \"%s\"}, \"unit\": \"%s\", \"value\": %.1f}\n",
      arguments[2], arguments[3], measure, unit, value);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: echo_driver PORT CONNECTIONS BYTES SERVER SECONDS\n");
    return EXIT_FAILURE;
  }
  ::rlimit most;
  ::getrlimit(RLIMIT_NOFILE, &most);
  most.rlim_cur = most.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &most);
  ::clockid_t server;
  if (::clock_getcpuclockid(std::atoi(argv[4]), &server) != 0) {
    fail("cannot read the server's CPU time");
  }
  driver all(std::atoi(argv[1]), std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
  constexpr std::int64_t warm_up = 300'000'000;
  all.run(read_clock(CLOCK_MONOTONIC) + warm_up);
  all.latencies().clear();
  const std::int64_t began = read_clock(CLOCK_MONOTONIC), cpu_before = read_clock(server);
  all.run(began + static_cast<std::int64_t>(std::atof(argv[5]) * 1e9));
  const auto cpu = static_cast<double>(read_clock(server) - cpu_before);
  const auto elapsed = static_cast<double>(read_clock(CLOCK_MONOTONIC) - began);
  auto& latencies = all.latencies();
  if (latencies.empty() || cpu <= 0) {
    errno = EPROTO;
    fail("check failed: no message came back");
  }
  std::sort(latencies.begin(), latencies.end());
  const auto count = static_cast<double>(latencies.size());
  const auto percentile = [&](double of) {
    return static_cast<double>(latencies[static_cast<std::size_t>(of * (count - 1))]);
  };
  print("per-cpu", "requests/s", count / cpu * 1e9, argv);
  print("throughput", "requests/s", count / elapsed * 1e9, argv);
  print("p50", "ns", percentile(0.5), argv);
  print("p99", "ns", percentile(0.99), argv);
  print("p99.9", "ns", percentile(0.999), argv);
  return EXIT_SUCCESS;
}
