// How the elements of generators that fit into two words travel.
#pragma once

#include <cstring>
#include <memory>
#include <type_traits>

#include "pirn/context/arch.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

using arch::undef_word;
using arch::word;

/// Converts a trivially copyable value of at most two words to words, and back.
template <class T>
struct word_pair {
  static constexpr bool is_word = (std::is_integral_v<T> || std::is_enum_v<T>) && sizeof(T) <= sizeof(word);

  PIRN_ALWAYS_INLINE static void pack(const T& value, word& first, word& second) noexcept {
    if constexpr (is_word) {
      first = static_cast<word>(value);  // NOLINT(bugprone-signed-char-misuse): cast back to the same type
      second = undef_word();
    } else {
      word words[2];
      std::memcpy(words, std::addressof(value), sizeof(T));
      first = words[0];
      second = sizeof(T) > sizeof(word) ? words[1] : undef_word();
    }
  }
  PIRN_ALWAYS_INLINE static T unpack(word first, word second) noexcept {
    if constexpr (is_word) {
      return static_cast<T>(first);
    } else {
      const word words[2] = {first, second};
      union bytes {
        PIRN_ALWAYS_INLINE bytes() noexcept {}  // the type need not have a default constructor
        T value;
      } copy;
      std::memcpy(static_cast<void*>(std::addressof(copy.value)), words, sizeof(T));
      return copy.value;
    }
  }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
