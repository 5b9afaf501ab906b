// Checks the pace at which a client acknowledges data.
#include "http/write_pace.hpp"

#include <algorithm>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

bool write_pace::keeps_up(tcp_stream& stream) noexcept {
  const auto left = stream.unacknowledged();
  if (!left) {
    return false;
  }
  const std::uint64_t taken = unacknowledged_ - std::min<std::uint64_t>(unacknowledged_, *left);
  unacknowledged_ = *left;
  if (!is_limited()) {
    return true;
  }
  const double limits = std::min(static_cast<double>(taken) / step, double{max_saved});
  const auto earned = static_cast<platform::duration::rep>(limits * static_cast<double>(limit_.count()));
  const platform::time_point now = platform::now();
  deadline_ = std::min(deadline_ + platform::duration(earned), now + max_saved * limit_);
  const bool took_marked = marked_ > 0 && taken >= marked_ && now - marked_at_ <= limit_ / 2;
  if (*left == 0 || took_marked) {
    deadline_ = std::max(deadline_, now + limit_);
  }
  marked_ -= std::min(marked_, taken);
  if (marked_ == 0) {
    marked_ = *left;
    marked_at_ = now;
  }
  next_look_ = std::min(deadline_, now + limit_ / looks_per_limit);
  return now < deadline_;
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
