// The parts of a channel that need no lock: its values, and what a waiter shows to its partner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The capacity of a channel that always has room.
inline constexpr std::size_t unbounded_capacity = static_cast<std::size_t>(-1);

/// Whether a value of this type may travel in a register.
template <class T>
inline constexpr bool fits_word = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uintptr_t);

/// Returns a word with the bytes of a value, and the value whose bytes are in a word.
template <class T>
PIRN_ALWAYS_INLINE std::uintptr_t to_word(const T& value) noexcept {
  std::uintptr_t bytes = 0;
  __builtin_memcpy(&bytes, std::addressof(value), sizeof(T));
  return bytes;
}
template <class T>
PIRN_ALWAYS_INLINE T of_word(std::uintptr_t from) noexcept {
  alignas(T) std::byte bytes[sizeof(T)];
  __builtin_memcpy(bytes, &from, sizeof(T));
  return std::move(*std::launder(reinterpret_cast<T*>(bytes)));
}

/// The values in a channel, in order of age: a ring of `capacity` values. An unbounded one may be followed by larger
/// rings, each empty only if it is the last.
template <class T>
class channel_values {
 public:
  explicit channel_values(std::size_t capacity)
      : oldest_(capacity == unbounded_capacity ? min_unbounded_room : capacity), capacity_(capacity) {}
  ~channel_values() {
    while (!none()) {
      drop_first();
    }
  }
  channel_values(const channel_values&) = delete;
  channel_values& operator=(const channel_values&) = delete;

  /// Returns whether there is no value: a ring that has others behind it is never empty.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool none() const noexcept { return oldest_.size == 0; }
  [[nodiscard]] PIRN_ALWAYS_INLINE T& first() const noexcept { return oldest_.values[oldest_.first]; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// Returns the number of values. O(1), but O(log n) in an unbounded one that has grown.
  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t all = 0;
    for (const ring* r = &oldest_; r != nullptr; r = r->next.get()) {
      all += r->size;
    }
    return all;
  }

  /// Whether there is room for one more value without an allocation.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool has_place() const noexcept { return newest_->size < newest_->room; }
  /// Returns whether there is room for one more value. An unbounded channel makes room.
  [[nodiscard]] bool has_room() {
    if (has_place()) {
      return true;
    }
    if (capacity_ != unbounded_capacity) {
      return false;
    }
    grow();
    return true;
  }
  PIRN_ALWAYS_INLINE void append(T& value) { newest_->append(value); }
  PIRN_ALWAYS_INLINE void drop_first() noexcept {
    oldest_.drop_first();
    if (oldest_.size == 0 && oldest_.next != nullptr) [[unlikely]] {
      leave_oldest();
    }
  }

 private:
  static constexpr std::size_t min_unbounded_room = 16;

  /// Room for some values in a row, the oldest at `first`.
  struct ring {
    explicit ring(std::size_t count)
        : values(count != 0 ? std::allocator<T>().allocate(count) : nullptr), room(count) {}
    ~ring() {
      if (values != nullptr) {
        std::allocator<T>().deallocate(values, room);
      }
    }
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;

    void append(T& value) {
      const std::size_t index = first + size;
      std::construct_at(values + (index < room ? index : index - room), std::move(value));
      ++size;
    }
    void drop_first() noexcept {
      std::destroy_at(values + first);
      first = first + 1 < room ? first + 1 : 0;
      --size;
    }

    // The part that each call changes comes first, so that it shares a cache line with the lock of the channel.
    std::size_t first = 0;
    std::size_t size = 0;
    T* values;
    std::size_t room;
    std::unique_ptr<ring> next;  ///< in an unbounded channel: twice as large, for the values after these
  };

  /// Moves the next ring into the place of the oldest one, which is empty.
  PIRN_NOINLINE void leave_oldest() noexcept {
    const std::unique_ptr<ring> next = std::move(oldest_.next);
    if (newest_ == next.get()) {
      newest_ = &oldest_;
    }
    oldest_.first = next->first;
    oldest_.size = std::exchange(next->size, 0);
    std::swap(oldest_.values, next->values);
    std::swap(oldest_.room, next->room);
    oldest_.next = std::move(next->next);
  }
  PIRN_NOINLINE void grow() {
    newest_->next = std::make_unique<ring>(2 * newest_->room);
    newest_ = newest_->next.get();
  }

  ring oldest_;
  ring* newest_ = &oldest_;  ///< the oldest, unless an unbounded channel has grown and holds values from before
  const std::size_t capacity_;
};

/// The value of a waiting sender, or a waiting receiver's place for it. Its address is the waiter's `value`.
template <class T>
struct channel_exchange {
  using received = std::expected<T, wait_error>;

  void* object;  ///< the sender's T, or the receiver's place for it
  /// Set by a receiver that does not take a `received`: moves the value to `place`.
  void (*deliver)(void* place, T& value) = nullptr;
  bool moved = false;
  bool takes_word = false;  ///< set by a receiver that can take the value in a register
  bool word_given = false;  ///< and it was given there

  [[nodiscard]] static PIRN_ALWAYS_INLINE channel_exchange& of(const waiter& w) noexcept {
    return *static_cast<channel_exchange*>(w.value);
  }
  /// Moves `value` there.
  PIRN_ALWAYS_INLINE void take(T& value) {
    deliver != nullptr ? deliver(object, value) : move_into(*static_cast<received*>(object), value);
  }
  /// Moves the value of this sender into the exchange of a receiver, or into a result.
  [[nodiscard]] PIRN_ALWAYS_INLINE T& offered() const noexcept { return *static_cast<T*>(object); }

  /// Moves a value into a result that holds an error; if that throws, the result is as before.
  static PIRN_ALWAYS_INLINE void move_into(received& to, T& value) {
    const wait_error before = to.error();
    std::destroy_at(&to);
    try {
      std::construct_at(&to, std::in_place, std::move(value));
    } catch (...) {
      std::construct_at(&to, std::unexpect, before);
      throw;
    }
  }
};

/// The exchange of a waiting sender. A value that fits into a word lies in it, beside the waiter, so that the sender's
/// own can stay in a register.
template <class T, bool InPlace = fits_word<T>>
struct channel_offer : channel_exchange<T> {
  PIRN_ALWAYS_INLINE explicit channel_offer(T& value) noexcept : channel_exchange<T>{std::addressof(value)} {}
};
template <class T>
struct channel_offer<T, true> : channel_exchange<T> {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the copy writes what is read of it
  PIRN_ALWAYS_INLINE explicit channel_offer(const T& value) noexcept : channel_exchange<T>{bytes} {
    __builtin_memcpy(bytes, std::addressof(value), sizeof(T));
  }
  channel_offer(const channel_offer&) = delete;
  channel_offer& operator=(const channel_offer&) = delete;
  alignas(T) std::byte bytes[sizeof(T)];
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
