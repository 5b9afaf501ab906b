// The argument by which generators delegate. Included by generator.hpp.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The argument by which a body yields all elements of a range: `yield(elements_of(range))`. Another generator of the
/// same element type passes them to the consumer directly, at O(1) for each at any depth of nesting. It is at its end
/// afterwards, or, if it was a temporary or moved, perhaps moved from: a generator that has not begun may run on the
/// stack of the delegating one, where that has as much room as it was promised.
template <class Range>
struct elements_of {
  Range range;  ///< the generator or other range whose elements are yielded
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
