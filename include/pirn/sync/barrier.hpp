// A barrier: a number of parties that wait for each other, again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// A barrier without the completion at the end of a phase.
template <class Domain>
class barrier_core {
 public:
  constexpr explicit barrier_core(std::ptrdiff_t expected) noexcept : expected_(expected), left_(expected) {
    if (expected < 0) {
      refuse_number();
    }
  }

  struct arrival {
    std::uint64_t phase;
    bool last;  ///< the caller must call `next_phase`, after the completion
  };
  /// Aborts when more arrive than are expected. `leaving` of them are not expected in later phases.
  PIRN_DEFINED_ONCE arrival arrive(std::ptrdiff_t count, std::ptrdiff_t leaving) noexcept;
  /// Ends the present phase, and wakes the fibers that wait for its end.
  PIRN_DEFINED_ONCE void next_phase() noexcept;
  /// For a party that has arrived in `phase`. True as `arrival::last`, since a later phase still expects it.
  [[nodiscard]] PIRN_DEFINED_ONCE bool leave(std::uint64_t phase) noexcept;
  PIRN_DEFINED_ONCE std::expected<void, wait_error> wait(std::uint64_t phase, platform::time_point deadline) noexcept;

 private:
  [[noreturn]] PIRN_DEFINED_ONCE void refuse_number() noexcept;

  std::ptrdiff_t expected_;  ///< in later phases
  std::ptrdiff_t left_;      ///< arrivals that the present phase still expects; 0 while it is ending
  std::uint64_t phase_ = 0;
  typename Domain::queue waiters_;  ///< its lock guards all members
};

extern template class barrier_core<shared_domain>;

struct no_completion {
  void operator()() const noexcept {}
};

}  // namespace detail

/// As std::barrier: phases that end when all parties have arrived. The last to arrive calls `Completion`, which may
/// suspend; then all continue. Fibers of any worker and plain threads share it. It may be destroyed when no further
/// call will come, even while the last arrival has not returned yet.
template <class Completion = detail::no_completion, class Domain = detail::shared_domain>
class barrier {
  static_assert(std::is_nothrow_invocable_v<Completion&>,
                "the completion of a barrier is called without parameters "
                "and must be noexcept");

 public:
  /// The proof of an arrival, with its phase.
  class arrival_token {
   private:
    friend class barrier;
    explicit arrival_token(std::uint64_t phase) noexcept : phase_(phase) {}
    std::uint64_t phase_;
  };

  /// Expects `expected` arrivals in each phase.
  constexpr explicit barrier(std::ptrdiff_t expected, Completion completion = Completion())
      : core_(expected), completion_(std::move(completion)) {}
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  /// Returns the largest number of arrivals.
  [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return std::numeric_limits<std::ptrdiff_t>::max(); }

  /// Arrives `count` times, without waiting. Aborts when the phase does not expect that many. Suspends only if this is
  /// the last arrival and the completion suspends.
  [[nodiscard]] arrival_token arrive(std::ptrdiff_t count = 1) noexcept {
    const auto mine = core_.arrive(count, 0);
    end_phase_if(mine.last);
    return arrival_token(mine.phase);
  }
  /// Suspends until the phase of the token has ended, the deadline passes or the caller is asked to stop. On an error
  /// the arrival stands: wait again, or `leave`.
  [[nodiscard]] std::expected<void, wait_error> wait(const arrival_token& token,
                                                     time_limit deadline = platform::never) noexcept {
    return core_.wait(token.phase_, deadline);
  }
  /// Arrives and waits. An error means that the caller has left: its arrival counts, and later phases do not expect it.
  [[nodiscard]] std::expected<void, wait_error> arrive_and_wait(time_limit deadline = platform::never) noexcept {
    const arrival_token token = arrive();
    auto result = wait(token, deadline);
    if (!result) {
      leave(token);
    }
    return result;
  }
  /// Arrives for the last time: later phases expect one less. Suspends only if `arrive` would.
  void arrive_and_drop() noexcept { end_phase_if(core_.arrive(1, 1).last); }
  /// Leaves after an arrival, without waiting: later phases expect one less. Suspends only if `arrive` would.
  void leave(const arrival_token& token) noexcept { end_phase_if(core_.leave(token.phase_)); }

 private:
  void end_phase_if(bool last) noexcept {
    if (last) {
      completion_();
      core_.next_phase();
    }
  }

  detail::barrier_core<Domain> core_;
  [[no_unique_address]] Completion completion_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
