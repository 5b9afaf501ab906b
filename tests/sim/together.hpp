// Small programs of a few fibers that meet at one primitive, for explorations that look at nothing else.
#pragma once

#include <pirn/detail/platform.hpp>
#include <pirn/sim/thread.hpp>

#include "sim/fibers.hpp"

namespace pirn_test {

/// Where threads stop until it is opened. Of the platform only, so that no primitive is tested by itself.
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
  /// The first body's fiber calls it before any body begins; no schedule is chosen there.
  std::function<void()> before = [] {};
  /// The last so many bodies run on plain threads instead.
  unsigned threads = 0;
  /// Whether any worker may go on with a fiber.
  bool migratable = false;
  /// Gets the fibers before any body begins, for those that stop each other.
  std::vector<pirn::fiber>* fibers = nullptr;
};

/// Runs each of `all` as a fiber of a worker of its own. Only what happens from the beginning of all to the end of the
/// last is explored: how a worker begins and how a fiber ends is for other tests, and would make the executions fifty
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

/// How far virtual time is when the sleepers of a program wake, and deadlines pass, all at once.
inline pirn::platform::time_point soon() noexcept { return pirn::platform::now() + std::chrono::milliseconds(1); }

}  // namespace pirn_test
