// The other side of servers of streams: sends requests over many connections, each as soon as the last answer has come,
// in a closed loop of epoll; checks the answers; prints rows. A request is a message of BYTES bytes that comes back, or
// REQUEST, whose answer begins with BEGINNING and has BYTES bytes, or one of the mix of the workload `store`. SERVER is
// the process whose CPU time counts.
//     stream_driver SERVER SECONDS ADDRESS CONNECTIONS BYTES [REQUEST BEGINNING]
//     stream_driver SERVER SECONDS ADDRESS CONNECTIONS store
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "callbacks/kv.hpp"
#include "driver.hpp"

namespace {

/// A request and its answer, whose beginning is known.
struct exchange {
  std::string request, beginning;
  std::size_t answer;  ///< bytes
};

struct connection {
  int socket;
  std::size_t turn = 0;      ///< of the exchanges
  std::size_t sent = 0;      ///< bytes of the request under way
  std::size_t received = 0;  ///< bytes of its answer
  std::int64_t began = 0;
};

class driver {
 public:
  driver(const bench::address& to, std::size_t connections, std::vector<exchange> exchanges, bench::request_log& log)
      : exchanges_(std::move(exchanges)), log_(log), into_(1 << 16) {
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
        if (ready.sent < of(ready).request.size()) {
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
    // Connections begin at different places of the mix.
    all_.push_back({made, all_.size() * 97 % exchanges_.size()});
  }

  [[nodiscard]] const exchange& of(const connection& one) const { return exchanges_[one.turn]; }

  void send(connection& over) {
    const std::string& request = of(over).request;
    while (over.sent < request.size()) {
      const ssize_t put = ::send(over.socket, request.data() + over.sent, request.size() - over.sent, MSG_NOSIGNAL);
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
      if (bytes.size() > of(from).answer - from.received || !is_expected(of(from), bytes, from.received)) {
        bench::fail_check("these bytes are no answer");
      }
      from.received += bytes.size();
      if (from.received == of(from).answer) {
        const std::int64_t now = bench::read_clock();
        log_.add(now - from.began);
        from = {from.socket, (from.turn + 1) % exchanges_.size(), 0, 0, now};
        send(from);
      }
      if (bytes.size() < into_.size()) {
        return;  // the socket is empty: edge-triggered epoll reports what comes next
      }
    }
  }

  /// Whether the bytes at `offset` of an answer are those of its known beginning, as far as that goes.
  [[nodiscard]] static bool is_expected(const exchange& of, std::string_view bytes, std::size_t offset) {
    const std::string_view known = std::string_view(of.beginning).substr(std::min(offset, of.beginning.size()));
    return bytes.substr(0, known.size()) == known.substr(0, bytes.size());
  }

  const std::vector<exchange> exchanges_;
  bench::request_log& log_;
  std::vector<char> into_;
  std::vector<connection> all_;
  int epoll_;
};

std::vector<exchange> mix_of_store() {
  std::vector<exchange> made;
  bench::incoming requests(bench::input("KEYS"));
  for (std::size_t i = 0; i < bench::incoming::count; ++i) {
    const std::string_view line = requests.next();
    const bench::request asked = bench::parse(line);
    std::string answer;
    for (unsigned k = 0; k < (asked.what == bench::kind::scan ? bench::scan_length : 1); ++k) {
      const std::string key(bench::key_text{bench::key_number(asked.key) + k});
      // A value names its key, whichever request wrote it last.
      answer += "VALUE " + key + " 0 100\r\n" + std::string(bench::value_size - key.size(), '.') + key + "\r\n";
    }
    answer = asked.what == bench::kind::set ? "STORED\r\n" : answer + "END\r\n";
    made.push_back({std::string(line) + "\r\n", answer, answer.size()});
  }
  return made;
}

std::vector<exchange> one_of(const char* bytes, const char* request, const char* beginning) {
  const std::size_t size = std::strtoul(bytes, nullptr, 10);
  std::string message(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    message[i] = static_cast<char>('a' + i % 26);
  }
  return {request == nullptr ? exchange{message, message, size} : exchange{request, beginning, size}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 8) {
    std::fprintf(stderr, "usage: stream_driver SERVER SECONDS ADDRESS CONNECTIONS BYTES [REQUEST BEGINNING]\n");
    return EXIT_FAILURE;
  }
  bench::request_log log(bench::cpu_clock_of(argv[1]));
  driver all(bench::address(argv[3]), std::strtoul(argv[4], nullptr, 10),
             argv[5] == std::string_view("store")
                 ? mix_of_store()
                 : one_of(argv[5], argc == 8 ? argv[6] : nullptr, argc == 8 ? argv[7] : nullptr),
             log);
  bench::measure(log, argv[2], [&](std::int64_t until) { all.run(until); });
  return EXIT_SUCCESS;
}
