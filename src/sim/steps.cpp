// The operations of the threads of an execution: each operation on a word that they share is a step.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>

#include "pirn/detail/platform.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

std::uint64_t bits_at(const void* at, std::size_t size) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, at, size);
  return value;
}

}  // namespace

std::uint64_t execution::load(const void* at, value_type type, std::memory_order order) {
  location& of = memory_.find(at);
  // A later load must not miss a value that an earlier one has seen, so the order of two loads matters.
  const bool ordered = options_.stale_reads && order == std::memory_order_seq_cst;
  const access what = ordered ? access::write : access::read;
  point(what, &of);
  const unsigned unproductive = unproductive_steps_;
  take_step(of, what);
  take_place(order);
  unproductive_steps_ = unproductive + 1;
  std::uint64_t value = bits_at(at, type.size);
  virtual_thread& self = *running_;
  if (options_.stale_reads && !of.history.empty()) {
    const unsigned count = memory_.visible(of, self.index, self.clocks, order);
    value = memory_.see(of, self.index, self.clocks, order, count > 1 ? schedule_->choose(count) : 0);
  } else {
    memory_.acquire(of, self.clocks, order);
  }
  note(step_kind::load, &of, value, type);
  return value;
}

void execution::store(const void* at, value_type type, std::uint64_t value, std::memory_order order) {
  location& of = memory_.find(at);
  point(access::write, &of);
  take_step(of, access::write);
  take_place(order);
  virtual_thread& self = *running_;
  if (options_.stale_reads) {
    memory_.remember_old(of, bits_at(at, type.size));
    memory_.remember(of, self.index, self.clocks, order, value, release_sequence::begins);
  } else {
    memory_.release(of, self.index, self.clocks, order, release_sequence::begins);
  }
  note(step_kind::store, &of, value, type);
}

void execution::modify(const void* at) {
  location& of = memory_.find(at);
  point(access::write, &of);
  take_step(of, access::write);
}

void execution::modified(const void* at, value_type type, std::uint64_t before, std::uint64_t after,
                         std::memory_order order) {
  location& of = memory_.find(at);
  take_place(order);
  virtual_thread& self = *running_;
  memory_.acquire(of, self.clocks, order);
  if (options_.stale_reads) {
    memory_.remember_old(of, before);
    memory_.remember(of, self.index, self.clocks, order, after, release_sequence::continues);
  } else {
    memory_.release(of, self.index, self.clocks, order, release_sequence::continues);
  }
  note(step_kind::change, &of, after, type);
}

void execution::compare_failed(const void* at, value_type type, std::uint64_t found, std::memory_order order) {
  location& of = memory_.find(at);
  take_place(order);
  if (options_.stale_reads && !of.history.empty()) {
    // From now on the thread sees nothing older.
    static_cast<void>(memory_.see(of, running_->index, running_->clocks, order, 0));
  } else {
    memory_.acquire(of, running_->clocks, order);
  }
  note(step_kind::load, &of, found, type);
}

void execution::construct(const void* at) { memory_.construct(at); }

void execution::hold(location& of, std::atomic<bool>& held) {
  virtual_thread& self = *running_;
  of.holder = static_cast<int>(self.index);
  held.store(true, std::memory_order_relaxed);
  {
    const platform::quiet unseen;
    held_.emplace_back(of.at, &held);
  }
  memory_.acquire(of, self.clocks, std::memory_order_acquire);
  for (unsigned each = 0; each < used_; ++each) {
    if (threads_[each]->pending == access::lock && threads_[each]->pending_at == &of) {
      ready_ &= ~only(each);
    }
  }
}

void execution::lock(const void* at, std::atomic<bool>& held) {
  location& of = memory_.find(at);
  point(access::lock, &of);
  take_step(of, access::lock);
  hold(of, held);
  note(step_kind::lock, &of, 1);
}

bool execution::try_lock(const void* at, std::atomic<bool>& held) {
  location& of = memory_.find(at);
  point(access::try_lock, &of);
  const bool free = of.holder < 0;
  take_step(of, free ? access::try_lock : access::read);
  if (free) {
    hold(of, held);
  }
  note(step_kind::try_lock, &of, free ? 1 : 0);
  return free;
}

void execution::unlock(const void* at, std::atomic<bool>& held) {
  location& of = memory_.find(at);
  point(access::unlock, &of);
  take_step(of, access::unlock);
  virtual_thread& self = *running_;
  of.holder = -1;
  held.store(false, std::memory_order_relaxed);
  std::erase_if(held_, [&](const auto& each) { return each.first == at; });
  memory_.release(of, self.index, self.clocks, std::memory_order_release, release_sequence::begins);
  for (unsigned i = 0; i < used_; ++i) {
    virtual_thread& each = *threads_[i];
    if (each.pending == access::lock && each.pending_at == &of) {
      ready_ |= only(i);
    }
  }
  note(step_kind::unlock, &of, 0);
}

void execution::fence(std::memory_order order, fence_scope of) {
  if (!options_.stale_reads) {
    memory_.fence(running_->clocks, order);
    return;
  }
  // The order of two fences matters.
  location& fences = memory_.find(&memory_);
  const bool everywhere = of == fence_scope::all_threads;
  const access what = everywhere ? access::heavy : access::write;
  point(what, &fences);
  take_step(fences, what);
  if (thread_set* const asleep = schedule_->asleep(); asleep != nullptr) {
    *asleep = 0;  // a thread whose next operation is sequentially consistent must be tried before and behind the fence
  }
  for (int round = 0; round < (everywhere ? 2 : 1); ++round) {
    for (unsigned i = 0; i < used_; ++i) {
      if (everywhere || i == running_->index) {
        memory_.fence(threads_[i]->clocks, order);
      }
    }
  }
  note(step_kind::fence, &fences, 0);
}

void execution::plain(const void* at, access what, value_type type, const void* value) {
  location& of = memory_.find(at);
  point(what, &of);
  take_step(of, what);
  note(what == access::write ? step_kind::write : step_kind::read, &of, type.size != 0 ? bits_at(value, type.size) : 0,
       type);
  look_for_race(of, what);
  unproductive_steps_ = 0;  // a thread that waits for another one does not read plain variables
}

void execution::plain_now(const void* at) {
  location& of = memory_.find(at);
  note(step_kind::write, &of, 0);
  look_for_race(of, access::write);
}

void execution::look_for_race(location& of, access what) {
  virtual_thread& self = *running_;
  if (const int other = memory_.race(of, what, self.index, self.clocks); other >= 0) {
    fail(outcome::data_race, std::string("a ") + (what == access::write ? "write" : "read") + " by " +
                                 name_of(self.index) + " and an access by " + name_of(static_cast<unsigned>(other)) +
                                 " to the same variable, and neither happens before the other");
  }
}

void execution::touch(const void* at) {
  location& of = memory_.find(at);
  point(access::write, &of);
  take_step(of, access::write);
  virtual_thread& self = *running_;
  memory_.acquire(of, self.clocks, std::memory_order_acq_rel);
  memory_.release(of, self.index, self.clocks, std::memory_order_acq_rel, release_sequence::continues);
  note(step_kind::socket, &of, 0);
}

bool execution::fault(bool sim::faults::* what) {
  if (!(options_.faults.*what) || faults_ >= options_.faults.max_per_execution || schedule_->choose(2) == 0) {
    return false;
  }
  ++faults_;
  const auto* const kind = std::ranges::find(fault_kinds, what, &fault_kind::wanted);
  note(step_kind::fault, nullptr, static_cast<std::uint64_t>(kind - std::begin(fault_kinds)));
  return true;
}

bool execution::wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, platform::time_point deadline) {
  location& of = memory_.find(&word);
  point(access::read, &of);
  take_step(of, access::read);
  virtual_thread& self = *running_;
  memory_.acquire(of, self.clocks, std::memory_order_relaxed);
  note(step_kind::wait, &of, expected);
  if (word.load(std::memory_order_relaxed) != expected || fault(&sim::faults::spurious)) {
    return true;
  }
  if (deadline <= now_) {
    return false;
  }
  block(&word, deadline);
  return !self.timed_out;
}

void execution::wake(const void* word, int count) {
  location& of = memory_.find(word);
  point(access::write, &of);
  take_step(of, access::write);
  note(step_kind::wake, &of, static_cast<std::uint64_t>(count));
  thread_set sleepers = 0;
  for (unsigned i = 0; i < used_; ++i) {
    const virtual_thread& each = *threads_[i];
    sleepers |= each.now == virtual_thread::state::blocked && each.waits_on == word ? only(i) : 0;
  }
  for (; sleepers != 0 && count > 0; --count) {
    const int left = std::popcount(sleepers);
    thread_set from = sleepers;
    for (unsigned skip = left > count ? schedule_->choose(static_cast<unsigned>(left)) : 0; skip != 0; --skip) {
      from &= from - 1;
    }
    const auto woken = static_cast<unsigned>(std::countr_zero(from));
    sleepers &= ~only(woken);
    make_ready(*threads_[woken]);
  }
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
