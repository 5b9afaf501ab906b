// A number that the fibers of one worker change by plain loads and stores, and others not at all or once.
#pragma once

#include <cstdint>

#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A word with the interface of a `platform::atomic`, biased towards the worker of the first fiber that uses it. Fibers
/// of that worker exchange it by a plain store. The first call from elsewhere ends the bias permanently.
///
///      unbiased --first use, by a fiber of W--> W --a call from elsewhere--> W, revoking --heavy fence--> shared
///         |                                                                                                  ^
///         +--------------first use by a thread, or fences that are no cheaper than an exchange---------------+
///
/// As long as the word is biased, `here_` is its value, and only the thread of W writes there. A revoker sets the bias
/// to `revoking`, executes a heavy fence, and takes what `here_` then is for the value of the shared word, without a
/// wait for W. W exchanges by three steps: a store to `here_`, a light fence, and a second look at the bias. If the
/// bias is still there, the revoker's fence comes after the store, so that the revoker sees the value. If not, the
/// store came too late or just in time. Which of them, W learns from the value that the revoker kept: W has written
/// nothing else since. A store that came too late has changed nothing, and W exchanges the shared word instead.
///
/// Dolan, Muralidharan and Gregg 2013, "Compiler support for lightweight context switching", 6.3, bias locks. Here it
/// is the word that is biased, so that no owner has to give way. The fences are those of an asymmetric Dekker (Dice,
/// Huang and Yang 2001). Unlike an atomic, the word must outlive the return of every exchange.
template <class T>
class biased_word {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as the atomic's
  constexpr biased_word(T value) noexcept : here_(value), word_(value) {}
  biased_word(const biased_word&) = delete;
  biased_word& operator=(const biased_word&) = delete;

  [[nodiscard]] PIRN_ALWAYS_INLINE T load(std::memory_order order) noexcept {
    const std::uintptr_t bias = bias_.load(platform::memory_order_acquire);
    if (bias == this_worker()) [[likely]] {
      return here_.load(platform::memory_order_relaxed);  // a revoker that has come meanwhile found the same value
    }
    if (bias != shared) [[unlikely]] {
      return load_slow(order);
    }
    return word_.load(order);
  }
  /// A failure is ordered as a relaxed load.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool compare_exchange_weak(
      T& expected, T value, std::memory_order order,
      std::memory_order /*failure*/ = platform::memory_order_relaxed) noexcept {
    const std::uintptr_t here = this_worker();
    // Acquire: a caller that finds it shared finds the word as it was then.
    const std::uintptr_t bias = bias_.load(platform::memory_order_acquire);
    if (bias == here) [[likely]] {
      if (const T seen = here_.load(platform::memory_order_relaxed); seen != expected) [[unlikely]] {
        expected = seen;
        return false;
      }
      // Release: the revoker, and a caller that takes a permit from it, see what came before.
      here_.store(value, platform::memory_order_release);
      // Pairs with the heavy fence in `use_slow`: here the value goes out and then the bias is read. The revoker stores
      // `revoking` and then, behind the heavy fence, reads the value.
      platform::light_fence();
      if (bias_.load(platform::memory_order_relaxed) == here) [[likely]] {
        return true;
      }
      return was_in_time(value) || word_.compare_exchange_weak(expected, value, order, platform::memory_order_relaxed);
    }
    if (bias != shared) [[unlikely]] {
      expected = load_slow(platform::memory_order_relaxed);
      return false;
    }
    return word_.compare_exchange_weak(expected, value, order, platform::memory_order_relaxed);
  }
  T fetch_add(T by, std::memory_order order) noexcept {
    T seen = load(platform::memory_order_relaxed);
    while (!compare_exchange_weak(seen, seen + by, order)) {
    }
    return seen;
  }
  T fetch_and(T with, std::memory_order order) noexcept {
    T seen = load(platform::memory_order_relaxed);
    while (!compare_exchange_weak(seen, seen & with, order)) {
    }
    return seen;
  }

  /// Returns whether the word is biased towards a worker. A hint.
  [[nodiscard]] bool biased() const noexcept {
    const std::uintptr_t bias = bias_.load(platform::memory_order_relaxed);
    return bias > unbiased && (bias & revoking) == 0;
  }

 private:
  // The bias is one of these, or the address of a worker, to which `revoking` may be added. It changes under `lock_`.
  static constexpr std::uintptr_t revoking = 1;
  static constexpr std::uintptr_t shared = 2;  ///< permanently
  static constexpr std::uintptr_t unbiased = 4;

  /// Returns null, which no bias is, on a plain thread.
  [[nodiscard]] static PIRN_ALWAYS_INLINE std::uintptr_t this_worker() noexcept {
    return reinterpret_cast<std::uintptr_t>(platform::current_worker());
  }
  /// Begins or ends the bias, and returns the value. A weak exchange begins anew after that.
  PIRN_DEFINED_ONCE T load_slow(std::memory_order order) noexcept;
  /// Called by W, which has found its bias gone right after it has stored `value`: whether the revoker saw that.
  [[nodiscard]] PIRN_DEFINED_ONCE bool was_in_time(T value) noexcept;

  platform::atomic<std::uintptr_t> bias_{unbiased};
  platform::atomic<T> here_;  ///< counts while the word is biased; written by the thread of W
  platform::atomic<T> word_;  ///< counts when it is shared
  T found_{};                 ///< by the revoker; under `lock_`
  platform::spinlock lock_;
};

/// Of objects that belong to a worker, and that others may use too.
struct biased_domain : shared_domain {
  template <class T>
  using atomic = biased_word<T>;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
