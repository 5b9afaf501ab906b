// Variables of which each coroutine has a separate copy, reached through its yield object: none of them is
// thread-local.
#pragma once

#include <memory>
#include <utility>

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
    // A destructor may use older variables, and create new ones. The loop is here and not in a function that gets this
    // object: then the object's address would escape, and it would become a part of every frame and image.
    while (newest_ != nullptr) [[unlikely]] {
      end(std::exchange(newest_, newest_->older));
    }
  }

 private:
  template <class T>
  friend class pirn::coroutine_local;
  struct variable {
    explicit variable(const void* of) noexcept : key(of) {}
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;
    virtual ~variable() = default;
    const void* key;
    variable* older = nullptr;
  };

  PIRN_NOINLINE static void end(variable* last) noexcept { const std::unique_ptr<variable> owned(last); }

  variable* newest_ = nullptr;
};

}  // namespace detail

/// A variable with a separate copy for each coroutine that uses it. The copy is made from `initial` at the first `get`,
/// and destroyed, in reverse order, when its coroutine has ended: a destructor may still use older variables. The
/// object must outlive those coroutines. Any number of coroutines may use it, from several threads too; finding a copy
/// takes time linear in the number of variables of its coroutine. A static object whose `initial` is not a constant can
/// be used only once it has been constructed (aborts).
template <class T>
class coroutine_local {
 public:
  /// A variable that is `initial` in each coroutine at first.
  explicit constexpr coroutine_local(const T& initial = T()) : initial_(initial), constructed_(true) {}
  coroutine_local(const coroutine_local&) = delete;
  coroutine_local& operator=(const coroutine_local&) = delete;

  /// Returns the copy of the coroutine with this yield object. The first call only can throw: std::bad_alloc, and any
  /// exception from copying T.
  [[nodiscard]] T& get(detail::coroutine_locals& yield) const {
    for (detail::coroutine_locals::variable* each = yield.newest_; each != nullptr; each = each->older) {
      if (each->key == this) {
        return static_cast<holder*>(each)->value;
      }
    }
    if (!constructed_) [[unlikely]] {
      detail::fail_contract("a coroutine_local is used before it is constructed, by a static object of another file");
    }
    auto made = std::make_unique<holder>(this, initial_);
    made->older = yield.newest_;
    yield.newest_ = made.get();
    return made.release()->value;
  }

 private:
  struct holder final : detail::coroutine_locals::variable {
    holder(const void* of, const T& initial) : variable(of), value(initial) {}
    T value;
  };

  T initial_;
  bool constructed_;  // a static object is all zeros before its construction
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
