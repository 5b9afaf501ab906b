// Whether a bias is worth its fences.
#pragma once

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Where the light fence is a full one, a bias would cost more than it saves; but ThreadSanitizer must see one.
inline bool bias_pays() noexcept {
#if defined(PIRN_TSAN)
  return true;
#else
  return platform::fences_are_asymmetric();
#endif
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
