// The chan workload: messages through bounded channels. All are different numbers, and the sum of the received ones
// must be that of the sent ones; in a ping-pong the number counts the messages.
#pragma once

#include <atomic>

#include "../harness.hpp"

namespace bench {

inline constexpr std::uint64_t chan_many = 8;     ///< senders or receivers on the other side of the single one
inline constexpr std::uint64_t chan_places = 64;  ///< of the channel between them

/// Measures `run(shape, n)`, of n messages. A row names the room of a channel where that is not the usual one of its
/// shape.
template <typename Run>
void chan_rows(const char* impl, Run run, const char* note) {
  const std::string shape = word_input("SHAPE");
  const std::uint64_t workers = input("WORKERS");
  const std::uint64_t room = input("ROOM");
  const bool usual = shape != "stream" && room == (shape == "ping-pong" ? 1 : chan_places);
  const double ns = ns_per_operation([&](std::uint64_t n) { run(shape, n); }, chan_many, clock_for(workers));
  row("chan", impl,
      R"({"shape":")" + shape + R"(","workers":)" + std::to_string(workers) +
          (usual ? "" : R"(,"room":)" + std::to_string(room)) + "}",
      "ns", ns, note);
}
/// As `chan_rows`, for `ping_pong(n)` and `fan(n, first_sends)` with the usual room.
template <typename PingPong, typename Fan>
void chan_row(const char* impl, PingPong ping_pong, Fan fan, const char* note) {
  chan_rows(
      impl,
      [&](const std::string& shape, std::uint64_t n) {
        shape == "ping-pong" ? ping_pong(n) : fan(n, shape == "fan-out");
      },
      note);
}

/// Measures a library: `Units` as in units_pirn.hpp, a `Channel(places)` with `send(number)` and `receive()`.
template <typename Units, typename Channel>
class chan {
 public:
  static void measure(const char* note, const char* impl = Units::name) {
    chan_rows(
        impl,
        [](const std::string& shape, std::uint64_t n) {
          if (shape == "ping-pong") {
            ping_pong(n);
          } else if (shape == "stream") {
            stream(n);
          } else {
            fan(n, shape == "fan-out");
          }
        },
        note);
  }

 private:
  static void ping_pong(std::uint64_t n) {
    Channel there(input("ROOM"));
    Channel back(input("ROOM"));
    std::uint64_t last = 0;
    Units::together(2, [&](std::uint64_t i) {
      if (i == 0) {
        std::uint64_t number = 0;
        for (std::uint64_t k = 0; k < n; k += 2) {
          there.send(number + 1);
          number = back.receive();
        }
        last = number;
      } else {
        for (std::uint64_t k = 0; k < n; k += 2) {
          back.send(there.receive() + 1);
        }
      }
    });
    check(last == n, "every message is answered");
  }

  /// One unit sends to another one.
  static void stream(std::uint64_t n) {
    Channel channel(input("ROOM"));
    std::uint64_t sum = 0;
    Units::together(2, [&](std::uint64_t i) {
      for (std::uint64_t number = 0; number < n; ++number) {
        if (i == 0) {
          channel.send(number);
        } else {
          sum += channel.receive();
        }
      }
    });
    check(sum == n * (n - 1) / 2, "every message arrives once");
  }

  /// Unit 0 sends to the others, or they send to it.
  static void fan(std::uint64_t n, bool first_sends) {
    Channel channel(chan_places);
    std::atomic<std::uint64_t> sum = 0;
    Units::together(chan_many + 1, [&](std::uint64_t i) {
      const std::uint64_t share = i == 0 ? n : n / chan_many;
      const std::uint64_t begin = i == 0 ? 0 : (i - 1) * share;
      std::uint64_t mine = 0;
      for (std::uint64_t number = begin; number < begin + share; ++number) {
        if ((i == 0) == first_sends) {
          channel.send(number);
        } else {
          mine += channel.receive();
        }
      }
      sum += mine;
    });
    check(sum == n * (n - 1) / 2, "every message arrives once");
  }
};

}  // namespace bench
