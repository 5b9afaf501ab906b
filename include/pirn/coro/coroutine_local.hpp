// Variables of which each coroutine has a separate copy, reached through its yield object: none of them is
// thread-local.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "pirn/coro/detail/local_table.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/contract.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

template <class T>
class coroutine_local;

namespace detail {

/// The base of every yield object: it holds the variables of the running coroutine.
class coroutine_locals {
 public:
  coroutine_locals() noexcept = default;
  coroutine_locals(const coroutine_locals&) = delete;
  coroutine_locals& operator=(const coroutine_locals&) = delete;

 protected:
  PIRN_ALWAYS_INLINE ~coroutine_locals() { clear(); }

  /// Destroys all variables.
  PIRN_ALWAYS_INLINE void clear() noexcept {
    // A destructor may use older variables, and create new ones. No function gets this object: its address would
    // escape, and it would become a part of every frame and image.
    if (table_ != nullptr) [[unlikely]] {
      local_table::end(table_);
      table_ = nullptr;
    }
  }

 private:
  template <class T>
  friend class pirn::coroutine_local;

  local_table* table_ = nullptr;
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
  [[nodiscard]] T& get(detail::coroutine_locals& yield) const {
    T* const known = find(yield);
    return known != nullptr ? *known : add(yield);
  }
  /// As `get`, but null if the coroutine has no copy yet.
  [[nodiscard]] T* find(const detail::coroutine_locals& yield) const noexcept {
    const std::uint64_t key = key_.if_any();
    detail::local_node* const found = yield.table_ != nullptr && key != 0 ? yield.table_->find(key) : nullptr;
    return found != nullptr ? &static_cast<node*>(found)->value : nullptr;
  }

 private:
  struct node final : detail::local_node {
    node(std::uint64_t which, const T& initial)
        : local_node(which, [](local_node* self) noexcept { delete static_cast<node*>(self); }), value(initial) {}
    T value;
  };

  PIRN_NOINLINE T& add(detail::coroutine_locals& yield) const {
    if (!constructed_) [[unlikely]] {
      detail::fail_contract("a coroutine_local is used before it is constructed, by a static object of another file");
    }
    auto made = std::make_unique<node>(key_.get(), initial_);
    if (yield.table_ == nullptr) {
      yield.table_ = new detail::local_table;
    }
    yield.table_->add(made.get());
    return made.release()->value;
  }

  mutable detail::local_key key_;
  T initial_;
  bool constructed_;  // a static object is all zeros before its construction
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
