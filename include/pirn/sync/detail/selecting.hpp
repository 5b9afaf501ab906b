// The steps of a select, for callers that suspend in different ways.
#pragma once

#include <span>

#include "pirn/fiber/expert/wait_set.hpp"
#include "pirn/sync/select.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The state of a select from its first look to its end.
class selecting {
 public:
  explicit selecting(std::span<select_case* const> cases, platform::time_point deadline = platform::never) noexcept;

  /// Takes the locks and looks whether a case is ready. If not, the locks stay held; otherwise they are released.
  [[nodiscard]] std::optional<selection> look();
  /// Returns the selection after the caller's wait in `entries`. Empty if it must look again: a woken case did not do
  /// what it says.
  [[nodiscard]] std::optional<selection> after_wait(wake_reason reason) const noexcept;
  /// Returns a selection without a case; for a select that finds nothing ready and may not wait, and where no wait
  /// could begin.
  [[nodiscard]] selection none(wake_reason why) const noexcept {
    return {cases_.size(), std::unexpected(error_of(why))};
  }
  [[nodiscard]] selection nothing_ready() const noexcept;
  /// Runs the whole select, by suspending the calling fiber or blocking the calling thread.
  selection run(select_mode mode);

  [[nodiscard]] wait_set& entries() noexcept { return entries_; }
  [[nodiscard]] wait_options options() const noexcept { return {.deadline = deadline_, .what = "select"}; }

 private:
  std::span<select_case* const> cases_;
  wait_set entries_;
  std::size_t timer_;  ///< the `until` that comes first; the number of cases if there is no `until`
  platform::time_point deadline_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
