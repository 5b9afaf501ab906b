// The part of platform.hpp for all programs except exploring ones: atomics, fences, locks and the state of threads.
// platform_checked.hpp has the same names for exploring programs. Included by platform.hpp only.
#pragma once

#if __has_include(<sys/single_threaded.h>) && !defined(PIRN_TSAN)
#include <sys/single_threaded.h>
#define PIRN_KNOWS_ONLY_THREAD 1
#else
#define PIRN_KNOWS_ONLY_THREAD 0
#endif

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

/// Whether this is a build that explores interleavings.
inline constexpr bool exploring = false;

template <class T>
using atomic_ref = std::atomic_ref<T>;

/// Returns whether the caller is the only thread of the process, and has always been: then no other thread can come
/// between a load and a store. False where the C library does not say so.
PIRN_ALWAYS_INLINE bool only_thread() noexcept {
#if PIRN_KNOWS_ONLY_THREAD
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

/// std::atomic whose exchanges, about 20 cycles each, are plain loads and stores while there is only one thread.
template <class T>
class atomic : public std::atomic<T> {
 public:
  using std::atomic<T>::atomic;

  // NOLINTBEGIN(bugprone-derived-method-shadowing-base-method): no code uses it as a std::atomic
  PIRN_ALWAYS_INLINE T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    if (only_thread()) {
      const T before = this->load(std::memory_order_relaxed);
      this->store(value, std::memory_order_relaxed);
      return before;
    }
    return std::atomic<T>::exchange(value, order);
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE bool compare_exchange_strong(T& expected, T value, Orders... orders) noexcept {
    return only_thread() ? replace(expected, value)
                         : std::atomic<T>::compare_exchange_strong(expected, value, orders...);
  }
  /// As `compare_exchange_strong`, for a caller that has just read `before`.
  PIRN_ALWAYS_INLINE bool replace_read(T before, T value, std::memory_order order) noexcept {
    if (only_thread()) {
      this->store(value, std::memory_order_relaxed);
      return true;
    }
    return std::atomic<T>::compare_exchange_strong(before, value, order, std::memory_order_relaxed);
  }
  template <class... Orders>
  PIRN_ALWAYS_INLINE bool compare_exchange_weak(T& expected, T value, Orders... orders) noexcept {
    return only_thread() ? replace(expected, value) : std::atomic<T>::compare_exchange_weak(expected, value, orders...);
  }
  // NOLINTEND(bugprone-derived-method-shadowing-base-method)

 private:
  PIRN_ALWAYS_INLINE bool replace(T& expected, T value) noexcept {
    const T before = this->load(std::memory_order_relaxed);
    if (before != expected) [[unlikely]] {
      expected = before;
      return false;
    }
    this->store(value, std::memory_order_relaxed);
    return true;
  }
};
namespace detail {
/// How fence pairs work. A class, since only objects of classes can be initialized before all others.
struct fence_kind {
  bool asymmetric;
};
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): it is only declared
extern const fence_kind fences;
void full_fence() noexcept;
}  // namespace detail

/// The frequent side of an asymmetric Dekker pair: free where the kernel has private expedited membarrier, else a
/// full fence. Store own flag; light_fence(); load the other's flag.
PIRN_ALWAYS_INLINE void light_fence() noexcept {
  if (detail::fences.asymmetric) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    detail::full_fence();
  }
}
/// Tells the processor that the caller spins.
PIRN_ALWAYS_INLINE void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // waits about as long as a pause of x86; yield does nothing on most processors
#elif defined(__riscv)
  asm volatile(".4byte 0x0100000f");  // pause, which processors without Zihintpause take for a fence of nothing
#elif defined(__powerpc64__)
  asm volatile("or 27, 27, 27");  // yield
#endif
}

/// A lock for critical sections of a few instructions that never suspend. Spins, then yields the OS thread, since
/// its holder may have been preempted.
class spinlock {
 public:
  PIRN_ALWAYS_INLINE void lock() noexcept {
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]] {
      lock_contended();
    }
  }
  PIRN_ALWAYS_INLINE bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }
  PIRN_ALWAYS_INLINE void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  void lock_contended() noexcept;
  atomic<bool> held_{false};
};

/// Return whether an exploration may refuse stacks, and whether it refuses this one.
[[nodiscard]] PIRN_ALWAYS_INLINE constexpr bool spawn_may_fail() noexcept { return false; }
[[nodiscard]] PIRN_ALWAYS_INLINE constexpr bool spawn_fails() noexcept { return false; }

/// Returns whether an exploration stops the caller, which is about to wait.
[[nodiscard]] PIRN_ALWAYS_INLINE constexpr bool stops_here() noexcept { return false; }
/// Returns whether an exploration ends the time slice of the calling fiber, which is at a safe point.
[[nodiscard]] PIRN_ALWAYS_INLINE constexpr bool preempts_here() noexcept { return false; }

/// Ends an exploration as failed. Does nothing in this build.
inline void end_exploration(const char* /*what*/, const char* /*text*/) noexcept {}

/// Makes its scope one step in an exploring build (platform_checked.hpp). Does nothing in this build.
class quiet {
 public:
  quiet() noexcept {}
  ~quiet() {}
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;
};

namespace detail {
/// An object of a thread, to be destroyed with the thread.
struct thread_object {
  void (*destroy)(thread_object& self) noexcept = nullptr;
  thread_object* older = nullptr;
};
/// Has the object destroyed before the calling thread ends, even if its end has begun. Objects are destroyed in the
/// reverse order of the calls, as thread_local objects are.
void destroy_with_thread(thread_object& object) noexcept;
}  // namespace detail

/// An object that exists once per thread. `T` is made at the thread's first access and destroyed with the thread. It is
/// made anew if a destructor of another object of the thread accesses it later.
template <class T>
class per_thread {
 public:
  [[nodiscard]] static T& here() noexcept(std::is_nothrow_default_constructible_v<T>) {
    place& mine = of_thread;
    if (!mine.made) [[unlikely]] {
      make(mine);
    }
    return *std::launder(reinterpret_cast<T*>(mine.bytes));
  }

 private:
  // Memory without a destructor: it may still be accessed after the destructor of `T`.
  struct place : detail::thread_object {
    bool made = false;
    alignas(T) std::byte bytes[sizeof(T)] = {};
  };
  PIRN_NOINLINE static void make(place& mine) noexcept(std::is_nothrow_default_constructible_v<T>) {
    ::new (static_cast<void*>(mine.bytes)) T;
    mine.made = true;
    if constexpr (!std::is_trivially_destructible_v<T>) {
      mine.destroy = [](detail::thread_object& self) noexcept {
        auto& ended = static_cast<place&>(self);
        std::destroy_at(std::launder(reinterpret_cast<T*>(ended.bytes)));  // may access it
        ended.made = false;
      };
      detail::destroy_with_thread(mine);
    }
  }

  static inline constinit thread_local place of_thread = {};
};

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
