// The completions that a worker has not published yet.
#pragma once

#include <memory>

#include "pirn/fiber/detail/control.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Fibers of one worker whose end only that worker knows, so that it costs no atomic operation: those that have ended
/// since the last tick, and those between that and the one before. For the worker's thread.
class deferred_completions {
 public:
  /// Keeps at most this number of fibers for each tick: each takes a switch, and a worker makes no more of them.
  explicit deferred_completions(std::size_t switch_budget)
      : ended_(std::make_unique<fiber_control*[]>(2 * switch_budget)),
        ended_before_(std::make_unique<fiber_control*[]>(2 * switch_budget)) {}

  /// Defers the completion of a fiber without waiters.
  PIRN_ALWAYS_INLINE void defer(fiber_control* f, std::uintptr_t outcome) noexcept {
    f->set_ended_here(outcome, last_ended_);
    *last_ended_++ = f;
  }
  /// Claims such a fiber for its handle; returns its join_state.
  PIRN_ALWAYS_INLINE static std::uintptr_t claim(fiber_control* f) noexcept {
    *f->deferred_slot() = nullptr;
    f->release_block();
    return f->ended_here();
  }
  /// Publishes those that had ended by the last tick but one, unless their handles have claimed them. True if there are
  /// more.
  bool publish() noexcept;

 private:
  // A slot is null once its fiber was claimed.
  std::unique_ptr<fiber_control*[]> ended_;
  std::unique_ptr<fiber_control*[]> ended_before_;
  fiber_control** last_ended_ = ended_.get();
  fiber_control** last_ended_before_ = ended_before_.get();
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
