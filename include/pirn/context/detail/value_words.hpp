// How typed values become the words that a switch carries in registers, and values again on the other side.
//
//   trivially copyable, up to four words   the value itself, in as many words as it has
//   references                             the address
//   all others                             the address of the sender's object, from which the receiver constructs one
//
// Together up to four words travel in registers; more lie in the sender's frame, and the first word says where. The
// sender's frame lasts until the sender is resumed, so the receiver takes its values before it does anything else.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

using arch::value_words;
using arch::word;

/// Leaves the words from `first` on as they are, since no code reads them: costs no instruction. Without the asm gcc
/// warns about each.
PIRN_ALWAYS_INLINE void leave_indeterminate([[maybe_unused]] word (&words)[value_words],
                                            [[maybe_unused]] std::size_t first) noexcept {
#if !defined(__clang__)
  for (std::size_t i = first; i < value_words; ++i) {
    asm volatile("" : "=r"(words[i]));  // volatile, or a loop keeps a register for this
  }
#endif
}

/// Makes the words from `first` on, which no code reads, indeterminate once more, before a switch that may be in a
/// loop. clang would otherwise keep the words of the last switch for the next one, in the frame: 8 instructions a
/// switch. Costs none.
PIRN_ALWAYS_INLINE void forget([[maybe_unused]] word (&words)[value_words],
                               [[maybe_unused]] std::size_t first = 0) noexcept {
#if defined(__clang__)
  for (std::size_t at = first; at < value_words; ++at) {
    asm volatile("" : "=r"(words[at]));  // volatile, or it is done once, before the loop
  }
#endif
}

template <class T>
inline constexpr bool fits_in_words = std::is_trivially_copyable_v<T> && sizeof(T) <= value_words * sizeof(word);

/// One value of type T on its way.
template <class T>
struct word_codec {
  using bare = std::remove_const_t<T>;
  static constexpr bool whole = fits_in_words<T>;
  static constexpr std::size_t words = whole ? (sizeof(T) + sizeof(word) - 1) / sizeof(word) : 1;

  PIRN_ALWAYS_INLINE static void pack(T& value, word* to) noexcept {
    if constexpr (!whole) {
      *to = reinterpret_cast<word>(std::addressof(value));
    } else if constexpr (std::is_same_v<bare, bool>) {
      *to = value ? 1 : 0;
    } else if constexpr (std::is_pointer_v<T>) {
      *to = reinterpret_cast<word>(value);
    } else if constexpr ((std::is_integral_v<T> || std::is_enum_v<T>) && sizeof(T) <= sizeof(word)) {
      *to = static_cast<word>(value);  // NOLINT(bugprone-signed-char-misuse): whatever the upper bytes are
    } else {
      word bits[words] = {};
      std::memcpy(bits, std::addressof(value), sizeof(T));
      for (std::size_t i = 0; i < words; ++i) {
        to[i] = bits[i];
      }
    }
  }
  PIRN_ALWAYS_INLINE static std::conditional_t<whole, T, T&&> unpack(const word* from) noexcept {
    if constexpr (!whole) {
      return std::move(*reinterpret_cast<T*>(*from));
    } else if constexpr (std::is_same_v<bare, bool>) {
      return *from != 0;
    } else if constexpr (std::is_pointer_v<T>) {
      return reinterpret_cast<bare>(*from);
    } else if constexpr ((std::is_integral_v<T> || std::is_enum_v<T>) && sizeof(T) <= sizeof(word)) {
      return static_cast<bare>(*from);
    } else {
      union bytes {
        PIRN_ALWAYS_INLINE bytes() noexcept {}  // the type need not have a default constructor
        bare value;
      } copy;
      std::memcpy(static_cast<void*>(std::addressof(copy.value)), from, sizeof(T));
      return static_cast<T&&>(copy.value);  // a copy constructor may be deleted
    }
  }
};

template <class T>
struct word_codec<T&> {
  static constexpr bool whole = true;
  static constexpr std::size_t words = 1;
  PIRN_ALWAYS_INLINE static void pack(T& value, word* to) noexcept {
    *to = reinterpret_cast<word>(std::addressof(value));
  }
  PIRN_ALWAYS_INLINE static T& unpack(const word* from) noexcept { return *reinterpret_cast<T*>(*from); }
};

template <class T>
struct word_codec<T&&> {
  static constexpr bool whole = true;
  static constexpr std::size_t words = 1;
  PIRN_ALWAYS_INLINE static void pack(T& value, word* to) noexcept {
    *to = reinterpret_cast<word>(std::addressof(value));
  }
  PIRN_ALWAYS_INLINE static T&& unpack(const word* from) noexcept {
    return static_cast<T&&>(*reinterpret_cast<T*>(*from));
  }
};

/// The type that a side receives: nothing, a value, or a tuple of several.
template <class... Ts>
struct received {
  using type = std::tuple<Ts...>;
};
template <class T>
struct received<T> {
  using type = T;
};
template <>
struct received<> {
  using type = void;
};

/// All values of one direction.
template <class... Ts>
class value_list {
 public:
  static constexpr std::size_t words = (std::size_t{0} + ... + word_codec<Ts>::words);
  static constexpr bool in_registers = words <= value_words;
  /// How many of a switch's words they take.
  static constexpr std::size_t words_sent = in_registers ? words : 1;
  /// Whether the words are complete: no part of the values is anywhere else.
  static constexpr bool self_contained = in_registers && (word_codec<Ts>::whole && ...);
  using tuple = std::tuple<Ts...>;

  /// The part of the values that has to lie in the sender's frame until they are taken.
  class packed_args {
   public:
    /// Puts the values, which must outlive the switch, into the words that travel.
    PIRN_ALWAYS_INLINE void pack(word (&to)[value_words],
                                 std::type_identity_t<std::remove_reference_t<Ts>>&... values) noexcept {
      [[maybe_unused]] word* at = words_;
      ((word_codec<Ts>::pack(values, at), at += word_codec<Ts>::words), ...);
      if constexpr (in_registers) {
        for (std::size_t i = 0; i < words; ++i) {
          to[i] = words_[i];
        }
        leave_indeterminate(to, words);
      } else {
        to[0] = reinterpret_cast<word>(&words_[0]);
        leave_indeterminate(to, 1);
      }
    }

   private:
    word words_[words == 0 ? 1 : words];
  };

  /// Returns the result of `make` for the values that arrived. A value that did not travel whole is the sender's, to be
  /// moved from.
  template <class Make>
  PIRN_ALWAYS_INLINE static decltype(auto) unpack(const word (&from)[value_words], Make&& make) {
    return unpack_from(in_registers ? &from[0] : reinterpret_cast<const word*>(from[0]), std::forward<Make>(make),
                       std::index_sequence_for<Ts...>{});
  }

 private:
  static constexpr std::size_t offset_of(std::size_t index) noexcept {
    std::size_t sum = 0, i = 0;
    (((i++ < index) ? (sum += word_codec<Ts>::words) : sum), ...);
    return sum;
  }
  template <class Make, std::size_t... I>
  PIRN_ALWAYS_INLINE static decltype(auto) unpack_from([[maybe_unused]] const word* from, Make&& make,
                                                       std::index_sequence<I...>) {
    return std::forward<Make>(make)(word_codec<Ts>::unpack(from + offset_of(I))...);
  }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
