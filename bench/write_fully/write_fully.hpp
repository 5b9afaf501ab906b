// Shared by the C++ programs of write_fully: the sink, the amount of work, the time split and the checks.
//
// Each of some senders writes a large buffer by `write_fully`, which calls `send_some` until everything is sent; that
// waits until its sink is ready, during which the other senders run, and then sends one step. These calls with a wait
// that returns at once are the application's part of the time; the rest is the scheduler's.
#pragma once

#include <cstddef>
#include <memory>

#include "../harness.hpp"

namespace bench {

/// The most that a sink takes at once, in bytes.
inline constexpr std::size_t step = 800;

/// The destination of a sender's data: the data is counted and never read, so that memory does not hide the cost of
/// switches.
struct sink {
  const std::byte* end = nullptr;  ///< of the received data
  std::uint64_t bytes = 0;         ///< received so far
};

/// All sinks, and the progress of the slowest one when the first was about to be full: about the same if senders take
/// turns.
struct round {
  std::vector<sink> sinks;
  std::uint64_t slowest = UINT64_MAX;
};
inline round this_round;

inline std::size_t take(sink& to, const std::byte* data, std::size_t taken) {
  asm volatile("" : "+r"(taken), "+r"(data) : : "memory");  // makes the result unknown to the compiler
  to.end = data + taken;
  to.bytes += taken;
  return taken;
}
[[gnu::noinline, gnu::cold]] inline std::size_t take_last(sink& to, const std::byte* data, std::size_t size) {
  if (this_round.slowest == UINT64_MAX) {
    for (const sink& each : this_round.sinks) {
      this_round.slowest = std::min(this_round.slowest, each.bytes);
    }
  }
  return take(to, data, size);
}

/// Stands for the non-blocking system call. Returns how many bytes it took. Opaque to its callers.
[[gnu::noinline]] inline std::size_t offer(sink& to, const std::byte* data, std::size_t size) {
  return size > step ? take(to, data, step) : take_last(to, data, size);
}

/// The buffer that every sender sends: only address space, since it is never read.
class payload {
 public:
  payload() : size_(input("SEND_MB") * 1'000'000), data_(std::make_unique_for_overwrite<std::byte[]>(size_)) {}
  [[nodiscard]] const std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint64_t steps() const { return (size_ + step - 1) / step; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

/// Prints the rows of one implementation. `send_all(sinks, payload)` lets one sender for each sink send the payload
/// to it; `ready` says whether a wait returns at once, and is set for it.
template <typename SendAll>
void write_fully_rows(const char* impl, bool& ready, SendAll&& send_all, const char* note = nullptr) {
  const payload whole;
  const std::uint64_t granule = whole.steps() * input("FIBERS");
  const auto measure = [&](bool without_waits) {
    ready = without_waits;
    return ns_per_operation(
        [&](std::uint64_t n) {
          for (std::uint64_t done = 0; done < n; done += granule) {
            this_round = {std::vector<sink>(input("FIBERS"))};
            send_all(this_round.sinks, whole);
            for (const sink& each : this_round.sinks) {
              check(each.end == whole.data() + whole.size() && each.bytes == whole.size(), "everything is sent once");
            }
            check(ready || this_round.slowest >= whole.size() / 10 * 9, "senders take turns");
          }
        },
        granule);
  };
  const double total = measure(false);
  const double application = measure(true);
  row("write_fully", impl, R"({"part":"total"})", "ns", total, note);
  row("write_fully", impl, R"({"part":"application"})", "ns", application, note);
  row("write_fully", impl, R"({"part":"scheduler"})", "ns", total - application, note);
}

}  // namespace bench
