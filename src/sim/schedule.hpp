// Who runs next: the strategies. A schedule is asked at each point where there is a choice, once execution after
// execution, and an execution that makes the same choices is the same execution.
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

/// What was chosen at one point, where that is not what is chosen by default.
struct deviation {
  std::uint32_t at;  ///< of the points where there was a choice, which one
  std::uint32_t chosen;
  bool operator==(const deviation&) const = default;
};
using deviations = std::vector<deviation>;

/// What names one execution of one program.
struct recipe {
  deviations path;
  std::uint16_t fingerprint = 0;  ///< between what it had to choose, so that it is not taken for one of another program
  bool operator==(const recipe&) const = default;
};
/// As text, for `sim::replay`, and back. False for what is no such text.
[[nodiscard]] std::string to_seed(const recipe& of);
[[nodiscard]] bool from_seed(std::string_view seed, recipe& into);

/// Who runs if nobody says otherwise: the one that runs already, else the next one.
[[nodiscard]] unsigned default_thread(thread_set enabled, unsigned running) noexcept;

class schedule {
 public:
  schedule() = default;
  schedule(const schedule&) = delete;
  schedule& operator=(const schedule&) = delete;
  virtual ~schedule() = default;

  /// Who of `enabled`, two or more, runs next; `running` has run so far and may be one of them.
  unsigned pick(thread_set enabled, unsigned running) noexcept {
    const unsigned chosen = pick_thread(enabled, running);
    note(chosen, default_thread(enabled, running), enabled);
    return chosen;
  }
  /// Which of `count`, two or more, possibilities is the case: 0 is what would be expected.
  unsigned choose(unsigned count) noexcept {
    const unsigned chosen = choose_value(count);
    note(chosen, 0, count);
    return chosen;
  }
  /// How many choices there were in this execution.
  [[nodiscard]] std::uint32_t choices() const noexcept { return choices_; }
  /// This execution, so far.
  [[nodiscard]] recipe taken() const { return {path_, static_cast<std::uint16_t>(fingerprint_ >> 48)}; }

  /// Begins the next execution; false if there is none.
  bool begin() {
    choices_ = 0;
    fingerprint_ = 0;
    path_.clear();
    return advance();
  }

  /// Whether it is told of races.
  [[nodiscard]] virtual bool reduces() const noexcept { return false; }
  /// What was done after choice `at` and what is done now could have happened in the other order, if one of `first` had
  /// come there.
  virtual void race(std::uint32_t /*at*/, thread_set /*first*/) noexcept {}
  /// Threads that were here before, in an execution that differs in nothing but the order of what does not matter: they
  /// need not run before something happens that matters to them.
  [[nodiscard]] virtual thread_set* asleep() noexcept { return nullptr; }
  /// All executions there are have been made.
  [[nodiscard]] virtual bool exhausted() const noexcept { return false; }
  /// The execution has turned out to be like an earlier one.
  [[nodiscard]] virtual bool redundant() const noexcept { return false; }
  /// The execution has come to its end after so many steps.
  virtual void ended(std::uint64_t /*steps*/) noexcept {}
  /// `pct`: the probability with which a bug of the depth in question has stayed unseen in a program of so many
  /// threads, or more.
  [[nodiscard]] virtual double missed(unsigned /*threads*/) const noexcept { return 1; }
  /// The running thread spins: it should not run before others have.
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

/// The one that `options` asks for.
[[nodiscard]] std::unique_ptr<schedule> make_schedule(const sim::options& options);
/// One execution, the one of `path`.
[[nodiscard]] std::unique_ptr<schedule> make_replay(deviations path);

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
