// Variables of which each coroutine has its own, reached through its yield object: nothing here is a thread-local.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

template <class T>
class coroutine_local;

/// What every yield object is: the running coroutine, as far as its variables are concerned.
class coroutine_locals {
 public:
  coroutine_locals() noexcept = default;
  coroutine_locals(const coroutine_locals&) = delete;
  coroutine_locals& operator=(const coroutine_locals&) = delete;

 protected:
  PIRN_ALWAYS_INLINE ~coroutine_locals() {
    // A destructor may look at those that are older, and make others. The loop is here and not in a function that gets
    // this object: its address would be out, and it a part of every frame and image.
    while (newest_ != nullptr) [[unlikely]] {
      end(std::exchange(newest_, newest_->older));
    }
  }

 private:
  template <class T>
  friend class coroutine_local;
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

/// A variable of which each coroutine that asks for it gets its own, made from `initial` at the first `get` and
/// destroyed, in reverse order, when its coroutine has ended: a destructor may still use those that are older. Must
/// outlive those coroutines. Any number of coroutines may use one object, from several threads too; finding a variable
/// takes time linear in how many its coroutine has. A static one whose `initial` is no constant can be used only once
/// it has been constructed (aborts).
template <class T>
class coroutine_local {
 public:
  explicit constexpr coroutine_local(const T& initial = T()) : initial_(initial), constructed_(true) {}
  coroutine_local(const coroutine_local&) = delete;
  coroutine_local& operator=(const coroutine_local&) = delete;

  /// The variable of the coroutine whose yield object this is. Throws std::bad_alloc and what copying T throws, at the
  /// first call only.
  [[nodiscard]] T& get(coroutine_locals& yield) const {
    for (coroutine_locals::variable* each = yield.newest_; each != nullptr; each = each->older) {
      if (each->key == this) {
        return static_cast<holder*>(each)->value;
      }
    }
    if (!constructed_) [[unlikely]] {
      std::fputs("pirn: a coroutine_local is used before it is constructed, by a static object of another file\n",
                 stderr);
      std::abort();
    }
    auto made = std::make_unique<holder>(this, initial_);
    made->older = yield.newest_;
    yield.newest_ = made.get();
    return made.release()->value;
  }

 private:
  struct holder final : coroutine_locals::variable {
    holder(const void* of, const T& initial) : variable(of), value(initial) {}
    T value;
  };

  T initial_;
  bool constructed_;  // a static object is all zeros before
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
