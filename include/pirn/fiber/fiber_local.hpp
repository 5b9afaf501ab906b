// Variables with a value for each fiber.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "pirn/coro/detail/local_table.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// Returns the caller's table; null if it has none yet.
local_table* locals_if_any() noexcept;
/// Returns the caller's table. Throws std::bad_alloc.
local_table& locals_here();
void end_locals(local_table*& locals) noexcept;

}  // namespace detail

/// A variable of which each fiber, and each plain thread, has its own value, made at its first use. The fiber destroys
/// its values when its body has ended, also by an exception or after a stop, the newest first; their destructors may
/// suspend. They count as part of the fiber: a scope waits for them. The variable may be destroyed before its values,
/// which live until their fibers end. Any thread or fiber may use it.
template <class T>
class fiber_local {
 public:
  constexpr fiber_local() noexcept = default;
  fiber_local(const fiber_local&) = delete;
  fiber_local& operator=(const fiber_local&) = delete;

  /// Returns the caller's value, value-initialised if there was none. Throws what that throws, and std::bad_alloc.
  [[nodiscard]] T& get()
    requires std::default_initializable<T>
  {
    T* const known = find();
    return known != nullptr ? *known : add();
  }
  /// Returns the calling fiber's value, as `get`.
  [[nodiscard]] T& operator*()
    requires std::default_initializable<T>
  {
    return get();
  }
  /// As `operator*`, for access to a member.
  [[nodiscard]] T* operator->()
    requires std::default_initializable<T>
  {
    return &get();
  }
  /// Returns the caller's value, or null. O(1).
  [[nodiscard]] T* find() const noexcept {
    const detail::local_table* const mine = detail::locals_if_any();
    const std::uint64_t key = key_.if_any();
    detail::local_node* const found = mine != nullptr && key != 0 ? mine->find(key) : nullptr;
    return found != nullptr ? &static_cast<node*>(found)->value : nullptr;
  }
  /// Makes the caller's value from `arguments`; an existing value is assigned to.
  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    if (T* const known = find()) {
      return *known = T(std::forward<Arguments>(arguments)...);
    }
    return add(std::forward<Arguments>(arguments)...);
  }

 private:
  struct node : detail::local_node {
    template <class... Arguments>
    explicit node(std::uint64_t which, Arguments&&... arguments)
        : local_node(which, [](local_node* self) noexcept { delete static_cast<node*>(self); }),
          value(std::forward<Arguments>(arguments)...) {}
    T value;
  };

  template <class... Arguments>
  T& add(Arguments&&... arguments) {
    auto made = std::make_unique<node>(key_.get(), std::forward<Arguments>(arguments)...);
    detail::locals_here().add(made.get());
    return made.release()->value;
  }

  detail::local_key key_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
