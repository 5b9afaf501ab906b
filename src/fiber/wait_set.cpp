// A wait in several lists at the same time.
#include "pirn/fiber/expert/wait_set.hpp"

#include <functional>

#include "pirn/fiber/detail/one_worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {
struct unlock_all_action : detail::post_switch_action {
  wait_set* entries;
};
}  // namespace

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
    p->list->append(p->node);
  }
}

void wait_set::remove_after_wait() noexcept {
  for (wait_entry* p = first_; p != nullptr; p = p->next) {
    if (p->node.claimed) {
      continue;
    }
    // Another thread may be looking at the node right now, so even an unlinked one is left only under the lock.
    if (p->lock != nullptr) {
      p->lock->lock();
    }
    if (p->node.linked) {
      p->list->remove(p->node);
    }
    if (p->lock != nullptr) {
      p->lock->unlock();
    }
  }
}

wake_reason wait_set::wait(wait_options options) noexcept {
  options.stoppable = true;  // never `single_waker`, since each of the lists may wake it
  if (first_ != nullptr && first_->home != nullptr) {
    first_->home->refuse_migratable();
  }
  detail::agent& self = detail::current_agent();
  std::uint64_t epoch = 0;
  if (!self.begin(detail::wait_kind::stoppable, epoch)) {
    unlock();
    return self.stop_reason();
  }
  append(waker(self, epoch));
  unlock_all_action publish{
      {[](detail::post_switch_action* c) noexcept { static_cast<unlock_all_action*>(c)->entries->unlock(); }}, this};
  const wake_reason reason = detail::block(self, epoch, options, publish);
  remove_after_wait();
  return reason;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
