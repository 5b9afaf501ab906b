// The variables of coroutines of the C API: each coroutine has an array of values, indexed by the numbers of the
// variables. Without the C++ runtime, so on malloc.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "pirn/detail/platform.hpp"
#include "pirn/pirn.h"

namespace pirn_c {

using value_end = void (*)(void* value);

/// The functions that end the values of each variable, by number. Each is written once, before its number is known.
class local_keys {
 public:
  /// Returns the number of a new variable, or -EAGAIN.
  static int make(value_end end) noexcept {
    unsigned number = made_.load(pirn::platform::memory_order_relaxed);
    do {
      if (number == PIRN_LOCAL_MAX) {
        return -EAGAIN;
      }
    } while (!made_.compare_exchange_strong(number, number + 1, pirn::platform::memory_order_relaxed));
    ends_[number].store(end, pirn::platform::memory_order_release);
    return static_cast<int>(number);
  }
  [[nodiscard]] static bool has(pirn_local key) noexcept {
    return key >= 0 && static_cast<unsigned>(key) < made_.load(pirn::platform::memory_order_relaxed);
  }
  [[nodiscard]] static value_end end_of(std::size_t key) noexcept {
    return ends_[key].load(pirn::platform::memory_order_acquire);
  }

 private:
  static inline pirn::platform::atomic<unsigned> made_{0};
  static inline pirn::platform::atomic<value_end> ends_[PIRN_LOCAL_MAX]{};
};

/// The values of one coroutine.
class locals {
 public:
  [[nodiscard]] bool any() const noexcept { return values_ != nullptr; }
  /// O(1).
  [[nodiscard]] void* get(pirn_local key) const noexcept {
    const auto index = static_cast<std::size_t>(static_cast<unsigned>(key));  // a negative one is out of range
    return index < size_ ? values_[index] : nullptr;
  }
  /// Returns 0, -EINVAL or -ENOMEM.
  int set(pirn_local key, void* value) noexcept {
    if (!local_keys::has(key)) {
      return -EINVAL;
    }
    const auto index = static_cast<std::size_t>(key);
    if (index >= size_) {
      if (value == nullptr) {
        return 0;
      }
      if (!grow(index + 1)) {
        return -ENOMEM;
      }
    }
    values_[index] = value;
    return 0;
  }
  /// Ends all values, those of the latest variable first, and those that are set meanwhile. Frees the array.
  PIRN_NOINLINE void end() noexcept {
    for (std::size_t left = size_; left != 0;) {
      void* const value = values_[--left];
      values_[left] = nullptr;
      if (const value_end run = local_keys::end_of(left); value != nullptr && run != nullptr) {
        run(value);
        left = size_;  // it may have set others
      }
    }
    std::free(values_);
    values_ = nullptr;
    size_ = 0;
  }

 private:
  bool grow(std::size_t least) noexcept {
    const std::size_t size = (least + 7) & ~std::size_t{7};
    const int before = errno;
    auto** const larger = static_cast<void**>(std::realloc(values_, size * sizeof(void*)));
    errno = before;
    if (larger == nullptr) {
      return false;
    }
    std::memset(static_cast<void*>(larger + size_), 0, (size - size_) * sizeof(void*));
    values_ = larger;
    size_ = size;
    return true;
  }

  void** values_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace pirn_c
