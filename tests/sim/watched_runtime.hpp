// A runtime of which an exploration looks at what happens in the middle.
#pragma once

#include <pirn/fiber/runtime.hpp>
#include <pirn/sim/explore.hpp>

#include <optional>

namespace pirn_test {

/// Its beginning and its end have one schedule each; what happens between `watch` and `done` has all of them.
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
  // Before the runtime, so that it goes after it.
  std::optional<pirn::sim::one_schedule> unseen_;
  pirn::runtime inside_;
};

}  // namespace pirn_test
