// The ring workload, after Danilov, "usched: stackswap coroutines": cycles of N coroutines, each of which makes M
// rounds. In round i the coroutine at place i mod N of its cycle sends a message to its right neighbour and waits until
// it has come around; the others wait for it and pass it on. Rounds may overlap: a coroutine that has passed the
// message of one round on continues with the next. Every coroutine keeps D more bytes in its frame. P workers share the
// cycles, each cycle on one of them.
//
// The message is the number of hops that it has made. Its sender checks that it comes back as N, so that no round can
// be skipped or cut short, and all checked hops together must be N*R*M.
#pragma once

#include <alloca.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "../harness.hpp"

namespace bench::ring {

/// The inputs of one run.
struct shape {
  std::uint64_t n = input("N");                    ///< coroutines in a cycle
  std::uint64_t coroutines = input("COROUTINES");  ///< in all cycles, N*R
  std::uint64_t rounds = input("M");
  std::uint64_t extra = input("D");  ///< additional bytes in each frame
  std::uint64_t workers = input("P");

  [[nodiscard]] std::uint64_t messages() const { return coroutines * rounds; }
  [[nodiscard]] std::uint64_t right_of(std::uint64_t index) const {
    return (index + 1) % n != 0 ? index + 1 : index + 1 - n;
  }
};

/// The messages of a coroutine that it has not taken yet: up to 8, in order, a byte each; none is 0.
class mailbox {
 public:
  static constexpr std::uint64_t capacity = 8;

  [[nodiscard]] bool empty() const { return letters_ == 0; }
  void put(std::uint8_t hops) {
    letters_ |= std::uint64_t{hops} << (static_cast<unsigned>(std::bit_width(letters_) + 7) / 8 * 8);
  }
  std::uint8_t take() {
    const auto first = static_cast<std::uint8_t>(letters_);
    letters_ >>= 8;
    return first;
  }

 private:
  std::uint64_t letters_ = 0;
};

/// As `mailbox`, but each side counts its messages in a separate variable: no word is read back that was just written
/// for the previous message. For users that keep such a variable in a register. C++20 coroutines, whose variables are
/// in memory, are faster with `mailbox`.
class letterbox {
 public:
  [[nodiscard]] bool empty(std::uint64_t taken) const { return letters_[taken % mailbox::capacity] == 0; }
  void put(std::uint64_t sent, std::uint8_t hops) { letters_[sent % mailbox::capacity] = hops; }
  std::uint8_t take(std::uint64_t taken) { return std::exchange(letters_[taken % mailbox::capacity], std::uint8_t{0}); }

 private:
  std::uint8_t letters_[mailbox::capacity]{};
};

/// The rounds of one coroutine: `send(hops)` gives a message to its right neighbour, `receive()` waits for one from the
/// left. Returns the hops of the rounds that it has opened.
template <typename Send, typename Receive>
std::uint64_t make_rounds(const shape& what, std::uint64_t index, Send send, Receive receive) {
  std::uint64_t hops = 0;
  std::uint64_t until_mine = index % what.n;
  for (std::uint64_t round = 0; round < what.rounds; ++round) {
    if (until_mine == 0) {
      send(std::uint8_t{1});
      const std::uint8_t made = receive();
      check(made == what.n, "a message passes its whole cycle");
      hops += made;
      until_mine = what.n;
    } else {
      send(static_cast<std::uint8_t>(receive() + 1));
    }
    --until_mine;
  }
  return hops;
}

/// Calls `body()` with `extra` more bytes on the stack, which are written and stay there until it returns.
template <typename Body>
__attribute__((noinline)) void above_extra(std::uint64_t extra, Body body) {
  void* const bytes = opaque(alloca(extra));
  std::memset(bytes, '#', extra);
  asm volatile("" : : "r"(bytes) : "memory");
  body();
  asm volatile("" : : "r"(bytes) : "memory");
}

/// As `above_extra`, but without a frame for it if there are no extra bytes.
template <typename Body>
__attribute__((always_inline)) inline void with_extra(std::uint64_t extra, Body body) {
  if (extra != 0) {
    above_extra(extra, body);
  } else {
    body();
  }
}

/// Prints the row of a run that `took` ns, unless the hops of its rounds say that messages are missing.
inline void row(const char* impl, const shape& what, double took, std::uint64_t hops, const char* note = nullptr) {
  check(hops == what.messages(), "every message of every round is sent");
  const std::string params = R"({"N":)" + std::to_string(what.n) + R"(,"coroutines":)" +
                             std::to_string(what.coroutines) + R"(,"M":)" + std::to_string(what.rounds) + R"(,"D":)" +
                             std::to_string(what.extra) + R"(,"P":)" + std::to_string(what.workers) + "}";
  bench::row("ring", impl, params, "op/s", static_cast<double>(what.messages()) / took * 1e9, note);
}

/// Returns the inputs, if they make sense and memory suffices for `each` bytes and the extra bytes of every coroutine.
inline shape checked_shape(std::uint64_t each) {
  const shape what;
  check(what.n >= 2 && what.n <= mailbox::capacity && what.coroutines % what.n == 0, "N is 2 to 8 and divides N*R");
  need_memory(what.coroutines * (each + what.extra));
  return what;
}

/// The coroutines of one worker: the indices [first, last).
struct part {
  std::uint64_t first;
  std::uint64_t last;
};

/// Runs the whole workload with one `Worker` in each of P threads, or in this thread if P is 1: `Worker(what, part)`
/// makes its coroutines, `run()` runs them to their ends and returns the sum of the results of their make_rounds. Only
/// `run` is timed, in CPU time if P is 1.
template <typename Worker>
void run(const char* impl, std::uint64_t bytes_each, const char* note = nullptr) {
  const shape what = checked_shape(bytes_each);
  if (what.workers == 1) {
    Worker worker(what, part{0, what.coroutines});
    const double start = now_ns();
    const std::uint64_t hops = worker.run();
    row(impl, what, now_ns() - start, hops, note);
    return;
  }
  const std::uint64_t cycles = what.coroutines / what.n;
  std::vector<std::uint64_t> hops(what.workers);
  std::vector<double> ends(what.workers);
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> ready = 0;
  std::atomic<bool> started = false;
  for (std::uint64_t i = 0; i < what.workers; ++i) {
    threads.emplace_back([&, i] {
      Worker worker(what, part{i * cycles / what.workers * what.n, (i + 1) * cycles / what.workers * what.n});
      ready.fetch_add(1);
      started.wait(false);
      hops[i] = worker.run();
      ends[i] = wall_ns();
    });
  }
  while (ready.load() < what.workers) {
    std::this_thread::yield();
  }
  const double start = wall_ns();
  started.store(true);
  started.notify_all();
  for (std::thread& thread : threads) {
    thread.join();
  }
  const double took = *std::max_element(ends.begin(), ends.end()) - start;
  row(impl, what, took, std::accumulate(hops.begin(), hops.end(), std::uint64_t{0}), note);
}

}  // namespace bench::ring
