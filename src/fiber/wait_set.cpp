// A wait in several lists at the same time.
#include "pirn/fiber/expert/wait_set.hpp"

#include <functional>

#include "pirn/fiber/detail/one_worker.hpp"
#include "pirn/fiber/detail/suspend.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

void wait_set::add(wait_entry& entry) noexcept {
  wait_entry** at = &first_;
  while (*at != nullptr && !std::less<>()(entry.lock, (*at)->lock)) {
    at = &(*at)->next;
  }
  entry.next = *at;
  *at = &entry;
}

void wait_set::lock() noexcept {
  const platform::spinlock* held = nullptr;  // entries without a lock come first
  for (const wait_entry* p = first_; p != nullptr; p = p->next) {
    if (p->home != nullptr) {
      p->home->lock();
    }
    if (p->lock != held) {
      p->lock->lock();
      held = p->lock;
    }
  }
}

void wait_set::unlock() noexcept {
  for (const wait_entry* p = first_; p != nullptr;) {
    platform::spinlock* const held = p->lock;
    do {
      p = p->next;
    } while (p != nullptr && p->lock == held);
    if (held != nullptr) {
      held->unlock();  // after the last one the waiter may be gone, and the entries with it
    }
  }
}

void wait_set::append(const waker& who) noexcept {
  for (wait_entry* p = first_; p != nullptr; p = p->next) {
    p->node.wake = who;
    p->node.claimed = false;
    p->in_front ? p->list->prepend(p->node) : p->list->append(p->node);
  }
}

wake_reason wait_set::remove_after_wait(const detail::agent& self) noexcept {
  for (wait_entry* p = first_; p != nullptr; p = p->next) {
    if (p->node.claimed) {
      continue;
    }
    p->home != nullptr ? p->list->remove_after_wait(*p->home, p->node) : p->list->remove_after_wait(*p->lock, p->node);
  }
  return self.reason();
}

wake_reason wait_set::wait(wait_options options) noexcept {
  options.stoppable = true;  // never `single_waker`, since each of the lists may wake it
  if (first_ != nullptr && first_->home != nullptr) {
    first_->home->refuse_migratable();
  }
  return detail::suspend(detail::current_agent(), options, *this);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
