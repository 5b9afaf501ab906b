#include "http/write_pace.hpp"

#include <algorithm>

namespace pirn::inline PIRN_ABI::http {

bool write_pace::keeps_up(tcp_stream& stream) noexcept {
  const auto left = stream.unacknowledged();
  if (!left) {
    return false;
  }
  // What was on its way before the first look is not known, and what was acknowledged of it does not count.
  const std::uint64_t taken = unacknowledged_ - std::min<std::uint64_t>(unacknowledged_, *left);
  unacknowledged_ = *left;
  const double limits = std::min(static_cast<double>(taken) / step, double{most_saved});
  const auto earned = static_cast<platform::duration::rep>(limits * static_cast<double>(limit_.count()));
  const platform::time_point now = platform::now();
  deadline_ = std::min(deadline_ + platform::duration(earned), now + most_saved * limit_);
  next_look_ = std::min(deadline_, now + limit_ / looks_per_limit);
  return now < deadline_;
}

}  // namespace pirn::inline PIRN_ABI::http
