// Variables of which each coroutine has a separate copy, reached through its yield object, or by the caller's stack:
// none of them is thread-local.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "pirn/coro/detail/local_table.hpp"
#include "pirn/coro/detail/locals_here.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/contract.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class copy_stack;
template <class T>
class coroutine_local;

namespace detail {

[[noreturn]] PIRN_COLD inline void no_coroutine_here() {
  throw std::logic_error(
      "pirn: coroutine_local: get() called outside of a coroutine or swapped task, or in a coroutine on memory that no "
      "guarded_pool has mapped: use get(yield) there");
}

/// The base of yield objects: it knows the owner of the coroutine's variables, which lies at the top of the stack.
class coroutine_locals {
 public:
  coroutine_locals(const coroutine_locals&) = delete;
  coroutine_locals& operator=(const coroutine_locals&) = delete;

 protected:
  PIRN_ALWAYS_INLINE explicit coroutine_locals(locals_owner& of) noexcept : of_(&of) {}
  PIRN_ALWAYS_INLINE ~coroutine_locals() = default;
  /// `sp` is in the yield object, whose address escapes: so it is there at each call that the compiler cannot see into.
  void show_caller(const void* sp) noexcept { of_->show_caller(sp); }

 private:
  template <class T>
  friend class pirn::coroutine_local;

  locals_owner* of_;
};

/// As `coroutine_locals`, for a coroutine whose frames are copied: one without variables has nothing in its image.
class copied_locals {
 public:
  copied_locals(const copied_locals&) = delete;
  copied_locals& operator=(const copied_locals&) = delete;

 protected:
  PIRN_ALWAYS_INLINE explicit copied_locals(copy_stack& on) noexcept : on_(on) {}
  PIRN_ALWAYS_INLINE ~copied_locals();

  copy_stack& on_;

 private:
  template <class T>
  friend class pirn::coroutine_local;

  [[nodiscard]] inline locals_place place() const noexcept;
};

}  // namespace detail

/// A variable with a separate copy for each coroutine that uses it. The copy is made from `initial` at the first `get`,
/// and destroyed, the newest first, when its coroutine has ended: a destructor may still use older variables. The
/// object may be destroyed before the copies. Any number of coroutines may use it, from several threads too. A static
/// object whose `initial` is not a constant can be used only once it has been constructed (aborts).
template <class T>
class coroutine_local {
 public:
  /// A variable that is `initial` in each coroutine at first.
  explicit constexpr coroutine_local(const T& initial = T()) : initial_(initial), constructed_(true) {}
  coroutine_local(const coroutine_local&) = delete;
  coroutine_local& operator=(const coroutine_local&) = delete;

  /// Returns the copy of the coroutine with this yield object. The first call only can throw: std::bad_alloc, and any
  /// exception from copying T. O(1): a look into the hash table of the coroutine.
  [[nodiscard]] T& get(detail::coroutine_locals& yield) const { return get_in(*yield.of_); }
  [[nodiscard]] T& get(detail::copied_locals& yield) const { return get_in(yield.place()); }
  /// As `get`, but null if the coroutine has no copy yet.
  [[nodiscard]] T* find(const detail::coroutine_locals& yield) const noexcept {
    return find_in(yield.of_->variables());
  }
  [[nodiscard]] T* find(const detail::copied_locals& yield) const noexcept {
    return find_in(yield.place().variables());
  }
  /// Returns the copy of the coroutine that the caller runs in, as `get(yield)`: of a `coroutine` or a job of a
  /// coroutine_pool whose stack is of a guarded_pool, which is the default, of a copied_coroutine, or of a swapped task
  /// of a stack_swap. The innermost of them counts. Throws std::logic_error elsewhere: in a generator, since only
  /// registers know its consumer, in a coroutine on other memory or with a body object of more than 8 KB, and outside
  /// of any. O(1) where the thread has called it last on the same stack, or on a copy_stack; else O(slabs) of the pools
  /// in use. While several dispatchers of stack_swap run on one stack, or one in a copied_coroutine, and where a
  /// coroutine has other memory, there also is a walk of the stack, which takes some microseconds.
  [[nodiscard]] T& get() const {
    const detail::locals_place here = detail::locals_place_here();
    if (!here) [[unlikely]] {
      detail::no_coroutine_here();
    }
    return get_in(here);
  }
  /// As `get()`, but null if the coroutine has no copy yet, and where `get()` throws.
  [[nodiscard]] T* find() const noexcept {
    const detail::locals_place here = detail::locals_place_here();
    return here ? find_in(here.variables()) : nullptr;
  }

 private:
  struct node final : detail::local_node {
    node(std::uint64_t which, const T& initial)
        : local_node(which, [](local_node* self) noexcept { delete static_cast<node*>(self); }), value(initial) {}
    T value;
  };

  template <class Owner>
  [[nodiscard]] T& get_in(Owner&& owner) const {
    T* const known = find_in(owner.variables());
    return known != nullptr ? *known : add(owner);
  }
  [[nodiscard]] T* find_in(const detail::local_table* table) const noexcept {
    const std::uint64_t key = key_.if_any();
    detail::local_node* const found = table != nullptr && key != 0 ? table->find(key) : nullptr;
    return found != nullptr ? &static_cast<node*>(found)->value : nullptr;
  }
  template <class Owner>
  PIRN_NOINLINE T& add(Owner&& owner) const {
    if (!constructed_) [[unlikely]] {
      detail::fail_contract("a coroutine_local is used before it is constructed, by a static object of another file");
    }
    auto made = std::make_unique<node>(key_.get(), initial_);
    owner.made_variables().add(made.get());
    return made.release()->value;
  }

  mutable detail::local_key key_;
  T initial_;
  bool constructed_;  // a static object is all zeros before its construction
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
