// Waits for the readiness of descriptors and signals it; registers descriptors with an engine.
#include "pirn/fiber/expert/engine.hpp"

#include <deque>
#include <new>

#include "fiber/multishot_receive.hpp"
#include "fiber/runtime_state.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

wake_reason readiness::wait(io_direction direction, platform::time_point deadline,
                            std::optional<std::uint32_t> seen_tick) noexcept {
  side& here = sides_[static_cast<int>(direction)];
  here.waiters.lock();
  if (here.ready || (seen_tick && *seen_tick != tick(direction))) {
    here.ready = false;
    here.waiters.unlock();
    return wake_reason::notified;
  }
  return here.waiters.wait({.deadline = deadline,
                            .wakeable_by = awaited::external,
                            .what = direction == io_direction::read ? "readable descriptor" : "writable descriptor",
                            .object = this});
}

void readiness::signal(io_direction direction) noexcept {
  side& here = sides_[static_cast<int>(direction)];
  here.tick.fetch_add(one_signal, platform::memory_order_acq_rel);
  here.waiters.lock();
  // The present waiters consume the edge. Without any, or if all their waits have just ended, the next waiter finds it.
  waiter* const woken = here.waiters.claim_all();
  here.ready = woken == nullptr;
  here.waiters.unlock();
  wait_list::schedule_all(woken);
}

/// Memory of one engine's handles. Lives as long as the engine or any of its handles is used, even if another engine
/// reports the handle by then.
class readiness_pool {
 public:
  static readiness* take(const std::shared_ptr<readiness_pool>& from) noexcept {
    readiness* made = nullptr;
    {
      const platform::spin_guard guard(from->lock_);
      made = from->free_;
      if (made != nullptr) {
        from->free_ = made->links.next;
      } else {
        try {
          made = &from->all_.emplace_back();
        } catch (const std::bad_alloc&) {
          return nullptr;
        }
      }
    }
    for (auto& side : made->sides_) {
      const platform::spin_guard guard(side.waiters);
      side.ready = false;
      side.tick.store(readiness::first_tick, platform::memory_order_release);
    }
    made->home_ = from;
    return made;
  }

  static void give_back(readiness& handle) noexcept {
    const std::shared_ptr<readiness_pool> to = std::move(handle.home_);  // after the lock: it may be the last reference
    const platform::spin_guard guard(to->lock_);
    handle.descriptor_ = -1;
    handle.links.next = to->free_;
    to->free_ = &handle;
  }

 private:
  platform::spinlock lock_;
  std::deque<readiness> all_;  // addresses stay; the kernel holds them
  readiness* free_ = nullptr;
};

engine::engine(half has) : pool_(std::make_shared<readiness_pool>()), half_(has) {}

engine::~engine() { give_detached_back(); }

readiness* engine::attach(int descriptor, io_direction direction, std::error_code& error) noexcept {
  readiness* const handle = readiness_pool::take(pool_);
  if (handle == nullptr) {
    error = std::make_error_code(std::errc::not_enough_memory);
    return nullptr;
  }
  handle->descriptor_ = descriptor;
  handle->reports_writes_.store(direction == io_direction::write, platform::memory_order_release);
  error.clear();
  if (!begin(*handle, descriptor, error)) {
    readiness_pool::give_back(*handle);
    return nullptr;
  }
  enter(*handle);
  return handle;
}

bool engine::report_writes(readiness& handle, std::error_code& error) noexcept {
  error.clear();
  handle.reports_writes_.store(true, platform::memory_order_release);
  if (!begin_writes(handle, handle.descriptor_, error)) {
    handle.reports_writes_.store(false, platform::memory_order_release);
    handle.signal(io_direction::write);  // another writer may wait already, and is to find out itself
    return false;
  }
  return true;
}

bool engine::take_over(readiness& handle, engine& from, io_direction direction, std::error_code& error) noexcept {
  error.clear();
  const bool reports_writes = handle.reports_writes();
  handle.reports_writes_.store(reports_writes || direction == io_direction::write, platform::memory_order_release);
  if (!begin(handle, handle.descriptor_, error)) {
    handle.reports_writes_.store(reports_writes, platform::memory_order_release);
    return false;
  }
  from.end(handle, handle.descriptor_);
  static_cast<void>(from.remove(handle));
  enter(handle);
  return true;
}

void engine::detach(readiness* handle) noexcept {
  end(*handle, handle->descriptor_);
  if (remove(*handle)) {
    readiness_pool::give_back(*handle);
  }
}

void engine::enter(readiness& handle) noexcept {
  const platform::spin_guard guard(lock_);
  reporting_.push_front(handle);
  handle.reported_.store(true, platform::memory_order_release);
}

bool engine::remove(readiness& handle) noexcept {
  const platform::spin_guard guard(lock_);
  reporting_.remove(handle);
  handle.reported_.store(false, platform::memory_order_release);
  if (retired_) {
    return true;
  }
  handle.links.next = detached_.load(platform::memory_order_relaxed);
  detached_.store(&handle, platform::memory_order_release);
  return false;
}

void engine::give_detached_back() noexcept {
  readiness* each = nullptr;
  {
    const platform::spin_guard guard(lock_);
    each = detached_.exchange(nullptr, platform::memory_order_acquire);
  }
  while (each != nullptr) {
    readiness& last = *each;
    each = last.links.next;
    readiness_pool::give_back(last);
  }
}

void engine::end_receive(detail::multishot_receive& what) noexcept {
  {
    const platform::spin_guard guard(lock_);
    what.to_be_ended = true;
    ended_.push_back(what);
    has_ended_.store(true, platform::memory_order_release);
  }
  if (const detail::worker* const here = detail::current_worker(); here == nullptr || here->io.get() != this) {
    interrupt_poll();
  }
}

void engine::forget_end(detail::multishot_receive& what) noexcept {
  const platform::spin_guard guard(lock_);
  what.to_be_ended = false;
  ended_.remove(what);
}

void engine::cancel_each() noexcept {
  for (;;) {
    detail::multishot_receive* each = nullptr;
    {
      const platform::spin_guard guard(lock_);
      each = ended_.front();
      if (each == nullptr) {
        has_ended_.store(false, platform::memory_order_relaxed);
        return;
      }
      each->to_be_ended = false;
      ended_.remove(*each);
    }
    cancel(*each);  // it stays: it ends in this thread
  }
}

void engine::retire() noexcept {
  {
    const platform::spin_guard guard(lock_);
    retired_ = true;
    for (readiness& each : reporting_) {
      each.reported_.store(false, platform::memory_order_release);
      each.signal(io_direction::read);
      each.signal(io_direction::write);
    }
  }
  give_detached_back();
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
