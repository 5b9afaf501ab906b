// Runs a concurrent program repeatedly, each time under another schedule, until it fails or no other schedule is left.
//
// In a program that is linked with pirn::sim (instead of pirn::pirn), all of pirn runs on one OS thread: its workers
// are contexts, every atomic operation of its sources is a point where another worker may continue, and its clock is a
// number. After tokio's loom, relacy and CHESS; see docs/testing.md.
#pragma once

#if !defined(PIRN_SIM)
#error "pirn: pirn/sim needs the CMake target pirn::sim instead of pirn::pirn"
#endif

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <source_location>
#include <string>
#include <string_view>

#include "pirn/detail/abi.hpp"
#include "pirn/sim/expert/one_schedule.hpp"  // IWYU pragma: export

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

/// The schedules that an exploration tries.
enum class strategy : std::uint8_t {
  exhaustive,  ///< all up to a number of preemptions, fewest first; equivalent orders only once
  random,      ///< at each point any thread that can run, with the same probability
  pct,         ///< random priorities that change at a few random steps (Burckhardt and others, ASPLOS 2010)
};

/// For `options::preemptions`: no limit, so every schedule is tried.
inline constexpr unsigned no_bound = std::numeric_limits<unsigned>::max();

/// Failures that an exploration injects. Wherever one can happen, both outcomes are tried, as with schedules.
struct faults {
  bool spawn = false;            ///< a request for a stack fails
  bool spurious = false;         ///< a wait of a thread ends without a reason
  bool stop = false;             ///< a fiber is asked to stop just before a wait that a stop ends
  bool preempt = false;          ///< a fiber's time slice ends just before a safe point
  bool short_transfers = false;  ///< a read or write of a socket or file moves one byte although it could move more
  bool reset = false;            ///< a connection is reset when it is read or written
  bool shortage = false;         ///< an accept finds no descriptor for the connection, nor a passed one a number
  bool loss = false;             ///< a datagram of UDP is lost
  bool duplicate = false;        ///< a datagram of UDP arrives twice
  bool reorder = false;          ///< a datagram of UDP arrives 100 ms late, so that later ones overtake it
  bool silence = false;          ///< a name server does not answer a try of a question
  bool disk_errors = false;      ///< a call on the `sim::disk` fails with an error of the device (EIO)
  bool slow_disk = false;        ///< a read of it finds nothing cached, or a request of a completion engine takes 1 ms
  unsigned max_per_execution = 1;  ///< the largest number of failures in one execution
};

/// Options of an exploration.
struct options {
  /// How the next schedule is chosen.
  sim::strategy strategy = sim::strategy::exhaustive;
  /// `exhaustive`: how often a thread that could continue may be interrupted in one execution. Most bugs need two.
  unsigned preemptions = 2;
  /// `exhaustive`: leave out executions that differ only in the order of independent steps.
  bool reduce = true;
  /// `random` and `pct`: the same seed gives the same executions.
  std::uint64_t seed = 1;
  /// `pct`: the number of events that must happen in one order for the bug to occur, at least one.
  unsigned depth = 3;
  /// Loads may see older values where C++'s memory model allows it. Otherwise all operations are sequentially
  /// consistent.
  bool stale_reads = false;
  /// The kernel has no membarrier, as in an emulator: each side of a pair of fences inside pirn is a change of one
  /// word. Otherwise only the rare side is a fence, of all threads.
  bool symmetric_fences = false;
  /// The largest number of executions; 0 for no limit (`exhaustive`) or 10,000 (`random`, `pct`).
  std::uint64_t executions = 0;
  /// The largest number of scheduling points in one execution. A longer execution is assumed to have no end.
  std::uint64_t steps = 100'000;
  /// The number of points within which every thread that can run does so, whatever the strategy (a few more, since only
  /// every 64th point checks this). If a program does not end then, the schedule is not at fault. While a thread or
  /// fiber waits for the clock, the clock stands still for no more points than that (or 2000, if that is more).
  std::uint64_t fairness = 5'000;
  /// The time limit of the search on the real clock. Executions that were not tried by then are left out, and
  /// `result::complete` is false. Shortening a failing execution may take a minute more.
  std::chrono::milliseconds budget = std::chrono::hours(24);
  /// The number of CPUs that pirn finds, which is the default number of workers of a runtime.
  unsigned cpus = 2;
  /// The failures to inject.
  sim::faults faults = {};
  /// Called after each execution; returns whether the test framework has seen a failure, for instance
  /// `[] { return ::testing::Test::HasFailure(); }`. Must return false before the first execution, otherwise the
  /// exploration throws std::logic_error.
  std::function<bool()> failed = {};
};

/// The outcome of an exploration.
enum class outcome : std::uint8_t {
  passed,
  assertion,  ///< `check` was given false, or `options::failed` answered true
  exception,  ///< an exception left the program
  aborted,   ///< the program called std::abort, std::terminate or std::exit, started a std::thread, crashed, or damaged
             ///< its heap
  deadlock,  ///< no thread can run, and no passing of time would change that
  no_end,    ///< more steps than `options::steps`: a livelock, or a thread or fiber starves
  data_race,         ///< two accesses to a `var`, one of them a write, and neither happens before the other
  leak,              ///< the program has ended, but some of its threads, fibers, stacks or sockets have not
  nondeterministic,  ///< the same choices did not lead to the same execution
};
/// A short English phrase for `what`.
[[nodiscard]] const char* to_string(outcome what) noexcept;

/// The result of an exploration.
struct result {
  outcome what = outcome::passed;  ///< how the exploration ended
  /// One line about the failure.
  std::string message;
  /// The state of every thread and fiber at the end, where it is informative.
  std::string state;
  /// The shortest failing execution that was found, with a line for each action of a fiber.
  std::string trace;
  /// The seed with which `replay` repeats that execution.
  std::string seed;

  std::uint64_t executions = 0;  ///< how often the program ran
  std::uint64_t redundant = 0;   ///< executions that turned out to be equivalent to an earlier one
  std::uint64_t steps = 0;       ///< scheduling points of all executions
  double seconds = 0;            ///< on the real clock
  bool complete = false;         ///< `exhaustive`: every execution was tried
  unsigned threads = 0;          ///< the largest number at a time, of workers and others
  /// `pct`: an upper bound on the probability that a bug of the given depth has stayed unseen, in a program with that
  /// number of threads and steps. It counts only executions in which priorities alone decided: without old values,
  /// faults, cases of a select, and threads that spun or yielded. 1 if there was no such execution.
  double missed = 1;

  /// Whether no execution failed.
  explicit operator bool() const noexcept { return what == outcome::passed; }
  /// Returns the whole result as text for people.
  [[nodiscard]] std::string text() const;
};

/// Runs `program` under one schedule after another. Everything that it uses of pirn must begin and end inside it, and
/// it must do the same whenever the schedule is the same. If the environment variable PIRN_SIM_REPLAY is set to a seed,
/// runs only that execution. A process can run one exploration at a time, on one OS thread; explorations cannot be
/// nested.
result explore(const std::function<void()>& program, const sim::options& options = {});

/// Runs the one execution that `seed` names, for a debugger. Never passes unless `program` and `options` are those of
/// the exploration. Throws std::invalid_argument if `seed` is not a seed.
result replay(const std::function<void()>& program, std::string_view seed, const sim::options& options = {});

/// Ends the execution as failed unless `holds`. Works anywhere in an exploration; outside of one it prints the failure
/// and aborts.
void check(bool holds, std::string_view what = "a check does not hold",
           const std::source_location& where = std::source_location::current()) noexcept;

/// Returns the virtual time since the beginning of the execution. Every execution begins at the same virtual time. The
/// clocks of the standard library and of the C library show virtual time as well.
[[nodiscard]] std::chrono::nanoseconds elapsed() noexcept;

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
