// Lists of links that a stop request walks, and the links that callbacks and scopes attach to them.
#include "pirn/fiber/stop.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

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

bool stop_list::begin(wake_reason why) noexcept {
  const platform::spin_guard guard(lock_);
  if (requested()) {
    return false;
  }
  why_.store(why, platform::memory_order_release);
  caller_ = platform::thread_id();
  return true;
}

void stop_list::walk() noexcept {
  // Not by recursion: lists lie below lists as deep as scopes and their children nest, and a fiber's stack is small.
  for (stop_list* at = this;;) {
    at->lock_.lock();
    at->calling_.store(nullptr, platform::memory_order_release);
    stop_link* const link = at->links_.front();
    if (link == nullptr) {
      stop_list* const above = at->above_;
      at->lock_.unlock();
      if (above == nullptr) {
        return;
      }
      at = above;
      continue;
    }
    at->links_.remove(*link);
    link->linked_ = false;
    at->calling_.store(link, platform::memory_order_relaxed);
    at->lock_.unlock();
    if (stop_list* const below = link->call_(*link)) {
      below->above_ = at;
      at = below;
    }
  }
}

void stop_link::attach(stop_list& list, action call) noexcept {
  call_ = call;
  list_ = &list;
  list.lock_.lock();
  if (list.requested()) {
    list.lock_.unlock();
    if (stop_list* const below = call(*this)) {
      below->walk();
    }
    return;
  }
  list.links_.push_front(*this);
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
    list.links_.remove(*this);
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

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
