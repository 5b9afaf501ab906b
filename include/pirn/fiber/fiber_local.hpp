// Variables of which each fiber has its own.
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
  /// Takes the node, whose key must not be there. Throws std::bad_alloc, and then has not taken it.
  void add(local_node* node);
  /// Destroys all, the newest first, and those that this makes.
  void clear() noexcept;

 private:
  [[nodiscard]] std::size_t place_of(std::uint64_t key) const noexcept;
  void grow();

  std::unique_ptr<local_node*[]> places_;
  std::size_t capacity_ = 0;  ///< a power of two, or none yet
  std::size_t count_ = 0;
  local_node* newest_ = nullptr;
};

/// Of the caller; null if it has none yet.
local_table* locals_if_any() noexcept;
/// Of the caller. Throws std::bad_alloc.
local_table& locals_here();
void end_locals(local_table*& locals) noexcept;
/// What a variable's values are found by: a number, since another variable may come to lie where one was that its
/// values have outlived. Given at the first use and not by a constructor: a static object of another file may use the
/// variable before that would run.
class local_key {
 public:
  constexpr local_key() noexcept = default;
  /// 0, which no value has, if there was no use yet.
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

/// A variable of which each fiber, and each plain thread, has its own, made when it first asks. The values of a fiber
/// are destroyed when its body has ended, also by an exception or after a stop, the newest first; by the fiber itself,
/// so that their destructors may suspend. They count as part of the fiber: a scope waits for them. The variable may be
/// destroyed before its values, which live on until their fibers end. Any thread or fiber may use it.
template <class T>
class fiber_local {
 public:
  constexpr fiber_local() noexcept = default;
  fiber_local(const fiber_local&) = delete;
  fiber_local& operator=(const fiber_local&) = delete;

  /// The caller's value, value-initialised if there was none. Throws what that throws, and std::bad_alloc.
  [[nodiscard]] T& get()
    requires std::default_initializable<T>
  {
    T* const known = find();
    return known != nullptr ? *known : add();
  }
  [[nodiscard]] T& operator*()
    requires std::default_initializable<T>
  {
    return get();
  }
  [[nodiscard]] T* operator->()
    requires std::default_initializable<T>
  {
    return &get();
  }
  /// The caller's value, null if there is none. O(1).
  [[nodiscard]] T* find() const noexcept {
    const detail::local_table* const mine = detail::locals_if_any();
    const std::uint64_t key = key_.if_any();
    detail::local_node* const found = mine != nullptr && key != 0 ? mine->find(key) : nullptr;
    return found != nullptr ? &static_cast<node*>(found)->value : nullptr;
  }
  /// Makes the caller's value of `arguments`; one that there was is assigned to.
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
