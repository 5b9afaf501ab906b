// Identifiers of fibers, as std::thread::id is one of threads.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Identifies a fiber, a plain OS thread, or neither, as std::thread::id does. Copied and compared freely; the order
/// has no meaning, but no two fibers of a process ever have the same id. Printed by `<<` as in dumps: `4097` for a
/// fiber, `thread 31` for a thread, `no fiber`.
class fiber_id {
 public:
  /// The id of no fiber.
  constexpr fiber_id() noexcept = default;
  /// The id of the fiber with that number; of no fiber for 0.
  constexpr explicit fiber_id(std::uint64_t number) noexcept : word_(number) {}
  /// The id of the calling OS thread, if that runs no fiber.
  static fiber_id of_this_thread() noexcept {
    return fiber_id(thread_bit | static_cast<std::uint32_t>(platform::thread_id()));
  }

  /// Returns the number by which dumps and handlers name the fiber; 0 for a thread and for no fiber.
  [[nodiscard]] constexpr std::uint64_t number() const noexcept { return is_thread() ? 0 : word_; }

  friend constexpr bool operator==(const fiber_id&, const fiber_id&) noexcept = default;
  friend constexpr std::strong_ordering operator<=>(const fiber_id&, const fiber_id&) noexcept = default;
  template <class Stream>
    requires requires(Stream& out) { out << "" << std::uint64_t{}; }
  friend Stream& operator<<(Stream& out, const fiber_id& id) {
    if (id == fiber_id()) {
      out << "no fiber";
    } else if (id.is_thread()) {
      out << "thread " << (id.word_ & ~thread_bit);
    } else {
      out << id.word_;
    }
    return out;
  }

 private:
  friend struct std::hash<fiber_id>;
  static constexpr std::uint64_t thread_bit = std::uint64_t{1} << 63;  // fibers are not numbered that high
  [[nodiscard]] constexpr bool is_thread() const noexcept { return (word_ & thread_bit) != 0; }

  std::uint64_t word_ = 0;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn

template <>
struct std::hash<pirn::fiber_id> {
  [[nodiscard]] std::size_t operator()(const pirn::fiber_id& id) const noexcept {
    return std::hash<std::uint64_t>()(id.word_);
  }
};
