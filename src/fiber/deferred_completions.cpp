// Publishes the completions that a worker has deferred.
#include "pirn/fiber/detail/deferred_completions.hpp"

#include <utility>

#include "pirn/fiber/fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

bool deferred_completions::publish() noexcept {
  for (fiber_control** each = ended_before_.get(); each != last_ended_before_; ++each) {
    if (fiber_control* const f = *each) {
      retire(f, f->ended_here());
    }
  }
  ended_.swap(ended_before_);
  last_ended_before_ = std::exchange(last_ended_, ended_.get());
  return last_ended_before_ != ended_before_.get();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
