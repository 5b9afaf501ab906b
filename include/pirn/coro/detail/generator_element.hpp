// The words of generators that their drivers share. Included by generator.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "pirn/context/arch.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How elements of a generator<T> travel.
///
///   T a reference                                  the address; `*it` is T. Of T&& also that of a copy of an lvalue
///   T trivially copyable, two words at most        the value, in registers; `*it` is a T
///   any other T                                    the address of what was yielded, or of a copy of an lvalue;
///                                                  `*it` is T&&, to be moved from
template <class T>
class generator_element {
  static constexpr bool is_small() noexcept {
    if constexpr (std::is_reference_v<T>) {
      return false;  // a function, perhaps, which has no size
    } else {
      return std::is_trivially_copyable_v<T> && std::is_copy_constructible_v<T> && sizeof(T) <= 2 * sizeof(arch::word);
    }
  }

 public:
  static_assert(std::is_reference_v<T> || (std::is_object_v<T> && std::same_as<T, std::remove_cv_t<T>>),
                "a generator yields references or unqualified object types");
  /// Whether the value itself travels.
  static constexpr bool by_value = is_small();
  /// Of a function its address, since ranges want an object.
  using value_type =
      std::conditional_t<std::is_function_v<std::remove_reference_t<T>>, std::decay_t<T>, std::remove_cvref_t<T>>;
  using reference = std::conditional_t<by_value, T, T&&>;
};

/// What a body yields to hand over all elements of a range: `yield(elements_of(range))`. Another generator of the same
/// element type gives them to the consumer directly, at O(1) for each however deeply they are nested; it is at its end
/// afterwards, or, if it was a temporary or moved, perhaps moved from: one that has not begun may run on the stack of
/// the one that delegates, where that has as much room as it was promised.
template <class Range>
struct elements_of {
  Range range;
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

/// The driver of generator<T> that runs on a stack of its own.
struct own_stack {};
/// The driver of generator<T, frame<N>>: N bytes inside the object. They have no guard, so N must do for the body and
/// all that it calls; some 300 bytes are the generator's own, and without optimization frames take kilobytes. To be
/// unwound takes 5 KB more, the first time in a process; so less than 8192 is for a body that always runs to its end. A
/// body that has run off it is told at the next turn, if what it has overwritten lets the program come so far.
template <std::size_t N>
struct frame {};

template <class T, class Driver = own_stack>
class generator;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
