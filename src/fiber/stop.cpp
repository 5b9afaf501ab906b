#include "pirn/fiber/stop.hpp"

namespace pirn::inline PIRN_ABI::detail {

void stop_state::release() noexcept {
  if (references_.fetch_sub(1, platform::memory_order_acq_rel) == 1) {
    delete this;
  }
}

bool stop_state::request() noexcept {
  lock_.lock();
  if (requested_.load(platform::memory_order_relaxed)) {
    lock_.unlock();
    return false;
  }
  requested_.store(true, platform::memory_order_release);
  caller_ = platform::thread_id();
  // A callback may release the last source or token.
  acquire();
  while (first_ != nullptr) {
    stop_link* const link = first_;
    first_ = link->next_;
    if (first_ != nullptr) {
      first_->previous_ = nullptr;
    }
    link->linked_ = false;
    calling_.store(link, platform::memory_order_relaxed);
    lock_.unlock();
    link->call_(*link);
    lock_.lock();
    calling_.store(nullptr, platform::memory_order_release);
  }
  lock_.unlock();
  release();
  return true;
}

void stop_link::attach(stop_state& state, void (*call)(stop_link&) noexcept) noexcept {
  call_ = call;
  state_ = &state;
  state.acquire();
  state.lock_.lock();
  if (state.requested_.load(platform::memory_order_relaxed)) {
    state.lock_.unlock();
    call(*this);
    return;
  }
  next_ = state.first_;
  previous_ = nullptr;
  if (next_ != nullptr) {
    next_->previous_ = this;
  }
  state.first_ = this;
  linked_ = true;
  state.lock_.unlock();
}

void stop_link::detach() noexcept {
  if (state_ == nullptr) {
    return;
  }
  stop_state& state = *state_;
  state.lock_.lock();
  if (linked_) {
    (previous_ != nullptr ? previous_->next_ : state.first_) = next_;
    if (next_ != nullptr) {
      next_->previous_ = previous_;
    }
    linked_ = false;
    state.lock_.unlock();
  } else {
    const bool own_call =
        state.calling_.load(platform::memory_order_relaxed) == this && state.caller_ == platform::thread_id();
    state.lock_.unlock();
    // Callbacks do not suspend, so one that runs is on another OS thread and ends soon.
    while (!own_call && state.calling_.load(platform::memory_order_acquire) == this) {
      platform::yield_thread();
    }
  }
  state_ = nullptr;
  state.release();
}

}  // namespace pirn::inline PIRN_ABI::detail
