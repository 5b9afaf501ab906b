// Variables with a value for each fiber.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// One fiber's value of one variable.
struct local_node {
  constexpr local_node(std::uint64_t which, void (*end)(local_node*) noexcept) noexcept : key(which), destroy(end) {}
  std::uint64_t key;
  void (*destroy)(local_node*) noexcept;
  local_node* older = nullptr;
};

/// The values of one fiber or thread: a hash table for finding them, a list for destroying them.
class local_table {
 public:
  [[nodiscard]] local_node* find(std::uint64_t key) const noexcept;
  /// Takes the node, whose key must not be in the table. Throws std::bad_alloc, and then does not take it.
  void add(local_node* node);
  /// Destroys all values, the newest first, and those that the destructors make.
  void clear() noexcept;

 private:
  [[nodiscard]] std::size_t place_of(std::uint64_t key) const noexcept;
  void grow();

  std::unique_ptr<local_node*[]> places_;
  std::size_t capacity_ = 0;  ///< a power of two, or 0 at first
  std::size_t count_ = 0;
  local_node* newest_ = nullptr;
};

/// Returns the caller's table; null if it has none yet.
local_table* locals_if_any() noexcept;
/// Returns the caller's table. Throws std::bad_alloc.
local_table& locals_here();
void end_locals(local_table*& locals) noexcept;
/// The number that identifies a variable's values. Not its address: another variable may come to lie there while the
/// values live on. Assigned at the first use and not by a constructor: a static object of another file may use the
/// variable before that would run.
class local_key {
 public:
  constexpr local_key() noexcept = default;
  /// Returns 0, which no value has, before the first use.
  [[nodiscard]] std::uint64_t if_any() const noexcept { return number_.load(platform::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() noexcept {
    const std::uint64_t known = if_any();
    return known != 0 ? known : make();
  }

 private:
  std::uint64_t make() noexcept;

  platform::signal_atomic<std::uint64_t> number_{0};
};

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
