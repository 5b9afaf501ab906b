// One run of a program under one schedule: virtual threads, which are contexts that take turns on the calling OS
// thread.
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pirn/context/arch.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/stack/stack.hpp"
#include "sim/memory.hpp"
#include "sim/network.hpp"
#include "sim/schedule.hpp"
#include "sim/step_log.hpp"
#include "stack/backtrace.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

class disk_state;
struct name_table;
class program_table;
class symbols;
using platform::checked::value_type;

/// The time at which every execution begins. Not zero, so that a program may look back.
inline constexpr platform::time_point beginning{std::chrono::hours(1)};

/// The threads that a fence orders.
enum class fence_scope : bool { own_thread, all_threads };

/// The kinds of steps, for reports.
enum class step_kind : std::uint8_t {
  load,
  store,
  change,
  lock,
  try_lock,
  unlock,
  fence,
  read,
  write,
  wait,
  wake,
  start,
  end,
  join,
  time_passes,
  fault,
  socket,
  abort,
  crash,
};
[[nodiscard]] const char* to_string(step_kind kind) noexcept;

/// An injected failure, and its text in a trace.
struct fault_kind {
  bool sim::faults::* wanted;
  const char* text;
};
inline constexpr fault_kind fault_kinds[] = {
    {&sim::faults::spawn, "is told that no stack is available (`faults::spawn`)"},
    {&sim::faults::spurious, "wakes spuriously (`faults::spurious`)"},
    {&sim::faults::stop, "is asked to stop (`faults::stop`)"},
    {&sim::faults::preempt, "has had its time slice (`faults::preempt`)"},
    {&sim::faults::short_transfers, "transfers only one byte (`faults::short_transfers`)"},
    {&sim::faults::reset, "finds the connection reset (`faults::reset`)"},
    {&sim::faults::shortage, "finds no descriptor (`faults::shortage`)"},
    {&sim::faults::loss, "loses a datagram (`faults::loss`)"},
    {&sim::faults::duplicate, "sends a datagram that arrives twice (`faults::duplicate`)"},
    {&sim::faults::reorder, "sends a datagram that arrives behind later ones (`faults::reorder`)"},
    {&sim::faults::silence, "asks a name server that does not answer (`faults::silence`)"},
    {&sim::faults::disk_errors, "meets an error of the disk (`faults::disk_errors`)"},
    {&sim::faults::slow_disk, "waits for the disk (`faults::slow_disk`)"},
};

/// The record of one step.
struct recorded_step {
  static constexpr std::size_t max_frames = 24;
  step_kind kind;
  std::string thread_name;
  bool by_daemon = false;
  std::uint64_t fiber = 0;  ///< the number of the running fiber, 0 for none
  std::string fiber_name;
  std::uint32_t word = 0;
  std::uint64_t value = 0;
  value_type type;  ///< of `value`, if it is the value of a variable
  platform::time_point when;
  std::uintptr_t frames[max_frames];
  std::size_t frame_count = 0;
};

/// A thread of the program.
class virtual_thread {
 public:
  enum class state : std::uint8_t { unused, ready, blocked, finished };

  arch::context context;
  stack runs_on;
  state now = state::unused;
  unsigned index = 0;
  char name[16] = "";
  void (*entry)(void*) = nullptr;
  void* argument = nullptr;

  // The step that the thread takes next.
  access pending = access::none;
  location* pending_at = nullptr;
  std::uint64_t compared_at = 0;  ///< the number of ordered steps when it was last compared with them

  // While the thread is blocked.
  const void* waits_on = nullptr;
  platform::time_point deadline = platform::never;
  bool timed_out = false;
  bool spins = false;           ///< other threads run first
  bool yield_declined = false;  ///< a yield hint had no effect, and no other thread has run since
  std::uint64_t since = 0;      ///< the step at which it was made ready, was blocked, or last ran
  bool daemon = false;
  bool joined = false;

  thread_clocks clocks;
  // The state of an OS thread.
  void* worker = nullptr;
  exception_globals exceptions;
  struct object {
    const void* key;
    void* value;
    void (*destroy)(void*);
  };
  std::vector<object> objects;
  /// The number and name of the fiber that ran there last, if steps are recorded.
  std::pair<std::uint64_t, std::string> last_fiber;
};

struct failure {
  outcome what = outcome::passed;
  std::string message;
  std::string state;
};

class execution {
 public:
  explicit execution(const sim::options& options);
  ~execution();
  execution(const execution&) = delete;
  execution& operator=(const execution&) = delete;

  /// Runs the program once. With `record`, records every step.
  void run(const std::function<void()>& program, schedule& by, std::vector<recorded_step>* record = nullptr);
  [[nodiscard]] const failure& found() const noexcept { return found_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] unsigned threads() const noexcept { return used_; }

  // The operations of virtual threads; see platform_checked.hpp.
  std::uint64_t load(const void* at, value_type type, std::memory_order order);
  void store(const void* at, value_type type, std::uint64_t value, std::memory_order order);
  void modify(const void* at);
  void modified(const void* at, value_type type, std::uint64_t before, std::uint64_t after, std::memory_order order);
  void compare_failed(const void* at, value_type type, std::uint64_t found, std::memory_order order);
  void construct(const void* at);
  void lock(const void* at, std::atomic<bool>& held);
  bool try_lock(const void* at, std::atomic<bool>& held);
  void unlock(const void* at, std::atomic<bool>& held);
  void fence(std::memory_order order, fence_scope of);
  void pause() noexcept { running_->spins = true; }
  void plain(const void* at, access what, value_type type, const void* value);
  /// As `plain` for a write, but without a scheduling point.
  void plain_now(const void* at);
  bool wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, platform::time_point deadline);
  void wake(const void* word, int count);
  /// Starts a thread and returns its index, or no_thread if there can be no further one.
  unsigned start(void (*entry)(void*), void* argument, const char* name);
  void join(unsigned thread);
  void yield();
  /// As `yield`, or does nothing: a kernel may do either if the other threads are on other CPUs.
  void yield_hint();
  /// Takes a step that changes a non-atomic object at this address, which other threads see as if it were atomic.
  void touch(const void* at);
  /// Starts a thread that may outlast the program.
  void start_daemon(void (*entry)(void*), void* argument, const char* name);
  /// Makes a choice that is random in other builds.
  std::size_t choose(std::size_t count) { return schedule_->choose(static_cast<unsigned>(count)); }
  /// Decides whether to inject this failure here.
  bool fault(bool sim::faults::* what);
  [[nodiscard]] network& net() noexcept { return network_; }
  /// The disk that the program has mounted, or null.
  [[nodiscard]] disk_state*& disk() noexcept { return disk_; }
  /// The names that can be found, or null.
  [[nodiscard]] name_table*& names() noexcept { return names_; }
  /// The programs that can be started, or null.
  [[nodiscard]] program_table*& programs() noexcept { return programs_; }
  [[nodiscard]] virtual_thread& self() noexcept { return *running_; }
  [[nodiscard]] platform::time_point now() const noexcept { return now_; }
  /// Sets the clock to the beginning of an execution.
  void begin_clock() noexcept;
  /// As `now`, for the program: sleeps briefly if the program reads the clock in a loop.
  platform::time_point read_clock();
  /// As `read_clock`, for a caller that may be pirn itself, which also reads often, but never without a step in
  /// between.
  platform::time_point read_clock_internal();
  /// Makes the default thread run at each point from now on, or no longer.
  void hold_schedule(bool hold) noexcept { held_schedules_ += hold ? 1 : -1; }
  [[nodiscard]] const sim::faults& wants() const noexcept { return options_.faults; }
  [[nodiscard]] bool wants_symmetric_fences() const noexcept { return options_.symmetric_fences; }
  [[nodiscard]] unsigned wants_cpus() const noexcept { return options_.cpus != 0 ? options_.cpus : 1; }
  [[noreturn]] void fail(outcome what, std::string message);
  /// Ends the execution as `std::abort` does, for other actions that a program must not take.
  [[noreturn]] void abort(std::string message);
  /// Fails with a deadlock if fibers wait for each other in a cycle.
  void fail_if_cycle();
  /// Ends the execution from a signal handler; `at` holds the registers at the signal.
  [[noreturn]] void end_by_signal(int signal, const siginfo_t& info, const pirn::detail::registers& at);
  /// As the other `fail`, but `what` is the text of `to_string`.
  [[noreturn]] void fail(const char* what, const char* message);

 private:
  /// Decides which thread runs next, and returns when the caller's turn has come.
  void point(access what, location* at);
  void take_step(location& of, access what);
  /// Puts the step in order, and reports to the schedule the earlier steps with which it could change places.
  void order_step(location& of, access what);
  /// As `order_step`, for the next step of the running thread, which it does not put in order yet.
  void look_back();
  void begin_with(const earlier_steps& races);
  /// Puts a sequentially consistent operation in the order of such operations and of fences.
  void take_place(std::memory_order order);
  /// Locks the word for the running thread. Threads that wait for this lock cannot run.
  void hold(location& of, std::atomic<bool>& held);
  void decide();
  void switch_to(virtual_thread& next);
  void block(const void* on, platform::time_point deadline);
  void make_ready(virtual_thread& who);
  /// Lets time pass until the next deadline; returns false without one. With `late`, lets only a little time pass if
  /// threads can run that do more than poll.
  bool let_time_pass(bool late);
  [[nodiscard]] unsigned overdue(thread_set enabled) const noexcept;
  void note(step_kind kind, const location* of, std::uint64_t value, value_type type = {}) {
    if (record_ != nullptr) [[unlikely]] {
      record(kind, of, value, type);
    }
  }
  PIRN_NOINLINE void record(step_kind kind, const location* of, std::uint64_t value, value_type type);
  /// Records a step of the running thread, whose stack pointer is `here`, without its frames.
  recorded_step& add_step(step_kind kind, const void* here);
  void record_end(step_kind kind, const pirn::detail::registers& at);
  void look_for_race(location& of, access what);
  [[noreturn]] static void begin_thread(arch::word first, arch::word second) noexcept;
  [[noreturn]] void end_thread();
  [[noreturn]] void leave();
  [[nodiscard]] std::string state() const;
  [[nodiscard]] std::string name_of(unsigned thread) const;
  virtual_thread& new_thread(unsigned index, void (*entry)(void*), void* argument, const char* name);
  /// Returns an index for a new thread: an unused one, else one of a thread that the caller has joined, else no_thread.
  [[nodiscard]] unsigned free_index() const noexcept;
  const options& options_;
  memory memory_;
  step_log log_;
  network network_;
  disk_state* disk_ = nullptr;
  name_table* names_ = nullptr;
  program_table* programs_ = nullptr;
  std::vector<std::unique_ptr<virtual_thread>> threads_;
  std::vector<std::pair<const void*, std::atomic<bool>*>> held_;  ///< locks
  unsigned used_ = 0;
  virtual_thread* running_ = nullptr;
  thread_set ready_ = 0;     ///< without threads that wait for a held lock
  thread_set spinning_ = 0;  ///< of the ready threads
  schedule* schedule_ = nullptr;
  bool reduces_ = false;
  bool bounded_ = false;     ///< the schedule reduces under a bound
  std::uint64_t taken_ = 1;  ///< steps that were put in order
  std::vector<recorded_step>* record_ = nullptr;
  arch::context root_;
  platform::time_point now_;
  std::uint64_t steps_ = 0;
  std::uint64_t time_passed_at_ = 0;      ///< the step at which time last passed
  platform::time_point read_at_;          ///< the time that the program read last
  platform::time_point loop_began_;       ///< the time at which it began to read in a loop
  unsigned reads_ = 0;                    ///< reads of the program at this time
  std::uint64_t internal_read_step_ = 0;  ///< the step of the last internal read
  unsigned internal_reads_ = 0;           ///< internal reads since that step
  platform::duration clock_step_{};       ///< of the clock, if it has stood still for too long
  unsigned unproductive_steps_ = 0;       ///< successive steps that changed nothing
  unsigned faults_ = 0;
  int held_schedules_ = 0;
  failure found_;
  bool ended_by_signal_ = false;
  const std::function<void()>* program_ = nullptr;
};

/// The execution that runs on this OS thread, if any. Other threads have none, and read the machine's clock.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local execution* current;

/// Sorts the free memory, so that from here on the program gets it in the order of addresses. Returns a description of
/// what the program has done to memory that it had freed; null if nothing.
const char* sort_heap();
/// Returns a description of the waits of all fibers.
[[nodiscard]] std::string describe_fibers();
/// Returns the next timer of all workers, including running ones, without timers that are due already.
[[nodiscard]] platform::time_point next_timer(platform::time_point now);
/// Returns a description of a cycle of fibers that wait for each other; empty without a cycle.
[[nodiscard]] std::string describe_cycle();
/// Forgets the runtimes that remain of an execution that was left in the middle.
void forget_runtimes() noexcept;
/// Returns the number of stacks of the default pool that are in use.
[[nodiscard]] std::size_t stacks_in_use();
/// Returns the number and name of the fiber that runs on the thread of this worker, if `at` lies in its stack.
[[nodiscard]] std::pair<std::uint64_t, std::string> fiber_of(const void* worker, const void* at);

/// Returns the text of `describe_fibers` with functions and lines in its backtraces.
[[nodiscard]] std::string with_lines(const std::string& state);
/// The numbers of fibers in reports. Fibers are numbered as they appear, as their own numbers differ between
/// executions.
using fiber_names = std::map<std::uint64_t, std::size_t>;
/// Looks up the functions and lines of all frames of the steps.
[[nodiscard]] symbols symbols_of(const std::vector<recorded_step>& steps);
/// Returns the steps of an execution as text, without the middle if there are more than `max_lines` lines.
[[nodiscard]] std::string trace_text(const std::vector<recorded_step>& steps, const symbols& known, fiber_names& fibers,
                                     std::size_t max_lines);
/// Returns the two accesses of a data race as text; the later one is the last plain access of the steps. Empty if the
/// steps do not contain them.
[[nodiscard]] std::string race_text(const std::vector<recorded_step>& steps, const symbols& known, fiber_names& fibers);
/// Replaces the fibers' own numbers in `text` by those of reports, for `all` fibers or only for fibers that have one.
[[nodiscard]] std::string with_names(const std::string& text, fiber_names& fibers, bool all);

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
