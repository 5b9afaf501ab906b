// Runs an execution: its beginning and end, the choice of the next thread, and the passing of time.
#include "sim/execution.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "pirn/detail/platform.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "pirn/stack/expert/overflow.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

constinit thread_local execution* current = nullptr;

namespace {

constexpr std::size_t thread_stack = std::size_t{512} << 10;
// After this number of steps that change nothing, a thread that still spins waits for time to pass.
constexpr unsigned max_unproductive_steps = 2000;
constexpr std::uint64_t steps_between_fairness = 64;
constexpr platform::duration first_clock_step = std::chrono::milliseconds(1);
constexpr platform::duration longest_clock_step = std::chrono::hours(1);

guarded_pool& stacks_of_threads() {
  static auto* const pool = new guarded_pool({.name = "threads of pirn::sim"});
  return *pool;
}

/// Returns whether the order of two steps matters.
bool depend(access a, const location* of_a, access b, const location* of_b) noexcept {
  return a == access::heavy || b == access::heavy || (of_a == of_b && !(a == access::read && b == access::read));
}

}  // namespace

execution::execution(const sim::options& options) : options_(options) {}

execution::~execution() {
  for (const auto& each : threads_) {
    if (each->runs_on) {
      stacks_of_threads().deallocate(each->runs_on);
    }
  }
}

// ---- one run ------------------------------------------------------------------------------------------------------

void execution::run(const std::function<void()>& program, schedule& by, std::vector<recorded_step>* record) {
  vector_clock::use(1);
  memory_.begin_execution(options_.stale_reads);
  log_.clear();
  used_ = 0;
  ready_ = spinning_ = 0;
  schedule_ = &by;
  reduces_ = by.reduces();
  bounded_ = reduces_ && by.asleep() == nullptr;
  record_ = record;
  begin_clock();
  clock_step_ = first_clock_step;
  steps_ = time_passed_at_ = 0;
  unproductive_steps_ = faults_ = 0;
  held_schedules_ = 0;
  found_ = {};
  ended_by_signal_ = false;
  network_.begin_execution();
  programs_ = nullptr;             // an execution that has failed leaves its programs behind,
  disk_ = nullptr;                 // its disk
  names_ = nullptr;                // and its names
  static_cast<void>(sort_heap());  // damage found here was reported already, or is not the program's
  program_ = &program;
  const std::size_t stacks_before = stacks_in_use();

  const auto main = [](void* raw) {
    auto* const self = static_cast<execution*>(raw);
    (*self->program_)();
  };
  virtual_thread& first = new_thread(0, main, this, "main");
  running_ = &first;
  const exception_globals kept = std::exchange(exception_globals::of_thread(), {});
  void* const worker = platform::current_worker();
  platform::set_current_worker(nullptr);
  current = this;
  arch::word none = 0, nothing = 0;
  platform::checked::watching = true;
  arch::switch_to(root_, first.context, none, nothing);
  current = nullptr;
  running_ = nullptr;
  platform::set_current_worker(worker);
  exception_globals::of_thread() = kept;
  for (const auto& [at, held] : held_) {
    held->store(false, std::memory_order_relaxed);
  }
  held_.clear();
  forget_runtimes();
  if (const char* const damage = sort_heap(); damage != nullptr && found_.what == outcome::passed) {
    found_ = {outcome::aborted, damage, {}};
  }
  if (found_.what == outcome::passed && stacks_in_use() != stacks_before) {
    found_ = {
        outcome::leak,
        std::to_string(static_cast<long>(stacks_in_use() - stacks_before)) + " more stacks are in use than before",
        {}};
  }
  if (const std::string open = network_.open_sockets(); found_.what == outcome::passed && !open.empty()) {
    found_ = {outcome::leak, "the program has ended with open sockets: " + open, {}};
  }
  by.ended(steps_);
}

virtual_thread& execution::new_thread(unsigned index, void (*entry)(void*), void* argument, const char* name) {
  const platform::quiet unseen;
  if (index == threads_.size()) {
    threads_.push_back(std::make_unique<virtual_thread>());
  }
  virtual_thread& made = *threads_[index];
  stack kept = made.runs_on;
  if (!kept) {
    const stack_result found = stacks_of_threads().allocate(thread_stack);
    if (!found) {
      throw std::system_error(found.error, "pirn: no stack for a thread of an exploration");
    }
    kept = found.value;
  }
  made = virtual_thread();
  made.runs_on = kept;
  made.index = index;
  made.now = virtual_thread::state::ready;
  static_cast<void>(std::snprintf(made.name, sizeof made.name, "%s", name));
  made.entry = entry;
  made.argument = argument;
  made.clocks.last_choice = no_choice;
  made.context = arch::prepare(kept.top(), &begin_thread);
  ready_ |= only(index);
  used_ = std::max(used_, index + 1);
  vector_clock::use(used_);
  return made;
}

void execution::begin_thread(arch::word /*first*/, arch::word /*second*/) noexcept {
  execution& here = *current;
  virtual_thread& self = *here.running_;
  try {
    self.entry(self.argument);
  } catch (const std::exception& thrown) {
    here.fail(outcome::exception, thrown.what());
  } catch (...) {
    here.fail(outcome::exception, "an exception that is not derived from std::exception");
  }
  here.end_thread();
}

void execution::end_thread() {
  virtual_thread& self = *running_;
  while (!self.objects.empty()) {
    const virtual_thread::object last = self.objects.back();
    self.objects.pop_back();
    last.destroy(last.value);
  }
  note(step_kind::end, nullptr, 0);
  if (self.index == 0) {
    for (unsigned i = 1; i < used_; ++i) {
      if (threads_[i]->now != virtual_thread::state::finished && !threads_[i]->daemon) {
        fail(outcome::leak, std::string("the program has ended, but its ") + name_of(i) + " has not");
      }
    }
    leave();
  }
  self.now = virtual_thread::state::finished;
  ready_ &= ~only(self.index);
  for (unsigned i = 0; i < used_; ++i) {
    if (threads_[i]->now == virtual_thread::state::blocked && threads_[i]->waits_on == &self) {
      make_ready(*threads_[i]);
    }
  }
  decide();
  __builtin_unreachable();
}

void execution::leave() {
  platform::checked::watching = false;
  arch::word none = 0, nothing = 0;
  arch::switch_to(running_->context, root_, none, nothing);
  __builtin_unreachable();
}

void execution::fail(outcome what, std::string message) {
  platform::checked::watching = false;
  found_ = {what, std::move(message), what != outcome::nondeterministic ? state() : std::string()};
  leave();
}

void execution::abort(std::string message) {
  note(step_kind::abort, nullptr, 0);
  fail(outcome::aborted, std::move(message));
}

void execution::end_by_signal(int signal, const siginfo_t& info, const pirn::detail::registers& at) {
  platform::checked::watching = false;
  if (ended_by_signal_) {  // a second signal, during the report of the first
    leave();
  }
  ended_by_signal_ = true;
  if (signal == SIGABRT) {
    found_ = {outcome::aborted, "std::abort was called; its message is on standard error", {}};
    record_end(step_kind::abort, at);
    found_.state = state();
  } else {
    found_ = {outcome::aborted, std::string("it crashed: ") + sigdescr_np(signal), {}};
    if (info.si_code > 0 && (signal == SIGSEGV || signal == SIGBUS)) {
      char address[32];
      static_cast<void>(std::snprintf(address, sizeof address, ", at address %p", info.si_addr));
      found_.message += is_guard_address(info.si_addr) ? ", a stack overflow: in the guard of a stack" : address;
    }
    record_end(step_kind::crash, at);  // without the state: the data that describes it may be damaged
  }
  leave();
}

void execution::fail_if_cycle() {
  if (std::string cycle = describe_cycle(); !cycle.empty()) {
    fail(outcome::deadlock, std::move(cycle));
  }
}

void execution::fail(const char* what, const char* message) {
  for (int each = 0; each <= static_cast<int>(outcome::nondeterministic); ++each) {
    if (std::strcmp(what, sim::to_string(static_cast<outcome>(each))) == 0) {
      fail(static_cast<outcome>(each), message);
    }
  }
  fail(outcome::aborted, message);
}

// ---- the next thread ----------------------------------------------------------------------------------------------

void execution::switch_to(virtual_thread& next) {
  virtual_thread& before = *running_;
  const auto worker = platform::current_worker();
  exception_globals& exceptions = exception_globals::of_thread();
  before.worker = worker;
  before.exceptions = exceptions;
  running_ = &next;
  platform::set_current_worker(next.worker);
  exceptions = next.exceptions;
  arch::word none = 0, nothing = 0;
  arch::switch_to(before.context, next.context, none, nothing);
}

void execution::decide() {
  unsigned before = running_->index;
  for (;;) {
    thread_set enabled = ready_ & ~spinning_;
    unsigned next = no_thread;
    std::uint32_t choice = no_choice;
    // Otherwise a thread that polls and yields until a sleeping one has done something would poll forever.
    const bool late = steps_ - time_passed_at_ > std::max<std::uint64_t>(options_.fairness, max_unproductive_steps);
    if (ready_ == 0 || unproductive_steps_ > max_unproductive_steps || late) {
      if (let_time_pass(late)) {
        before = no_thread;  // the next thread starts afresh, even if it is the same one
        continue;
      }
      if (ready_ == 0) {
        fail(outcome::deadlock, "no thread can run, and no passage of time would change that");
      }
      unproductive_steps_ = 0;  // so that the next step does not try again
    }
    if (enabled == 0) {  // all of them spin, so each runs in turn
      spinning_ = 0;
      const thread_set above = ready_ & ~(2 * only(running_->index) - 1);
      next = static_cast<unsigned>(std::countr_zero(above != 0 ? above : ready_));
    } else if (std::has_single_bit(enabled)) {
      next = static_cast<unsigned>(std::countr_zero(enabled));
    } else if (steps_ % steps_between_fairness == 0 && overdue(enabled) != no_thread) {
      next = overdue(enabled);
    } else if (held_schedules_ != 0) {
      next = default_thread(enabled, before);
    } else {
      choice = schedule_->choices();
      next = schedule_->pick(enabled, before);
    }
    virtual_thread& chosen = *threads_[next];
    chosen.clocks.last_choice = choice;
    chosen.since = steps_;
    if (&chosen != running_) {
      chosen.yield_declined = false;
      switch_to(chosen);
    }
    return;
  }
}

unsigned execution::overdue(thread_set enabled) const noexcept {
  for (; enabled != 0; enabled &= enabled - 1) {
    const auto each = static_cast<unsigned>(std::countr_zero(enabled));
    if (steps_ - threads_[each]->since > options_.fairness) {
      return each;
    }
  }
  return no_thread;
}

void execution::point(access what, location* at) {
  if (++steps_ > options_.steps) [[unlikely]] {
    fail_if_cycle();
    fail(outcome::no_end, "no end after " + std::to_string(options_.steps) +
                              " steps, although every thread has had turns: a livelock, or a thread or fiber starves, "
                              "or waits forever while others run (or the program needs more steps: `options::steps`)");
  }
  virtual_thread& self = *running_;
  self.pending = what;
  self.pending_at = at;
  if (self.spins) {
    self.spins = false;
    spinning_ |= only(self.index);
    schedule_->yielded(self.index);
  }
  if (what == access::lock && at->holder >= 0) {
    if (at->holder == static_cast<int>(self.index)) {
      fail(outcome::deadlock, "a thread takes a spinlock that it already holds");
    }
    ready_ &= ~only(self.index);
  }
  if (bounded_ && at != nullptr) {
    look_back();
  }
  decide();
}

// Under a bound it is not enough that a step, when it is taken, changes places with the last steps that it could change
// places with. A thread that waits for a lock takes it late, and the executions in between may cost a preemption too
// many. So the step also changes places with the last ones when it becomes the thread's next step.
void execution::look_back() {
  virtual_thread& self = *running_;
  earlier_steps races;
  memory_.compare(*self.pending_at, self.pending, self.index, self.clocks, true, races);
  begin_with(races);
  self.compared_at = taken_;
}

// The orders in between may cost a preemption too many, so each race is reported for the running thread itself.
void execution::begin_with(const earlier_steps& races) {
  for (const earlier_steps::step& each : races.all()) {
    schedule_->race(each.choice, only(running_->index));
  }
}

void execution::take_step(location& of, access what) {
  virtual_thread& self = *running_;
  if (thread_set* const asleep = schedule_->asleep(); asleep != nullptr && *asleep != 0) {
    for (thread_set left = *asleep; left != 0; left &= left - 1) {
      const auto each = static_cast<unsigned>(std::countr_zero(left));
      const virtual_thread& other = *threads_[each];
      if (each == self.index || depend(other.pending, other.pending_at, what, &of)) {
        *asleep &= ~only(each);
      }
    }
  }
  if (reduces_) {
    order_step(of, what);
  }
  self.pending = access::none;
  self.pending_at = nullptr;
  spinning_ &= only(self.index);
  unproductive_steps_ = what == access::read ? unproductive_steps_ + 1 : 0;
}

void execution::order_step(location& of, access what) {
  virtual_thread& self = *running_;
  earlier_steps races;
  if (what == access::heavy) {
    thread_clocks* all[max_threads];
    for (unsigned i = 0; i < used_; ++i) {
      all[i] = &threads_[i]->clocks;
    }
    memory_.order_heavy(self.index, {all, used_}, races);
  } else {
    if (self.compared_at != taken_ || !bounded_) {  // otherwise no step has come in between
      memory_.compare(of, what, self.index, self.clocks, bounded_, races);
    }
    memory_.order(of, what, self.index, self.clocks);
  }
  ++taken_;
  if (bounded_) {
    begin_with(races);
    return;
  }
  log_.add(self.index, steps_, self.clocks.order);
  for (const earlier_steps::step& each : races.all()) {
    schedule_->race(each.choice, log_.initials(each));
  }
}

void execution::take_place(std::memory_order order) {
  if (options_.stale_reads && order == std::memory_order_seq_cst) {
    take_step(memory_.find(&memory_), access::read);
  }
}

void execution::block(const void* on, platform::time_point deadline) {
  virtual_thread& self = *running_;
  self.now = virtual_thread::state::blocked;
  self.since = steps_;
  self.waits_on = on;
  self.deadline = deadline;
  self.timed_out = false;
  self.pending = access::none;
  self.pending_at = nullptr;
  ready_ &= ~only(self.index);
  decide();
}

void execution::make_ready(virtual_thread& who) {
  who.now = virtual_thread::state::ready;
  who.since = steps_;
  who.waits_on = nullptr;
  who.deadline = platform::never;
  who.clocks.order.join(running_->clocks.order);
  ready_ |= only(who.index);
  if (thread_set* const asleep = schedule_->asleep()) {
    *asleep &= ~only(who.index);
  }
}

bool execution::let_time_pass(bool late) {
  fail_if_cycle();  // other threads may run forever
  platform::time_point nearest = ready_ == 0 ? platform::never : next_timer(now_);
  vector_clock all;
  for (unsigned i = 0; i < used_; ++i) {
    if (threads_[i]->now == virtual_thread::state::blocked) {
      nearest = std::min(nearest, threads_[i]->deadline);
    }
    all.join(threads_[i]->clocks.order);
  }
  const bool limits_step =
      ready_ != 0 && late && (unproductive_steps_ <= max_unproductive_steps || nearest == platform::never);
  if (limits_step && nearest - now_ > clock_step_) {
    // That many steps take time, but not as much as a distant deadline allows.
    nearest = now_ + clock_step_;
    clock_step_ = std::min(4 * clock_step_, longest_clock_step);
  } else if (nearest == platform::never) {
    return false;
  } else {
    clock_step_ = first_clock_step;
  }
  now_ = std::max(now_, nearest);
  note(step_kind::time_passes, nullptr, static_cast<std::uint64_t>((now_ - beginning).count()));
  time_passed_at_ = steps_;
  unproductive_steps_ = 0;
  spinning_ = 0;
  for (unsigned i = 0; i < used_; ++i) {
    virtual_thread& each = *threads_[i];
    each.clocks.order = all;  // earlier steps could not have come after this
    if (each.now == virtual_thread::state::blocked && each.deadline <= now_) {
      each.timed_out = true;
      make_ready(each);
    }
  }
  return true;
}

void execution::yield() {
  running_->spins = true;
  point(access::none, nullptr);
}

void execution::yield_hint() {
  // An exhaustive search tries that once before another thread runs, otherwise it would have no end.
  const bool often = options_.strategy != strategy::exhaustive;
  if ((often || !running_->yield_declined) && held_schedules_ == 0 && schedule_->choose(2) != 0) {
    running_->yield_declined = true;
    return;
  }
  yield();
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
