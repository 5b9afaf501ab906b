// The types that the drivers of generators share. Included by generator.hpp.
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
      return false;  // perhaps a function, which has no size
    } else {
      return std::is_trivially_copyable_v<T> && std::is_copy_constructible_v<T> && sizeof(T) <= 2 * sizeof(arch::word);
    }
  }

 public:
  static_assert(std::is_reference_v<T> || (std::is_object_v<T> && std::same_as<T, std::remove_cv_t<T>>),
                "a generator yields references or unqualified object types");
  /// Whether the value itself travels.
  static constexpr bool by_value = is_small();
  /// A function travels as its address, since ranges require an object.
  using value_type =
      std::conditional_t<std::is_function_v<std::remove_reference_t<T>>, std::decay_t<T>, std::remove_cvref_t<T>>;
  using reference = std::conditional_t<by_value, T, T&&>;
};

/// The driver of generator<T> that runs on a separate stack.
struct own_stack {};
/// The driver of generator<T, frame<N>>: N bytes inside the object. They have no guard, so N must suffice for the body
/// and all its callees. The generator uses some 300 bytes of them, and without optimization frames take kilobytes. An
/// unwind takes 5 KB more, the first time in a process; so less than 8192 is for a body that always runs to its end. A
/// body that has overflowed ends the program at its next yield, at its end or when the generator is destroyed, with a
/// message that names the body, if the overwritten memory lets the program come so far.
///
/// Without a number, the compiler plugin finds how many bytes the body needs, an unwind included, and refuses a body
/// for which there is no such number; docs/compiler.md says which. Such a generator must be a variable of the function
/// that makes it. Without the plugin the program does not link.
template <std::size_t N = 0>
struct frame {};

template <class T, class Driver = own_stack>
class generator;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
