// How the threads of an execution begin, and how they are joined.
#include <utility>

#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

unsigned execution::free_index() const noexcept {
  if (used_ < max_threads) {
    return used_;
  }
  for (unsigned i = 1; i < used_; ++i) {
    const virtual_thread& former = *threads_[i];
    const thread_clocks& here = running_->clocks;
    // All its steps happened before, so that another thread can continue its times.
    if (former.joined && here.seen.happened.covers(i, former.clocks.seen.happened.of(i)) &&
        here.order.covers(i, former.clocks.order.of(i))) {
      return i;
    }
  }
  return no_thread;
}

unsigned execution::start(void (*entry)(void*), void* argument, const char* name) {
  const unsigned index = free_index();
  if (index == no_thread) {
    return no_thread;
  }
  virtual_thread& made = new_thread(index, entry, argument, name);
  running_->clocks.seen.happened.advance(running_->index);
  made.clocks.seen = running_->clocks.seen;
  made.clocks.order = running_->clocks.order;
  note(step_kind::start, nullptr, made.index);
  return made.index;
}

void execution::start_daemon(void (*entry)(void*), void* argument, const char* name) {
  std::vector<recorded_step>* const record = std::exchange(record_, nullptr);  // the program did not start this thread
  const unsigned made = start(entry, argument, name);
  record_ = record;
  if (made == no_thread) {
    fail(outcome::aborted, "too many threads: none is left for the network");
  }
  threads_[made]->daemon = true;
}

void execution::join(unsigned thread) {
  virtual_thread& other = *threads_[thread];
  note(step_kind::join, nullptr, thread);
  while (other.now != virtual_thread::state::finished) {
    block(&other, platform::never);
  }
  other.joined = true;
  running_->clocks.seen.join(other.clocks.seen, options_.stale_reads);
  running_->clocks.order.join(other.clocks.order);
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
