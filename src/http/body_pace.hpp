// The time limit of a client for sending a request's body.
#pragma once

#include <algorithm>
#include <cstddef>

#include "http/write_pace.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Gives a client some time to begin with, and more for each byte of the body. The client may save up at most twice the
/// time that it has to begin with. So neither an occasional byte nor a large part at the beginning holds the
/// connection.
class body_pace {
 public:
  /// `rate` in bytes per second; 0 for no limit.
  body_pace(std::size_t rate, platform::duration grace) noexcept : rate_(rate) {
    if (rate != 0 && grace < platform::duration::max() / (2 * max_graces)) {
      max_saved_ = max_graces * grace;
      deadline_ = platform::now() + grace;
    }
  }

  [[nodiscard]] platform::time_point deadline() const noexcept { return deadline_; }
  void got(std::size_t bytes) noexcept {
    if (deadline_ != platform::never) {
      const std::chrono::duration<double> earned(static_cast<double>(bytes) / static_cast<double>(rate_));
      deadline_ = std::min(
          platform::now() + max_saved_,
          deadline_ + (earned < max_saved_ ? std::chrono::duration_cast<platform::duration>(earned) : max_saved_));
    }
  }

 private:
  static constexpr int max_graces = 2;

  std::size_t rate_;
  platform::duration max_saved_{};
  platform::time_point deadline_ = platform::never;
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
