#include "pirn/fiber/stop.hpp"

namespace pirn::inline PIRN_ABI::detail {

void stop_state::release() noexcept {
  if (references_.fetch_sub(1, platform::memory_order_acq_rel) == 1) {
    delete this;
  }
}

bool stop_state::request() noexcept {
  // A callback may release the last source or token.
  acquire();
  const bool first = stop_list::request(wake_reason::stopped);
  release();
  return first;
}

bool stop_list::request(wake_reason why) noexcept {
  lock_.lock();
  if (requested()) {
    lock_.unlock();
    return false;
  }
  why_.store(why, platform::memory_order_release);
  caller_ = platform::thread_id();
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
  return true;
}

void stop_link::attach(stop_list& list, void (*call)(stop_link&) noexcept) noexcept {
  call_ = call;
  list_ = &list;
  list.lock_.lock();
  if (list.requested()) {
    list.lock_.unlock();
    call(*this);
    return;
  }
  next_ = list.first_;
  previous_ = nullptr;
  if (next_ != nullptr) {
    next_->previous_ = this;
  }
  list.first_ = this;
  linked_ = true;
  list.lock_.unlock();
}

void stop_link::detach() noexcept {
  if (list_ == nullptr) {
    return;
  }
  stop_list& list = *list_;
  list.lock_.lock();
  if (linked_) {
    (previous_ != nullptr ? previous_->next_ : list.first_) = next_;
    if (next_ != nullptr) {
      next_->previous_ = previous_;
    }
    linked_ = false;
    list.lock_.unlock();
  } else {
    const bool own_call =
        list.calling_.load(platform::memory_order_relaxed) == this && list.caller_ == platform::thread_id();
    list.lock_.unlock();
    // Callbacks do not suspend, so one that runs is on another OS thread and ends soon.
    while (!own_call && list.calling_.load(platform::memory_order_acquire) == this) {
      platform::yield_thread();
    }
  }
  list_ = nullptr;
}

}  // namespace pirn::inline PIRN_ABI::detail
