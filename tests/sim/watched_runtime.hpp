// A runtime whose middle part an exploration looks at.
#pragma once

#include <pirn/fiber/runtime.hpp>
#include <pirn/sim/explore.hpp>

#include <optional>

namespace pirn_test {

/// The beginning and the end of the runtime have one schedule each; the part between `watch` and `done` has all of
/// them.
class watched_runtime {
 public:
  explicit watched_runtime(unsigned workers) : unseen_(std::in_place), inside_({.workers = workers}) {}
  ~watched_runtime() { done(); }
  watched_runtime(const watched_runtime&) = delete;
  watched_runtime& operator=(const watched_runtime&) = delete;

  pirn::runtime* operator->() noexcept { return &inside_; }
  void watch() noexcept { unseen_.reset(); }
  void done() noexcept {
    if (!unseen_) {
      unseen_.emplace();
    }
  }

 private:
  // Declared before the runtime, so that it is destroyed after it.
  std::optional<pirn::sim::one_schedule> unseen_;
  pirn::runtime inside_;
};

}  // namespace pirn_test
