// pirn's fibers, for workloads that are written once for all libraries of C++. Each library has a header like this one.
#pragma once

#include <mutex>
#include <vector>

#include "harness.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/mutex.hpp"

namespace bench {

/// Whether units of several workers stay there or may migrate.
enum class mobility : std::uint8_t { pinned, migratable };

/// A condition variable of pirn's as the workloads use one.
template <typename Variable>
class condition_of {
 public:
  template <typename Lock, typename Ready>
  void wait(Lock& lock, Ready ready) {
    check(condition_.wait(lock, ready).has_value(), "a wait ends as it should");
  }
  void notify_one() { condition_.notify_one(); }

 private:
  Variable condition_;
};

template <mobility Where>
struct units_that_are {
  static constexpr bool migratable = Where == mobility::migratable;
  static constexpr const char* name = migratable ? "pirn-migratable" : "pirn";
  static constexpr const char* note = migratable ? "fibers that may resume on any worker" : "pirn::mutex, the fair one";
  using mutex = pirn::mutex;
  using condition = condition_of<pirn::condition_variable>;

  static void yield() { pirn::this_fiber::yield(); }

  /// Runs `body` as a unit on the first of WORKERS.
  template <typename Body>
  static void run(Body body) {
    const auto workers = static_cast<unsigned>(input("WORKERS"));
    pirn::runtime runtime({.workers = workers, .calling_thread = workers == 1, .stack_size = input("STACK")});
    runtime.run(body);
  }

  /// Runs `body(i)` for each i below `count` in a separate unit, which stays on worker i modulo their number or begins
  /// there, until all have ended.
  template <typename Body>
  static void together(std::uint64_t count, Body body) {
    const std::uint64_t workers = input("WORKERS");
    std::vector<pirn::fiber> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      all.push_back(
          pirn::spawn([&body, i] { body(i); }, {.worker = static_cast<int>(i % workers), .migratable = migratable}));
    }
    for (pirn::fiber& each : all) {
      each.join();
    }
  }

  /// Runs `other` in a separate unit, which any worker may run, and `mine` in the caller's, until both have ended.
  template <typename Other, typename Mine>
  static void both(Other other, Mine mine) {
    static const bool alone = input("WORKERS") == 1;  // once: it takes as long as the rest
    pirn::fiber unit = alone ? pirn::spawn(other) : pirn::spawn(other, {.worker = pirn::spawn_options::any_worker});
    mine();
    unit.join();
  }
};
using units = units_that_are<mobility::pinned>;

/// As `units`, but each is where a plain spawn puts it: on the worker of its spawner, whatever their number.
struct plain_units : units {
  static constexpr const char* name = "pirn-plain";
  static constexpr const char* note = "fibers of a plain spawn, which stay on the worker of their spawner";

  template <typename Body>
  static void together(std::uint64_t count, Body body) {
    std::vector<pirn::fiber> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      all.push_back(pirn::spawn([&body, i] { body(i); }));
    }
    for (pirn::fiber& each : all) {
      each.join();
    }
  }
};

}  // namespace bench
