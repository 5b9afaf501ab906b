// The other side of servers of streams: sends requests over many connections, each as soon as the last answer has come,
// in a closed loop of epoll; checks the answers; prints rows. A request is a message of BYTES bytes that comes back, or
// REQUEST, whose answer begins with BEGINNING and has BYTES bytes. SERVER is the process whose CPU time counts.
//     stream_driver SERVER SECONDS ADDRESS CONNECTIONS BYTES [REQUEST BEGINNING]
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "driver.hpp"

namespace {

struct connection {
  int socket;
  std::size_t sent = 0;      ///< bytes of the request under way
  std::size_t received = 0;  ///< bytes of its answer
  std::int64_t began = 0;
};

class driver {
 public:
  driver(const bench::address& to, std::size_t connections, std::string request, std::string beginning,
         std::size_t answer, bench::request_log& log)
      : request_(std::move(request)), beginning_(std::move(beginning)), answer_(answer), log_(log), into_(1 << 16) {
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < connections; ++i) {
      connect(to);
    }
  }

  /// Sends requests for some time.
  void run(std::int64_t until) {
    for (connection& each : all_) {
      if (each.began == 0) {
        each.began = bench::read_clock();
        send(each);
      }
    }
    ::epoll_event events[256];
    while (bench::read_clock() < until) {
      const int count = ::epoll_wait(epoll_, events, 256, 100);
      for (int i = 0; i < count; ++i) {
        connection& ready = all_[events[i].data.u64];
        receive(ready);
        if (ready.sent < request_.size()) {
          send(ready);
        }
      }
    }
  }

 private:
  void connect(const bench::address& to) {
    const int made = ::socket(to.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (made < 0 || ::connect(made, to.native(), to.size) != 0 || ::fcntl(made, F_SETFL, O_NONBLOCK) != 0 ||
        (to.family == AF_INET && ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)) {
      bench::fail("cannot connect");
    }
    ::epoll_event interest{};
    interest.events = EPOLLIN | EPOLLOUT | EPOLLET;
    interest.data.u64 = all_.size();
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, made, &interest) != 0) {
      bench::fail("cannot watch a connection");
    }
    all_.push_back({made});
  }

  void send(connection& over) {
    while (over.sent < request_.size()) {
      const ssize_t put = ::send(over.socket, request_.data() + over.sent, request_.size() - over.sent, MSG_NOSIGNAL);
      if (put < 0) {
        if (errno != EAGAIN) {
          bench::fail("cannot send");
        }
        return;
      }
      over.sent += static_cast<std::size_t>(put);
    }
  }

  void receive(connection& from) {
    for (;;) {
      const ssize_t got = ::recv(from.socket, into_.data(), into_.size(), 0);
      if (got < 0 && errno == EAGAIN) {
        return;
      }
      if (got <= 0) {
        bench::fail("the server ended a connection");
      }
      const std::string_view bytes(into_.data(), static_cast<std::size_t>(got));
      if (bytes.size() > answer_ - from.received || !is_expected(bytes, from.received)) {
        bench::fail_check("these bytes are no answer");
      }
      from.received += bytes.size();
      if (from.received == answer_) {
        const std::int64_t now = bench::read_clock();
        log_.add(now - from.began);
        from = {from.socket, 0, 0, now};
        send(from);
      }
      if (bytes.size() < into_.size()) {
        return;  // the socket is empty: edge-triggered epoll reports what comes next
      }
    }
  }

  /// Whether the bytes at `offset` of an answer are those of its known beginning, as far as that goes.
  [[nodiscard]] bool is_expected(std::string_view bytes, std::size_t offset) const {
    const std::string_view known = std::string_view(beginning_).substr(std::min(offset, beginning_.size()));
    return bytes.substr(0, known.size()) == known.substr(0, bytes.size());
  }

  const std::string request_, beginning_;
  const std::size_t answer_;
  bench::request_log& log_;
  std::vector<char> into_;
  std::vector<connection> all_;
  int epoll_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 8) {
    std::fprintf(stderr, "usage: stream_driver SERVER SECONDS ADDRESS CONNECTIONS BYTES [REQUEST BEGINNING]\n");
    return EXIT_FAILURE;
  }
  const std::size_t bytes = std::strtoul(argv[5], nullptr, 10);
  std::string message(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    message[i] = static_cast<char>('a' + i % 26);
  }
  bench::request_log log(bench::cpu_clock_of(argv[1]));
  driver all(bench::address(argv[3]), std::strtoul(argv[4], nullptr, 10), argc == 8 ? argv[6] : message,
             argc == 8 ? argv[7] : message, bytes, log);
  bench::measure(log, argv[2], [&](std::int64_t until) { all.run(until); });
  return EXIT_SUCCESS;
}
