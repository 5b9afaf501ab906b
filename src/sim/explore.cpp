// Explores a program: searches for a failing execution, shortens it and reports it.
#include "pirn/sim/explore.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "pirn/sim/thread.hpp"
#include "sim/execution.hpp"
#include "sim/process_guard.hpp"
#include "sim/symbols.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

namespace {

using namespace detail;

constexpr std::uint64_t default_executions = 10'000;
// The largest number of executions in the search for a shorter failing one.
constexpr unsigned max_attempts = 2000;
constexpr double max_seconds = 60;
// Of the trace of an execution that has no end.
constexpr std::size_t max_lines = 200;

/// Suppresses standard error while it exists: the output would repeat earlier output a thousand times.
class silence {
 public:
  silence() : kept_(dup(STDERR_FILENO)), nowhere_(open("/dev/null", O_WRONLY | O_CLOEXEC)) {
    std::fflush(stderr);
    if (kept_ >= 0 && nowhere_ >= 0) {
      dup2(nowhere_, STDERR_FILENO);
    }
  }
  ~silence() {
    std::fflush(stderr);
    if (kept_ >= 0) {
      dup2(kept_, STDERR_FILENO);
      close(kept_);
    }
    if (nowhere_ >= 0) {
      close(nowhere_);
    }
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;

 private:
  int kept_, nowhere_;
};

/// The right to explore, which exists once in a process.
class only_exploration {
 public:
  only_exploration() {
    if (taken.exchange(true)) {
      throw std::logic_error("pirn: an exploration begins inside another one, or at the same time on another thread");
    }
  }
  ~only_exploration() { taken.store(false); }
  only_exploration(const only_exploration&) = delete;
  only_exploration& operator=(const only_exploration&) = delete;

 private:
  static constinit std::atomic<bool> taken;
};
constinit std::atomic<bool> only_exploration::taken = false;

class exploration {
 public:
  exploration(const std::function<void()>& program, const sim::options& options)
      : program_(program), options_(options), runs_(options_), began_(std::chrono::steady_clock::now()) {
    if (options_.failed && options_.failed()) {
      throw std::logic_error(
          "pirn: options::failed reports a failure before the exploration begins, so it could not report one of the "
          "exploration: end the test at its first failure");
    }
  }

  result search() {
    const auto by = make_schedule(options_);
    std::uint64_t max_executions = options_.executions;
    if (max_executions == 0) {
      max_executions = options_.strategy == strategy::exhaustive ? ~std::uint64_t{0} : default_executions;
    }
    recipe failing;
    while (!out_of_time() && by->begin() && found_.executions < max_executions) {
      const failure what = run(*by);
      found_.redundant += by->redundant() ? 1 : 0;
      if (what.what != outcome::passed) {
        failing = by->taken();
        take(what);
        break;
      }
    }
    found_.complete = by->exhausted();
    if (found_.what != outcome::passed && found_.what != outcome::nondeterministic) {
      report(failing);
    } else {
      found_.missed = by->missed(found_.threads);
    }
    return finish();
  }

  result once(const recipe& wanted) {
    const auto by = make_replay(wanted.path);
    static_cast<void>(by->begin());
    std::vector<recorded_step> steps;
    take(run(*by, &steps));
    found_.seed = to_seed(wanted);
    if (found_.what == outcome::passed && by->taken() != wanted) {
      take({outcome::nondeterministic,
            "the seed belongs to no execution of this program with these options, as it is built now",
            {}});
    }
    if (found_.what != outcome::passed) {
      tell(steps);
    }
    return finish();
  }

 private:
  failure run(schedule& by, std::vector<recorded_step>* record = nullptr) {
    runs_.run(program_, by, record);
    ++found_.executions;
    found_.steps += runs_.steps();
    found_.threads = std::max(found_.threads, runs_.threads());
    failure what = runs_.found();
    if (what.what == outcome::passed && options_.failed && options_.failed()) {
      what = {outcome::assertion, "the test framework has seen a failure", {}};
      seen_by_framework_ = true;
    }
    return what;
  }

  void take(const failure& what) {
    found_.what = what.what;
    found_.message = what.message;
    found_.state = what.state;
  }

  /// Runs an execution, and makes it the `best` one if it fails as `wanted` and needs fewer choices.
  [[nodiscard]] bool shorter(schedule& by, outcome wanted, recipe& best) {
    runs_.run(program_, by);
    recipe taken = by.taken();
    if (runs_.found().what != wanted || taken.path.size() >= best.path.size()) {
      return false;
    }
    best = std::move(taken);
    return true;
  }

  /// Removes from a failing execution the choices that it does not need to fail in the same way.
  void shorten(recipe& best, outcome wanted) {
    const silence unsaid;
    unsigned attempts = 0;
    const double limit = seconds() + max_seconds;
    for (std::size_t chunk = std::max<std::size_t>(best.path.size() / 2, 1); chunk != 0;) {
      const std::size_t before = best.path.size();
      for (std::size_t at = 0; at < best.path.size() && attempts < max_attempts && seconds() < limit; ++attempts) {
        deviations fewer = best.path;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                    fewer.begin() + static_cast<std::ptrdiff_t>(std::min(at + chunk, best.path.size())));
        const auto by = make_replay(fewer);
        static_cast<void>(by->begin());
        at += shorter(*by, wanted, best) ? 0 : chunk;
      }
      // A choice that was needed before may be superfluous after the removal of others.
      chunk = chunk == 1 && best.path.size() < before ? 1 : chunk / 2;
    }
    if (options_.strategy != strategy::exhaustive) {  // an exhaustive search begins with short executions
      options few = options_;
      few.strategy = strategy::exhaustive;
      const auto by = make_schedule(few);
      while (attempts < 2 * max_attempts && seconds() < limit && by->begin() && !shorter(*by, wanted, best)) {
        ++attempts;
      }
    }
  }

  /// Reports a failing execution, as short as possible.
  void report(recipe best) {
    const outcome wanted = found_.what;
    if (!seen_by_framework_) {  // the framework remembers its failures
      shorten(best, wanted);
    }
    std::vector<recorded_step> steps;
    const auto by = make_replay(best.path);
    static_cast<void>(by->begin());
    const silence unsaid;
    runs_.run(program_, *by, &steps);
    if (runs_.found().what == wanted) {
      take(runs_.found());
    } else if (!seen_by_framework_) {
      const failure& again = runs_.found();
      found_.message += "; repeated under the same schedule it " +
                        (again.what == outcome::passed ? "did not fail"
                                                       : "failed differently (" + std::string(to_string(again.what)) +
                                                             ": " + again.message + ")") +
                        ": the outcome also depends on something else, such as a variable that keeps its value from "
                        "execution to execution";
    }
    found_.seed = to_seed(best);
    tell(steps);
  }

  void tell(const std::vector<recorded_step>& steps) {
    fiber_names fibers;
    const symbols known = symbols_of(steps);
    // An execution without an end repeats its steps.
    found_.trace = trace_text(steps, known, fibers, found_.what == outcome::no_end ? max_lines : steps.size());
    found_.state = with_names(with_lines(found_.state), fibers, true);
    found_.message = with_names(found_.message, fibers, false);
    if (const std::string race = found_.what == outcome::data_race ? race_text(steps, known, fibers) : "";
        !race.empty()) {
      found_.message = race + " to the same variable, and neither happens before the other";
    }
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  [[nodiscard]] bool out_of_time() const {
    return found_.executions != 0 && seconds() > std::chrono::duration<double>(options_.budget).count();
  }
  result finish() {
    found_.seconds = seconds();
    return std::move(found_);
  }

  const only_exploration in_process_;
  const std::function<void()>& program_;
  const options options_;
  execution runs_;
  const process_guard process_;
  std::chrono::steady_clock::time_point began_;
  result found_;
  bool seen_by_framework_ = false;
};

result replay_by(const std::function<void()>& program, std::string_view seed, const sim::options& options,
                 const char* whose) {
  recipe wanted;
  if (!from_seed(seed, wanted)) {
    throw std::invalid_argument("pirn: " + std::string(whose) +
                                "not a seed of an exploration by this version: " + std::string(seed));
  }
  return exploration(program, options).once(wanted);
}

}  // namespace

const char* to_string(outcome what) noexcept {
  static constexpr const char* names[] = {"passed", "assertion", "exception", "aborted",         "deadlock",
                                          "no end", "data race", "leak",      "nondeterministic"};
  return names[static_cast<std::size_t>(what)];
}

result explore(const std::function<void()>& program, const sim::options& options) {
  if (const char* const seed = std::getenv("PIRN_SIM_REPLAY"); seed != nullptr && *seed != '\0') {
    return replay_by(program, seed, options, "PIRN_SIM_REPLAY is ");
  }
  return exploration(program, options).search();
}

result replay(const std::function<void()>& program, std::string_view seed, const sim::options& options) {
  return replay_by(program, seed, options, "");
}

void check(bool holds, std::string_view what, const std::source_location& where) noexcept {
  if (!holds) {
    const std::string text =
        std::string(where.file_name()) + ":" + std::to_string(where.line()) + ": " + std::string(what);
    platform::checked::fail("assertion", text.c_str());
  }
}

one_schedule::one_schedule() noexcept {
  if (current != nullptr) {
    current->hold_schedule(true);
  }
}
one_schedule::~one_schedule() {
  if (current != nullptr) {
    current->hold_schedule(false);
  }
}

std::chrono::nanoseconds elapsed() noexcept { return platform::now() - beginning; }

std::string result::text() const {
  std::string text = std::string(to_string(what));
  if (what != outcome::passed) {
    text += ": " + message + "\n";
    if (!trace.empty()) {
      text += "what happened:\n" + trace;
    }
    if (!state.empty()) {
      text += "in the end:\n" + state;
    }
    if (!seed.empty()) {
      text += "replay: PIRN_SIM_REPLAY=" + seed + "\n";
    }
  } else {
    text += complete ? ", everything was tried\n" : ", not everything was tried\n";
  }
  char line[200];
  static_cast<void>(std::snprintf(
      line, sizeof line,
      "%llu executions (%llu redundant), %llu steps, %.3f s: %.0f executions and %.2f million "
      "steps a second\n",
      static_cast<unsigned long long>(executions), static_cast<unsigned long long>(redundant),
      static_cast<unsigned long long>(steps), seconds, seconds > 0 ? static_cast<double>(executions) / seconds : 0,
      seconds > 0 ? static_cast<double>(steps) / seconds / 1e6 : 0));
  text += line;
  if (missed < 1) {
    static_cast<void>(std::snprintf(line, sizeof line,
                                    "a bug of the depth looked for was missed with a probability of at "
                                    "most %.3g\n",
                                    missed));
    text += line;
  }
  return text;
}

// ---- plain threads ------------------------------------------------------------------------------------------------

struct thread::state {
  std::function<void()> body;
  platform::thread handle;
};

thread::thread() noexcept = default;

thread::thread(std::function<void()> body) : state_(std::make_unique<state>()) {
  state_->body = std::move(body);
  const auto run = [](void* raw) { static_cast<state*>(raw)->body(); };
  if (const std::error_code error = state_->handle.start(run, state_.get(), "thread")) {
    throw std::system_error(error, "pirn: cannot start a thread of an exploration");
  }
}

thread::thread(thread&&) noexcept = default;

thread& thread::operator=(thread&& other) noexcept {
  join();
  state_ = std::move(other.state_);
  return *this;
}

thread::~thread() { join(); }

void thread::join() noexcept {
  if (state_) {
    state_->handle.join();
    state_.reset();
  }
}

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
