// Runs a concurrent program again and again, each time under another schedule, until it fails or there is no other.
//
// In a program that is linked with pirn::sim (instead of pirn::pirn), all of pirn runs on one OS thread: its workers
// are contexts, every atomic operation of its sources is a point where another worker may go on, and its clock is a
// number. After tokio's loom, relacy and CHESS; see docs/testing.md.
#pragma once

#if !defined(PIRN_SIM)
#error "pirn: pirn/sim needs the CMake target pirn::sim in the place of pirn::pirn"
#endif

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <source_location>
#include <string>
#include <string_view>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

/// Which schedules are tried.
enum class strategy : std::uint8_t {
  exhaustive,  ///< all, up to a number of preemptions, few first; orders that cannot matter once only
  random,      ///< at each point anyone who can run, with the same probability
  pct,         ///< random priorities that change at a few random steps (Burckhardt and others, ASPLOS 2010)
};

/// For `options::preemptions`: every schedule there is.
inline constexpr unsigned no_bound = std::numeric_limits<unsigned>::max();

/// What may go wrong besides the order of things. Each is tried both ways wherever it can happen, as a schedule is.
struct faults {
  bool spawn = false;              ///< a stack that is asked for cannot be had
  bool spurious = false;           ///< a thread that waits wakes for nothing
  bool stop = false;               ///< a fiber that is about to wait where a stop ends it is asked to stop
  bool short_transfers = false;    ///< a socket is read or written, and one byte is moved where more could be
  bool reset = false;              ///< a connection is reset when it is read or written
  bool shortage = false;           ///< a connection is to be accepted, and there is no descriptor for it
  unsigned max_per_execution = 1;  ///< in one execution
};

/// How to explore.
struct options {
  sim::strategy strategy = sim::strategy::exhaustive;
  /// `exhaustive`: how often a thread that could go on may be interrupted in one execution. Most bugs need two.
  unsigned preemptions = 2;
  /// `exhaustive`: leave out executions that differ only in the order of steps that cannot matter to each other.
  bool reduce = true;
  /// `random` and `pct`: the same seed gives the same executions.
  std::uint64_t seed = 1;
  /// `pct`: how many events must happen in one order for the bug that is looked for, at least one.
  unsigned depth = 3;
  /// Loads may see older values where C++'s memory model lets them. Otherwise all operations are sequentially
  /// consistent.
  bool stale_reads = false;
  /// The most executions; 0 for as many as there are (`exhaustive`) or 10,000 (`random`, `pct`).
  std::uint64_t executions = 0;
  /// The most scheduling points of one execution: one that is longer does not end, as far as anybody can tell.
  std::uint64_t steps = 100'000;
  /// A thread that can run does so at least once in so many points (in some more: it is looked at in every 64th),
  /// whatever the strategy: what does not end then is no fault of the schedule's. Nor does the clock stand still for
  /// longer (or for 2000, if that is more) while somebody waits for it.
  std::uint64_t fairness = 5'000;
  /// The most time of the search on the real clock. What was not tried by then is left untried, and `result::complete`
  /// is false. To shorten a failing execution may take a minute more.
  std::chrono::milliseconds budget = std::chrono::hours(24);
  /// How many CPUs pirn finds: the workers of a runtime that is not told how many.
  unsigned cpus = 2;
  /// What may go wrong.
  sim::faults faults = {};
  /// Asked after each execution whether the test framework has seen a failure, for instance
  /// `[] { return ::testing::Test::HasFailure(); }`. Before the first one the answer must be no: std::logic_error else.
  std::function<bool()> failed = {};
};

/// How an exploration ended.
enum class outcome : std::uint8_t {
  passed,
  assertion,  ///< `check` was given false, or `options::failed` answered true
  exception,  ///< one came out of the program
  aborted,    ///< std::abort, std::terminate or std::exit was called, a std::thread started, it crashed, or broke the
              ///< heap
  deadlock,   ///< nothing can run, and no time that could pass would change that
  no_end,     ///< more steps than `options::steps`: a livelock, or somebody starves
  data_race,  ///< two accesses to a `var`, one of them a write, and neither happens before the other
  leak,       ///< the program has ended, and its threads, fibers, stacks or sockets have not
  nondeterministic,  ///< the same choices did not lead to the same execution
};
[[nodiscard]] const char* to_string(outcome what) noexcept;

/// What an exploration has found.
struct result {
  outcome what = outcome::passed;
  /// One line about the failure.
  std::string message;
  /// What every thread and fiber was doing, where that tells something.
  std::string state;
  /// The shortest failing execution that was found, a line for each thing that a fiber did.
  std::string trace;
  /// For `replay`: the same execution.
  std::string seed;

  std::uint64_t executions = 0;
  std::uint64_t redundant = 0;  ///< of these, those that turned out to be like an earlier one
  std::uint64_t steps = 0;      ///< scheduling points of all executions
  double seconds = 0;           ///< on the real clock
  bool complete = false;        ///< `exhaustive`: everything was tried
  unsigned threads = 0;         ///< the most at a time: workers, and what else has a thread
  /// `pct`: a bug of the depth asked for, in a program of so many threads and steps, has stayed unseen with no more
  /// than this probability. Executions count in which nothing but priorities decided: no old value, fault or case of a
  /// select, and nobody who spun or yielded. 1 if there was none.
  double missed = 1;

  explicit operator bool() const noexcept { return what == outcome::passed; }
  /// All of it, to be read by a person.
  [[nodiscard]] std::string text() const;
};

/// Runs `program` under one schedule after the other. All that it uses of pirn must begin and end inside of it, and it
/// must do the same whenever the schedule is the same. With PIRN_SIM_REPLAY set in the environment to a seed, it does
/// that execution only. One exploration at a time in a process, on one OS thread; not from inside of another.
result explore(const std::function<void()>& program, const sim::options& options = {});

/// Runs the one execution that `seed` names, for a debugger: with the same program and the same `options`; passes for
/// no other. Throws std::invalid_argument for what is no seed.
result replay(const std::function<void()>& program, std::string_view seed, const sim::options& options = {});

/// Ends the execution as failed unless `holds`. Anywhere in an exploration; outside of one it prints and aborts.
void check(bool holds, std::string_view what = "a check does not hold",
           const std::source_location& where = std::source_location::current()) noexcept;

/// While one of them lives, the choices that the schedule has are not made: whoever runs goes on until it cannot. For
/// parts of a program that are not what is looked at, the beginning and the end of a runtime for instance, so that the
/// executions differ in the others. What other threads do is not tried before as well as behind such a part either, not
/// even where that matters to what is in it, and `result::complete` does not speak of it.
class one_schedule {
 public:
  one_schedule() noexcept;
  ~one_schedule();
  one_schedule(const one_schedule&) = delete;
  one_schedule& operator=(const one_schedule&) = delete;
};

/// The virtual time at which every execution begins is the same; this is how far it has come. The clocks of the
/// standard library and of the C library show it as well.
[[nodiscard]] std::chrono::nanoseconds elapsed() noexcept;

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
