// Small programs of a few fibers that meet at one primitive, for explorations that look at nothing else.
#pragma once

#include <pirn/detail/platform.hpp>
#include <pirn/sim/thread.hpp>

#include "sim/fibers.hpp"

namespace pirn_test {

/// Stops threads until it is opened. It uses the platform only, so that no primitive tests itself.
class gate {
 public:
  void pass() noexcept {
    while (open_.load(pirn::platform::memory_order_acquire) == 0) {
      pirn::platform::futex_wait(open_, 0, pirn::platform::never);
    }
  }
  void open() noexcept {
    open_.store(1, pirn::platform::memory_order_release);
    pirn::platform::futex_wake(&open_, 16);
  }

 private:
  pirn::platform::atomic<std::uint32_t> open_{0};
};

using bodies = std::vector<std::function<void()>>;

struct together_options {
  /// Called in the first body's fiber before any body begins; no schedule is chosen there.
  std::function<void()> before = [] {};
  /// How many bodies, counted from the last, run on plain threads instead.
  unsigned threads = 0;
  /// Whether a fiber may resume on any worker.
  bool migratable = false;
  /// Receives the fibers before any body begins, for bodies that stop each other.
  std::vector<pirn::fiber>* fibers = nullptr;
};

/// Runs each of `all` as a fiber on a separate worker. Only the part from the beginning of all bodies to the end of the
/// last is explored. Other tests cover how a worker begins and how a fiber ends, which would make the executions fifty
/// times as many. The worker of a body that has ended does nothing any more.
inline void run_together(const bodies& all, const together_options& options = {}) {
  std::optional<pirn::sim::one_schedule> apart(std::in_place);
  const auto count = static_cast<unsigned>(all.size());
  pirn::runtime runtime{{.workers = count - options.threads}};
  gate begin;
  gate end;
  unsigned begun = 0;
  unsigned ended = 0;
  const auto run = [&](unsigned i) {
    if (i == 0) {
      options.before();
    }
    ++begun;
    begin.pass();
    all[i]();
    if (++ended == count) {
      apart.emplace();
      end.open();
    }
    end.pass();
  };
  std::vector<pirn::fiber> own;
  std::vector<pirn::fiber>& fibers = options.fibers != nullptr ? *options.fibers : own;
  std::vector<pirn::sim::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    if (i < count - options.threads) {
      fibers.push_back(
          runtime.spawn([&run, i] { run(i); }, {.worker = static_cast<int>(i), .migratable = options.migratable}));
    } else {
      threads.emplace_back([&run, i] { run(i); });
    }
  }
  while (begun != count) {
    pirn::platform::yield_thread();
  }
  apart.reset();
  begin.open();
  end.pass();
  for (auto& each : fibers) {
    each.join();
  }
  fibers.clear();
}

/// Returns the virtual time at which the sleepers of a program wake, and deadlines pass, all at once.
inline pirn::platform::time_point soon() noexcept { return pirn::platform::now() + std::chrono::milliseconds(1); }

}  // namespace pirn_test
