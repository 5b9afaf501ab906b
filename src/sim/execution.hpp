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
#include "pirn/context/forced_unwind.hpp"
#include "pirn/stack/stack.hpp"
#include "sim/memory.hpp"
#include "sim/network.hpp"
#include "sim/schedule.hpp"
#include "sim/step_log.hpp"
#include "stack/backtrace.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

class symbols;
using platform::checked::value_type;

/// When every execution begins. Not at zero, so that a program may look back.
inline constexpr platform::time_point beginning{std::chrono::hours(1)};

/// What a step of a thread is, for reports.
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

/// What may go wrong, and how a trace says that it has.
struct fault_kind {
  bool sim::faults::* wanted;
  const char* text;
};
inline constexpr fault_kind fault_kinds[] = {
    {&sim::faults::spawn, "is told that no stack can be had (`faults::spawn`)"},
    {&sim::faults::spurious, "wakes for nothing (`faults::spurious`)"},
    {&sim::faults::stop, "is asked to stop (`faults::stop`)"},
    {&sim::faults::short_transfers, "moves one byte only (`faults::short_transfers`)"},
    {&sim::faults::reset, "finds the connection reset (`faults::reset`)"},
};

/// What a recorded execution keeps of each step.
struct recorded_step {
  static constexpr std::size_t max_frames = 24;
  step_kind kind;
  std::string thread_name;
  bool by_daemon = false;
  std::uint64_t fiber = 0;  ///< the number of the one that runs there, 0 for none
  std::string fiber_name;
  std::uint32_t word = 0;
  std::uint64_t value = 0;
  value_type type;  ///< of `value`, where it is a variable's
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

  // The step that it takes next.
  access pending = access::none;
  location* pending_at = nullptr;
  std::uint64_t compared_at = 0;  ///< how many steps had been taken when it was compared with them

  // While it is blocked.
  const void* waits_on = nullptr;
  platform::time_point deadline = platform::never;
  bool timed_out = false;
  bool spins = false;           ///< others come first
  bool yield_declined = false;  ///< when it offered others to come first, and none has come since
  std::uint64_t since = 0;      ///< the step at which it was made ready, blocked, or had its last turn
  bool daemon = false;
  bool joined = false;

  thread_clocks clocks;
  // What belongs to an OS thread.
  void* worker = nullptr;
  exception_globals exceptions;
  struct object {
    const void* key;
    void* value;
    void (*destroy)(void*);
  };
  std::vector<object> objects;
  /// The number and name of the fiber that ran there last, where steps are recorded.
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

  /// Runs the program once. With `record`, every step is kept.
  void run(const std::function<void()>& program, schedule& by, std::vector<recorded_step>* record = nullptr);
  [[nodiscard]] const failure& found() const noexcept { return found_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] unsigned threads() const noexcept { return used_; }

  // What virtual threads do; see platform_checked.hpp.
  std::uint64_t load(const void* at, value_type type, std::memory_order order);
  void store(const void* at, value_type type, std::uint64_t value, std::memory_order order);
  void modify(const void* at);
  void modified(const void* at, value_type type, std::uint64_t before, std::uint64_t after, std::memory_order order);
  void compare_failed(const void* at, value_type type, std::uint64_t found, std::memory_order order);
  void construct(const void* at);
  void lock(const void* at, std::atomic<bool>& held);
  bool try_lock(const void* at, std::atomic<bool>& held);
  void unlock(const void* at, std::atomic<bool>& held);
  void fence(std::memory_order order, bool everywhere);
  void pause() noexcept { running_->spins = true; }
  void plain(const void* at, bool write, value_type type, const void* value);
  /// A write that is no scheduling point.
  void plain_now(const void* at);
  bool wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, platform::time_point deadline);
  void wake(const void* word, int count);
  /// Its index, or no_thread where there can be no further one.
  unsigned start(void (*entry)(void*), void* argument, const char* name);
  void join(unsigned thread);
  void yield();
  /// The same, or nothing, as a kernel likes that may find the others too busy elsewhere.
  void yield_hint();
  /// A step that changes something at this address that is no atomic, and that other threads see as if it were one.
  void touch(const void* at);
  /// A thread that need not have ended when the program does.
  void start_daemon(void (*entry)(void*), void* argument, const char* name);
  /// What chance decides elsewhere.
  std::size_t choose(std::size_t count) { return schedule_->choose(static_cast<unsigned>(count)); }
  /// Whether that shall go wrong here.
  bool fault(bool sim::faults::* what);
  [[nodiscard]] network& net() noexcept { return network_; }
  [[nodiscard]] virtual_thread& self() noexcept { return *running_; }
  [[nodiscard]] platform::time_point now() const noexcept { return now_; }
  /// As it is when an execution begins.
  void begin_clock() noexcept;
  /// The same for the program, which sleeps a little where it looks again and again.
  platform::time_point read_clock();
  /// The same for who may be pirn itself, which also looks often, but never without a step in between.
  platform::time_point read_clock_internal();
  /// From here on, or no longer, the next thread is the one that comes by itself.
  void hold_schedule(bool hold) noexcept { held_schedules_ += hold ? 1 : -1; }
  [[nodiscard]] const sim::faults& wants() const noexcept { return options_.faults; }
  [[nodiscard]] unsigned wants_cpus() const noexcept { return options_.cpus != 0 ? options_.cpus : 1; }
  [[noreturn]] void fail(outcome what, std::string message);
  /// What `std::abort` does, for what else a program must not do.
  [[noreturn]] void abort(std::string message);
  /// A deadlock, where fibers wait for each other in a cycle.
  void fail_if_cycle();
  /// From the handler of a signal, with the registers that it found.
  [[noreturn]] void end_by_signal(int signal, const siginfo_t& info, const pirn::detail::registers& at);
  /// `what` as `to_string` has it.
  [[noreturn]] void fail(const char* what, const char* message);

 private:
  /// One of them decides; returns when the caller's turn has come.
  void point(access what, location* at);
  void take_step(location& of, access what);
  /// Tells the schedule with what it could change places.
  void order_step(location& of, access what);
  /// The same for the step that the running thread takes next.
  void look_back();
  void begin_with(const earlier_steps& races);
  /// Of a sequentially consistent operation, in the order of these and of fences.
  void take_place(std::memory_order order);
  /// From now on the running thread has it locked, and who waits to lock it cannot run.
  void hold(location& of, std::atomic<bool>& held);
  void decide();
  void switch_to(virtual_thread& next);
  void block(const void* on, platform::time_point deadline);
  void make_ready(virtual_thread& who);
  /// False if there is nothing that it could pass to. With `late`, where others than who only looks can run, a little.
  bool let_time_pass(bool late);
  [[nodiscard]] unsigned overdue(thread_set enabled) const noexcept;
  void note(step_kind kind, const location* of, std::uint64_t value, value_type type = {}) {
    if (record_ != nullptr) [[unlikely]] {
      record(kind, of, value, type);
    }
  }
  PIRN_NOINLINE void record(step_kind kind, const location* of, std::uint64_t value, value_type type);
  /// A step of the running thread, whose stack pointer is `here`, without its frames.
  recorded_step& add_step(step_kind kind, const void* here);
  void record_end(step_kind kind, const pirn::detail::registers& at);
  void look_for_race(location& of, bool write);
  [[noreturn]] static void begin_thread(arch::word first, arch::word second) noexcept;
  [[noreturn]] void end_thread();
  [[noreturn]] void leave();
  [[nodiscard]] std::string state() const;
  [[nodiscard]] std::string name_of(unsigned thread) const;
  virtual_thread& new_thread(unsigned index, void (*entry)(void*), void* argument, const char* name);
  /// Where a new one can be: where none was yet, else where one was that the caller has joined; else no_thread.
  [[nodiscard]] unsigned free_index() const noexcept;
  const options& options_;
  memory memory_;
  step_log log_;
  network network_;
  std::vector<std::unique_ptr<virtual_thread>> threads_;
  std::vector<std::pair<const void*, std::atomic<bool>*>> held_;  ///< locks
  unsigned used_ = 0;
  virtual_thread* running_ = nullptr;
  thread_set ready_ = 0;     ///< without those whose lock is held
  thread_set spinning_ = 0;  ///< of these
  schedule* schedule_ = nullptr;
  bool reduces_ = false;
  bool bounded_ = false;     ///< it reduces under a bound
  std::uint64_t taken_ = 1;  ///< steps that were put in order
  std::vector<recorded_step>* record_ = nullptr;
  arch::context root_;
  platform::time_point now_;
  std::uint64_t steps_ = 0;
  std::uint64_t time_passed_at_ = 0;      ///< the step at which it did last
  platform::time_point read_at_;          ///< what the program saw when it last looked at the clock
  platform::time_point loop_began_;       ///< when it began to look again and again
  unsigned reads_ = 0;                    ///< at this moment
  std::uint64_t internal_read_step_ = 0;  ///< a step
  unsigned internal_reads_ = 0;           ///< since then
  platform::duration clock_step_{};       ///< of the clock, where it has stood still for too long
  unsigned unproductive_steps_ = 0;       ///< how often in a row there was nobody but who spins
  unsigned faults_ = 0;
  int held_schedules_ = 0;
  failure found_;
  bool ended_by_signal_ = false;
  const std::function<void()>* program_ = nullptr;
};

/// The one that runs on this thread, if any. On others there is none: whoever reads a clock there reads the machine's.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local execution* current;

/// From here on the program gets memory in the order of addresses. What it has done to memory that it had given back;
/// null if nothing.
const char* sort_heap();
/// What all fibers wait for, as text.
[[nodiscard]] std::string describe_fibers();
/// The next time that a worker has to do something, which may be running; what is due already does not count.
[[nodiscard]] platform::time_point next_timer(platform::time_point now);
/// A cycle of fibers that wait for each other, described; empty if there is none.
[[nodiscard]] std::string describe_cycle();
/// An execution was left in the middle: what remains of its runtimes is forgotten.
void forget_runtimes() noexcept;
/// How many stacks are in use of the default pool.
[[nodiscard]] std::size_t stacks_in_use();
/// The fiber that runs on the thread of this worker, if `at` lies in its stack: its number and name.
[[nodiscard]] std::pair<std::uint64_t, std::string> fiber_of(const void* worker, const void* at);

/// The text of `describe_fibers` with functions and lines in its backtraces.
[[nodiscard]] std::string with_lines(const std::string& state);
/// What fibers are called in reports: they are numbered as they appear, as their own numbers differ from execution to
/// execution.
using fiber_names = std::map<std::uint64_t, std::size_t>;
/// The functions and lines of all their frames.
[[nodiscard]] symbols symbols_of(const std::vector<recorded_step>& steps);
/// The steps of an execution, to be read. Without the middle, where there are more than so many lines.
[[nodiscard]] std::string trace_text(const std::vector<recorded_step>& steps, const symbols& known, fiber_names& fibers,
                                     std::size_t max_lines);
/// The two accesses of a data race, of which the last one is the last of the steps. Empty where the steps do not have
/// them.
[[nodiscard]] std::string race_text(const std::vector<recorded_step>& steps, const symbols& known, fiber_names& fibers);
/// `text` with those numbers in the place of the fibers' own. Only fibers that have one, or else all.
[[nodiscard]] std::string with_names(const std::string& text, fiber_names& fibers, bool all);

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
