// The strategies that choose the next thread. A schedule is asked at each point where there is a choice, in one
// execution after another. An execution that makes the same choices is the same execution.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pirn/detail/platform.hpp"
#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

/// A set of threads, one bit each.
using thread_set = std::uint32_t;
[[nodiscard]] constexpr thread_set only(unsigned thread) noexcept { return thread_set{1} << thread; }

inline constexpr unsigned no_thread = ~0u;
inline constexpr std::uint32_t no_choice = ~0u;

/// A choice that differs from the default, at one point.
struct deviation {
  std::uint32_t at;  ///< the number of the point, among those with a choice
  std::uint32_t chosen;
  bool operator==(const deviation&) const = default;
};
using deviations = std::vector<deviation>;

/// Identifies one execution of one program.
struct recipe {
  deviations path;
  std::uint16_t fingerprint = 0;  ///< of all alternatives, so that it is not taken for one of another program
  bool operator==(const recipe&) const = default;
};
/// Convert a recipe to the text for `sim::replay`, and back. `from_seed` returns false if the text is not a seed.
[[nodiscard]] std::string to_seed(const recipe& of);
[[nodiscard]] bool from_seed(std::string_view seed, recipe& into);

/// Returns the thread that runs by default: the running one if it is enabled, else the next one.
[[nodiscard]] unsigned default_thread(thread_set enabled, unsigned running) noexcept;

class schedule {
 public:
  schedule() = default;
  schedule(const schedule&) = delete;
  schedule& operator=(const schedule&) = delete;
  virtual ~schedule() = default;

  /// Chooses the next thread from `enabled`, two or more; `running` has run so far and may be one of them.
  unsigned pick(thread_set enabled, unsigned running) noexcept {
    const unsigned chosen = pick_thread(enabled, running);
    note(chosen, default_thread(enabled, running), enabled);
    return chosen;
  }
  /// Chooses one of `count` possibilities, two or more; 0 is the expected one.
  unsigned choose(unsigned count) noexcept {
    const unsigned chosen = choose_value(count);
    note(chosen, 0, count);
    return chosen;
  }
  /// Returns the number of choices in this execution.
  [[nodiscard]] std::uint32_t choices() const noexcept { return choices_; }
  /// Returns this execution so far.
  [[nodiscard]] recipe taken() const { return {path_, static_cast<std::uint16_t>(fingerprint_ >> 48)}; }

  /// Begins the next execution; returns false if all were made.
  bool begin() {
    choices_ = 0;
    fingerprint_ = 0;
    path_.clear();
    return advance();
  }

  /// Returns whether `race` is to be called.
  [[nodiscard]] virtual bool reduces() const noexcept { return false; }
  /// Reports that the step after choice `at` and the present step could have happened in the other order, if a thread
  /// of `first` had run there.
  virtual void race(std::uint32_t /*at*/, thread_set /*first*/) noexcept {}
  /// Returns the threads that have run at this point in an execution that differs only in the order of independent
  /// steps. They need not run before a step that depends on theirs. Null if the schedule does not track them.
  [[nodiscard]] virtual thread_set* asleep() noexcept { return nullptr; }
  /// Returns whether all executions have been made.
  [[nodiscard]] virtual bool exhausted() const noexcept { return false; }
  /// Returns whether the execution has turned out to be equivalent to an earlier one.
  [[nodiscard]] virtual bool redundant() const noexcept { return false; }
  /// Reports that the execution has ended, after `steps` steps.
  virtual void ended(std::uint64_t /*steps*/) noexcept {}
  /// `pct`: returns the probability that a bug of the given depth has stayed unseen in a program of `threads` threads,
  /// or more.
  [[nodiscard]] virtual double missed(unsigned /*threads*/) const noexcept { return 1; }
  /// Reports that the running thread spins: it should not run before others have.
  virtual void yielded(unsigned /*thread*/) noexcept {}

 protected:
  virtual unsigned pick_thread(thread_set enabled, unsigned running) noexcept = 0;
  virtual unsigned choose_value(unsigned count) noexcept = 0;
  virtual bool advance() = 0;

 private:
  void note(unsigned chosen, unsigned by_default, std::uint32_t among) noexcept {
    if (chosen != by_default) {
      const platform::quiet unseen;
      path_.push_back({choices_, chosen});
    }
    fingerprint_ = (fingerprint_ ^ among) * 0x9e3779b97f4a7c15u + chosen;
    ++choices_;
  }
  std::uint32_t choices_ = 0;
  std::uint64_t fingerprint_ = 0;
  deviations path_;
};

/// Makes the schedule that `options` asks for.
[[nodiscard]] std::unique_ptr<schedule> make_schedule(const sim::options& options);
/// Makes a schedule of one execution, that of `path`.
[[nodiscard]] std::unique_ptr<schedule> make_replay(deviations path);

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
