// The values of variables of bodies that take turns on one stack: the contexts of a copy_stack, the tasks of a
// dispatcher. A body has no room for them, so that one without variables is as small as before.
#pragma once

#include "pirn/detail/abi.hpp"
#include "pirn/stack/detail/address_map.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The values of the bodies of one stack, by the addresses of the bodies. Not thread-safe.
class values_by_body {
 public:
  using running_body = const void* (*)(const void* owner) noexcept;
  using end_of_values = void (*)(void* values) noexcept;

  /// `get` returns the running body of the owner, or null.
  constexpr values_by_body(const void* owner, running_body get) noexcept : owner_(owner), running_(get) {}
  values_by_body(const values_by_body&) = delete;
  values_by_body& operator=(const values_by_body&) = delete;

  /// Returns the body that runs on the stack, or null.
  [[nodiscard]] const void* running() const noexcept { return running_(owner_); }
  /// Whether any body has values.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool any() const noexcept { return by_body_.any(); }
  /// Returns the values of the body, or null.
  [[nodiscard]] void* find(const void* body) const noexcept { return by_body_.find(body); }
  /// Gives a body without values these, which `destroy` destroys. False without memory.
  [[nodiscard]] bool add(const void* body, void* values, end_of_values destroy) noexcept {
    end_ = destroy;
    return by_body_.add(body, values);
  }
  /// Gives the values of a body to the body at another address.
  void move(const void* from, const void* to) noexcept { by_body_.move(from, to); }
  /// Destroys the values of the body, if it has some. Until they are destroyed they can be found.
  PIRN_ALWAYS_INLINE void end(const void* body) noexcept {
    if (any()) [[unlikely]] {
      end_some(body);
    }
  }

 private:
  PIRN_COLD void end_some(const void* body) noexcept {
    if (void* const values = find(body); values != nullptr) {
      end_(values);
      by_body_.remove(body);
    }
  }

  const void* owner_;
  running_body running_;
  end_of_values end_ = nullptr;
  address_map by_body_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
