// The pool of threads for blocking calls, and how a fiber hands its call to the pool.
#include "pirn/fiber/blocking.hpp"

#include <memory>
#include <system_error>

#include "fiber/blocking_pool.hpp"
#include "fiber/runtime_state.hpp"
#include "pirn/fiber/detail/suspend.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

blocking_pool::~blocking_pool() {
  lock_.lock();
  stopping_ = true;
  while (!idle_.empty()) {
    member& m = *idle_.front();
    take_off_idle(m);
    m.call = nullptr;
    m.assigned.store(1, platform::memory_order_release);
    platform::futex_wake(&m.assigned, 1);
  }
  lock_.unlock();
  for (std::uint32_t left; (left = threads_.load(platform::memory_order_acquire)) != 0;) {
    platform::futex_wait(threads_, left);
  }
  lock_.lock();  // the last thread may still hold it
  lock_.unlock();
  join(ended_);
}

void blocking_pool::announce() {
  std::error_code error;
  lock_.lock();
  ++announced_;
  if (max_threads_ == 0) {
    error = std::make_error_code(std::errc::operation_not_permitted);
  } else if (idle_count_ + looking_ < announced_ + queued_ && threads() < max_threads_) {
    error = start_thread();
  }
  if (error) {
    --announced_;
  }
  lock_.unlock();
  if (error) {
    throw std::system_error(
        error, max_threads_ == 0 ? "pirn: the runtime allows no threads for blocking calls (max_blocking_threads is 0)"
                                 : "pirn: cannot start a thread for a blocking call");
  }
}

bool blocking_pool::would_queue() noexcept {
  const platform::spin_guard guard(lock_);
  return idle_count_ + looking_ <= announced_ + queued_ && threads() >= max_threads_;
}

std::error_code blocking_pool::start_thread() noexcept {
  // All of it under the lock: no other caller may count on a thread that could not be started, and the thread cannot
  // end, and be joined, before its handle is written.
  auto* const m = new (std::nothrow) member{this};
  if (m == nullptr) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
  const auto entry = [](void* self) { static_cast<member*>(self)->pool->serve(*static_cast<member*>(self)); };
  if (const std::error_code error = m->thread.start(entry, m, "pirn-blocking")) {
    delete m;
    return error;
  }
  threads_.fetch_add(1, platform::memory_order_relaxed);
  ++looking_;
  return {};
}

std::optional<std::size_t> blocking_pool::idle_threads() noexcept {
  const platform::spin_guard guard(lock_);
  return looking_ + announced_ + queued_ == 0 && idle_count_ == threads() ? std::optional(threads()) : std::nullopt;
}

void blocking_pool::submit(blocking_call& call) noexcept {
  lock_.lock();
  --announced_;
  if (!idle_.empty()) {
    member& m = *idle_.front();
    take_off_idle(m);
    m.call = &call;
    m.assigned.store(1, platform::memory_order_release);
    lock_.unlock();
    platform::futex_wake(&m.assigned, 1);
    return;
  }
  (last_ != nullptr ? last_->next : first_) = &call;
  last_ = &call;
  ++queued_;
  lock_.unlock();
}

void blocking_pool::serve(member& self) noexcept {
  while (blocking_call* const call = next_call(self)) {
    if (call->body == 0) {
      call->run(*call);
    } else {
      const outer_body_of_thread waits(call->body);
      call->run(*call);
    }
    {
      // Before the fiber runs: its next call needs no other thread.
      const platform::spin_guard guard(lock_);
      ++looking_;
    }
    call->caller.wake();  // now the call is gone
  }
}

blocking_call* blocking_pool::next_call(member& self) noexcept {
  lock_.lock();
  --looking_;
  if (blocking_call* const call = first_) {
    first_ = call->next;
    if (first_ == nullptr) {
      last_ = nullptr;
    }
    --queued_;
    lock_.unlock();
    return call;
  }
  if (stopping_) {
    count_out(self);
    return nullptr;
  }
  self.assigned.store(0, platform::memory_order_relaxed);
  idle_.push_front(self);
  ++idle_count_;
  lock_.unlock();
  for (;;) {
    const time_limit limit = idle_time_;
    while (self.assigned.load(platform::memory_order_acquire) == 0 && platform::futex_wait(self.assigned, 0, limit)) {
    }
    if (self.assigned.load(platform::memory_order_acquire) != 0 && self.call != nullptr) {
      return self.call;
    }
    lock_.lock();
    const bool assigned = self.assigned.load(platform::memory_order_relaxed) != 0;
    if (!assigned && idle_count_ > announced_) {
      take_off_idle(self);
      count_out(self);
      return nullptr;
    }
    if (assigned && self.call == nullptr) {
      count_out(self);
      return nullptr;
    }
    lock_.unlock();
  }
}

void blocking_pool::take_off_idle(member& m) noexcept {
  idle_.remove(m);
  --idle_count_;
}

void blocking_pool::count_out(member& self) noexcept {
  member* const before = ended_;
  ended_ = &self;
  threads_.fetch_sub(1, platform::memory_order_release);
  platform::futex_wake(&threads_, 1);
  lock_.unlock();
  join(before);
}

void blocking_pool::join(member* ended) noexcept {
  if (ended != nullptr) {
    ended->thread.join();
    delete ended;
  }
}

void run_blocking(worker& here, blocking_call& call) {
  blocking_pool& pool = here.owner.blocking;
  pool.announce();
  agent& self = current_agent();
  call.body = position_in_body(self);
  direct_entry entry{[&](const waker& handle) { call.caller = handle; }, [&] { pool.submit(call); }};
  static_cast<void>(
      suspend(self, {.stoppable = false, .wakeable_by = awaited::external, .what = "blocking call"}, entry));
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
