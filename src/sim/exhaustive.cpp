// The exhaustive strategy: takes the choices of an execution, and finds the next execution to try.
#include "sim/exhaustive.hpp"

#include <bit>

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

unsigned exhaustive_schedule::pick_thread(thread_set enabled, unsigned running) noexcept {
  if (redundant_) {
    return default_thread(enabled, running);
  }
  if (depth_ == trail_.size()) {
    node& made = new_node();
    made.enabled = enabled;
    made.running = running;
    made.preemptions = preemptions_;
    made.spent = spent_;
    made.asleep = asleep_;
    const thread_set awake = enabled & ~asleep_;
    if (awake == 0) {
      trail_.pop_back();
      redundant_ = true;
      return default_thread(enabled, running);
    }
    made.chosen = default_thread(awake, running);
    made.wanted = reduce_ ? only(made.chosen) : enabled;
    made.block = depth_;
    if (depth_ != 0) {
      const node& before = trail_[depth_ - 1];
      if (before.ran() == running) {
        made.block = before.running == running ? before.block : depth_ - 1;
      }
    }
  }
  node& at = trail_[depth_++];
  if (at.enabled != enabled || at.running != running) {
    refuse();
  }
  if (preempts(at, at.chosen)) {
    ++preemptions_;
    ++spent_;
  }
  asleep_ = sleeps() ? (at.asleep | at.done) & ~only(at.chosen) : 0;
  return at.chosen;
}

unsigned exhaustive_schedule::choose_value(unsigned count) noexcept {
  if (redundant_) {
    return 0;
  }
  if (depth_ == trail_.size()) {
    node& made = new_node();
    made.count = count;
    made.preemptions = preemptions_;
    made.spent = spent_;
    if (depth_ != 0) {
      made.block = trail_[depth_ - 1].block;
      made.running = trail_[depth_ - 1].ran();
    }
  }
  const node& at = trail_[depth_++];
  if (at.enabled != 0 || at.count != count) {
    refuse();
  }
  spent_ += at.chosen != 0 ? 1 : 0;
  return at.chosen;
}

void exhaustive_schedule::refuse() const noexcept {
  const std::string text =
      "at choice " + std::to_string(depth_ - 1) +
      " the program behaved differently than in an earlier execution with the same choices; it must depend only on "
      "them, and on no clock, address, random number or state that outlives an execution";
  platform::checked::fail("nondeterministic", text.c_str());
}

void exhaustive_schedule::want(node& at, thread_set first) noexcept {
  // A thread that is asleep there has begun an equivalent execution.
  if (((at.wanted | at.asleep) & first) == 0) {
    const thread_set able = at.enabled & first;
    at.wanted |= able != 0 ? able & -able : at.enabled;
  }
}

void exhaustive_schedule::race(std::uint32_t at, thread_set first) noexcept {
  if (!reduce_ || redundant_ || at >= trail_.size()) {
    return;
  }
  want(trail_[at], first);
  if (bound_ != no_bound) {
    // At this choice the other order may cost a preemption too many; at the beginning of the block it costs none.
    node& begin = trail_[trail_[at].block];
    if (begin.enabled != 0) {
      want(begin, first);
    }
  }
}

bool exhaustive_schedule::take_next(node& at) noexcept {
  const bool allowed = at.spent < allowance_;
  if (at.enabled == 0) {
    if (at.chosen + 1 == at.count) {
      return false;
    }
    left_out_ |= !allowed;
    at.chosen += allowed ? 1 : 0;
    return allowed;
  }
  at.done |= only(at.chosen);
  for (thread_set left = at.wanted & at.enabled & ~at.done & ~at.asleep; left != 0; left &= left - 1) {
    const auto thread = static_cast<unsigned>(std::countr_zero(left));
    const bool bounded = at.preemptions < bound_;
    if (!preempts(at, thread) || (bounded && allowed)) {
      at.chosen = thread;
      return true;
    }
    left_out_ |= bounded;
    at.done |= only(thread);
  }
  return false;
}

bool exhaustive_schedule::allow_more() noexcept {
  if (!left_out_) {
    return false;
  }
  left_out_ = false;
  // One choice more than the preemptions, for a value, and then any number: nearly every execution has such choices.
  allowance_ = allowance_ > bound_ ? no_bound : allowance_ + 1;
  return true;
}

bool exhaustive_schedule::advance() {
  depth_ = 0;
  preemptions_ = 0;
  spent_ = 0;
  asleep_ = 0;
  redundant_ = false;
  if (!begun_) {
    begun_ = true;
    return true;
  }
  while (!trail_.empty()) {
    if (take_next(trail_.back())) {
      return true;
    }
    trail_.pop_back();
  }
  exhausted_ = !allow_more();
  return !exhausted_;
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
