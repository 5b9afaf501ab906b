// All executions, up to a number of preemptions, depth first. Only one order of two independent steps is tried (dynamic
// partial-order reduction: Flanagan and Godefroid 2005; under a bound, with their conservative points: Coons, Musuvathi
// and McKinley 2013; without one, with sleep sets: Godefroid 1996, and source sets: Abdulla, Aronis, Jonsson and
// Sagonas 2014).
//
// Under a bound, executions that leave the default in few choices come first, since most bugs need few. The whole
// search is repeated with an allowance of none, one and so on (iterative context bounding: Musuvathi and Qadeer 2007),
// where the value of a load and a fault count as a preemption does. The last search has the bound only, and finds what
// the reduction promises.
#pragma once

#include "sim/schedule.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

class exhaustive_schedule final : public schedule {
 public:
  exhaustive_schedule(unsigned preemptions, bool reduce) noexcept
      : bound_(preemptions), reduce_(reduce), allowance_(preemptions == no_bound ? no_bound : 0) {}

  [[nodiscard]] bool reduces() const noexcept override { return reduce_; }
  void race(std::uint32_t at, thread_set first) noexcept override;
  [[nodiscard]] thread_set* asleep() noexcept override { return sleeps() ? &asleep_ : nullptr; }
  [[nodiscard]] bool redundant() const noexcept override { return redundant_; }
  [[nodiscard]] bool exhausted() const noexcept override { return exhausted_; }

 protected:
  unsigned pick_thread(thread_set enabled, unsigned running) noexcept override;
  unsigned choose_value(unsigned count) noexcept override;
  bool advance() override;

 private:
  /// A choice of the present execution.
  struct node {
    thread_set enabled = 0;  ///< 0 for the choice of a value
    thread_set wanted = 0;   ///< threads that are to run here in some execution
    thread_set done = 0;     ///< threads that have run here
    thread_set asleep = 0;   ///< threads that need not, whatever comes
    unsigned running = no_thread;
    unsigned chosen = 0;
    unsigned count = 0;             ///< of values
    std::uint32_t preemptions = 0;  ///< before this choice
    std::uint32_t spent = 0;        ///< of the allowance, before this choice
    std::uint32_t block = 0;        ///< the choice at which the thread that ran until here began

    [[nodiscard]] unsigned ran() const noexcept { return enabled != 0 ? chosen : running; }
  };

  [[nodiscard]] bool sleeps() const noexcept { return reduce_ && bound_ == no_bound; }
  [[nodiscard]] static bool preempts(const node& at, unsigned thread) noexcept {
    return thread != at.running && at.running != no_thread && (at.enabled & only(at.running)) != 0;
  }
  static void want(node& at, thread_set first) noexcept;
  bool take_next(node& at) noexcept;
  bool allow_more() noexcept;
  [[noreturn]] void refuse() const noexcept;
  node& new_node() {
    const platform::quiet unseen;
    return trail_.emplace_back();
  }

  unsigned bound_;
  bool reduce_;
  bool exhausted_ = false;
  bool begun_ = false;
  bool redundant_ = false;  ///< the rest of this execution was seen before
  bool left_out_ = false;   ///< a choice was left out, since it was not allowed yet
  unsigned allowance_;      ///< the number of choices that may differ from the default in this search
  std::uint32_t depth_ = 0;
  std::uint32_t preemptions_ = 0;
  std::uint32_t spent_ = 0;
  thread_set asleep_ = 0;
  std::vector<node> trail_;
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
