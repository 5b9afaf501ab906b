// The other side of servers of datagrams: sends messages of BYTES bytes from many sockets, `window` of each under way,
// in a closed loop of epoll; checks what comes back; prints rows. SERVER is the process whose CPU time counts.
//     datagram_driver SERVER SECONDS PORT CONNECTIONS BYTES
#include <sys/epoll.h>

#include <string>

#include "driver.hpp"

namespace {

/// As many as a call of recvmmsg or sendmmsg moves. With eight sockets all of them fit into the server's buffer.
constexpr std::size_t window = 32;
/// A datagram that is not back by then is lost.
constexpr std::int64_t patience = 1'000'000'000;

/// What a datagram begins with.
struct head {
  std::int64_t sent;
  std::uint64_t turn;  ///< counts how often the socket has begun anew, since what came before was lost
};

struct client {
  int socket;
  std::size_t under_way = 0;
  std::uint64_t turn = 0;
  std::int64_t heard = 0;  ///< when it last received something
};

class driver {
 public:
  driver(const bench::address& to, std::size_t clients, std::size_t bytes, bench::request_log& log)
      : message_(bytes, '\0'), memory_(window * bytes), log_(log) {
    for (std::size_t i = 0; i < bytes; ++i) {
      message_[i] = static_cast<char>('a' + i % 26);
    }
    for (std::size_t i = 0; i < window; ++i) {
      parts_[i] = {memory_.data() + i * bytes, bytes};
      batch_[i].msg_hdr.msg_iov = &parts_[i];
      batch_[i].msg_hdr.msg_iovlen = 1;
    }
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < clients; ++i) {
      connect(to);
    }
  }

  /// Sends messages for some time.
  void run(std::int64_t until) {
    ::epoll_event events[256];
    for (std::int64_t now = bench::read_clock(); now < until; now = bench::read_clock()) {
      for (client& each : all_) {
        if (now - each.heard > patience) {
          lost_ += each.under_way;
          each.under_way = 0;
          ++each.turn;
          each.heard = now;
          send(each);
        }
      }
      const int count = ::epoll_wait(epoll_, events, 256, 100);
      for (int i = 0; i < count; ++i) {
        client& ready = all_[events[i].data.u64];
        receive(ready);
        send(ready);
      }
    }
  }

  [[nodiscard]] std::size_t lost() const { return lost_; }
  [[nodiscard]] std::size_t received() const { return received_; }

 private:
  void connect(const bench::address& to) {
    const int made = ::socket(to.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ::epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.u64 = all_.size();
    if (made < 0 || ::connect(made, to.native(), to.size) != 0 ||
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, made, &interest) != 0) {
      bench::fail("cannot open a socket");
    }
    all_.push_back({made});
  }

  /// Fills the window.
  void send(client& from) {
    const std::size_t count = window - from.under_way;
    const head first{bench::read_clock(), from.turn};
    for (std::size_t i = 0; i < count; ++i) {
      parts_[i].iov_len = message_.size();
      std::memcpy(parts_[i].iov_base, message_.data(), message_.size());
      std::memcpy(parts_[i].iov_base, &first, sizeof first);
    }
    const int sent = ::sendmmsg(from.socket, batch_, static_cast<unsigned>(count), 0);
    if (sent < 0 && errno != EAGAIN) {
      bench::fail("cannot send");
    }
    from.under_way += static_cast<std::size_t>(std::max(sent, 0));
  }

  void receive(client& into) {
    const int count = ::recvmmsg(into.socket, batch_, window, 0, nullptr);
    if (count < 0) {
      if (errno != EAGAIN) {
        bench::fail("cannot receive");
      }
      return;
    }
    const std::int64_t now = into.heard = bench::read_clock();
    for (int i = 0; i < count; ++i) {
      const auto* const bytes = static_cast<const char*>(parts_[i].iov_base);
      head first;
      std::memcpy(&first, bytes, sizeof first);
      if (batch_[i].msg_len != message_.size() ||
          message_.compare(sizeof first, std::string::npos, bytes + sizeof first, message_.size() - sizeof first) !=
              0) {
        bench::fail_check("this datagram was not sent");
      }
      if (first.turn == into.turn) {
        --into.under_way;
        ++received_;
        log_.add(now - first.sent);
      }
    }
  }

  std::string message_;
  std::vector<char> memory_;
  ::iovec parts_[window];
  ::mmsghdr batch_[window]{};
  std::vector<client> all_;
  bench::request_log& log_;
  std::size_t lost_ = 0, received_ = 0;
  int epoll_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = argc == 6 ? std::strtoul(argv[5], nullptr, 10) : 0;
  if (bytes < sizeof(head) || bytes > 65507) {
    std::fprintf(stderr, "usage: datagram_driver SERVER SECONDS PORT CONNECTIONS BYTES, which are 16 to 65507\n");
    return EXIT_FAILURE;
  }
  bench::request_log log(bench::cpu_clock_of(argv[1]));
  driver all(bench::address(argv[3]), std::strtoul(argv[4], nullptr, 10), bytes, log);
  bench::measure(log, argv[2], [&](std::int64_t until) { all.run(until); });
  if (all.lost() > all.received() / 100) {
    bench::fail_check("more than one datagram in a hundred was lost");
  }
  return EXIT_SUCCESS;
}
