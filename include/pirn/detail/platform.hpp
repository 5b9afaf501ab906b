// The seam for everything nondeterministic: atomics, fences, clocks, random numbers, OS threads, parking and the
// current worker. No other header or source of pirn names those of std:: or the kernel. So a build that explores
// interleavings replaces only the code behind this file.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

#include "pirn/detail/abi.hpp"
#include "pirn/detail/thread_word.hpp"
#if defined(PIRN_SIM)
#include "pirn/detail/platform_checked.hpp"  // IWYU pragma: export
#else
#include "pirn/detail/platform_plain.hpp"  // IWYU pragma: export
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

// ---- atomics and fences ---------------------------------------------------------------------------------------

using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

/// Orders memory operations of this thread against a handler that interrupts it (a compiler barrier).
PIRN_ALWAYS_INLINE void signal_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// For words that a signal handler exchanges too; never a scheduling point of an exploration.
template <class T>
using signal_atomic = std::atomic<T>;
/// Executes a full fence on every thread of the process (a system call, about 0.3 us): the rare side of the pair with
/// `light_fence`.
void heavy_fence() noexcept;
/// Returns whether the pair is backed by membarrier. False under ThreadSanitizer, which does not understand it.
bool fences_are_asymmetric() noexcept;

/// Holds a spinlock, or anything that locks like one, for the duration of a scope.
template <class Lock>
class spin_guard {
 public:
  explicit PIRN_ALWAYS_INLINE spin_guard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  PIRN_ALWAYS_INLINE ~spin_guard() { lock_.unlock(); }
  spin_guard(const spin_guard&) = delete;
  spin_guard& operator=(const spin_guard&) = delete;

 private:
  Lock& lock_;
};

// ---- clocks and random numbers --------------------------------------------------------------------------------

/// The clock of all deadlines in pirn.
using clock = std::chrono::steady_clock;
using time_point = clock::time_point;
using duration = clock::duration;
/// A deadline that never comes.
inline constexpr time_point never = time_point::max();

time_point now() noexcept;
/// Returns a seed that differs from run to run.
std::uint64_t random_seed() noexcept;

/// A small random number generator (Steele, Lea and Flood 2014, SplitMix64): one per user, not shared.
class random {
 public:
  explicit random(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// ---- OS threads and parking -----------------------------------------------------------------------------------

/// An OS thread that runs `entry(argument)`. Movable; must be joined before it is destroyed.
class thread {
 public:
  thread() noexcept = default;
  /// Starts a thread; the error says why none could be started.
  [[nodiscard]] std::error_code start(void (*entry)(void*), void* argument, const char* name) noexcept;
  void join() noexcept;
  /// Restricts a started thread to one CPU.
  [[nodiscard]] std::error_code pin(unsigned cpu) noexcept;
  [[nodiscard]] pthread_t handle() const noexcept { return handle_; }

 private:
  pthread_t handle_{};
};

/// Returns on how many CPUs the calling thread, and each thread that it starts, may run; at least 1.
unsigned available_cpus() noexcept;
/// Returns one of these CPUs by its index, counted from 0; nothing if there are fewer.
std::optional<unsigned> available_cpu(unsigned index) noexcept;
/// Returns how often the kernel has taken the CPU from the calling thread to give it to another.
long times_preempted() noexcept;
/// Returns the kernel's id of the calling thread.
int thread_id() noexcept;
/// Lets another OS thread run, because the caller waits for it.
void yield_thread() noexcept;
/// As `yield_thread`, for a caller that could also continue.
void yield_thread_hint() noexcept;
/// Returns how many threads the process has at this moment; 0 if the kernel does not say.
unsigned thread_count() noexcept;

/// Blocks the calling OS thread while `word` holds `expected`, until a `futex_wake` on it or the deadline; may
/// return spuriously. Returns false once the deadline has passed.
bool futex_wait(const signal_atomic<std::uint32_t>& word, std::uint32_t expected, time_point deadline = never) noexcept;
/// Wakes up to `count` threads blocked on `word`. Only the address is used: the word itself may be gone already.
void futex_wake(const signal_atomic<std::uint32_t>* word, int count) noexcept;

// ---- the current worker ---------------------------------------------------------------------------------------

namespace detail {
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): it is null
extern __thread void* current_worker_slot asm("pirn_current_worker_" PIRN_ABI_NAME)
    __attribute__((tls_model("initial-exec")));
}  // namespace detail

/// As `current_worker`, through a function that is never inlined: for compilers and instruction sets without the asm
/// below.
void* current_worker_out_of_line() noexcept;
/// Returns the worker that this OS thread has registered, or null. Reads it by an asm, relative to the thread pointer:
/// compilers may cache an ordinary thread-local address across a switch, but not this.
PIRN_ALWAYS_INLINE void* current_worker() noexcept {
#if defined(__x86_64__) && !defined(__ILP32__)
  void* worker;
  asm volatile("movq pirn_current_worker_" PIRN_ABI_NAME
               "@gottpoff(%%rip), %0\n\t"
               "movq %%fs:(%0), %0"
               : "=r"(worker));
  return worker;
#elif defined(PIRN_READ_THREAD_WORD)
  void* worker;
  PIRN_READ_THREAD_WORD(worker, "pirn_current_worker_" PIRN_ABI_NAME);
  return worker;
#else
  return current_worker_out_of_line();
#endif
}

void set_current_worker(void* worker) noexcept;

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
