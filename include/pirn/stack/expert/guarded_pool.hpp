// Stacks with guards, carved out of large reservations of address space and reused in last-in-first-out order.
//
//   guarded_pool          shared by all threads; a lock, and a system call when memory is asked for or given back
//   guarded_pool::cache   owned by one worker; a handful of instructions, no lock, does not touch the stack
//
// A slab is one mapping; a slot is [guard | usable], and slots are an odd number of pages apart, so that
// corresponding pages of neighbours fall into different sets of the outer caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How a guard is made.
enum class guard_kind : std::uint8_t {
  automatic,        ///< lightweight where the kernel has it and the memory is not locked, else protected_pages
  lightweight,      ///< MADV_GUARD_INSTALL (Linux 6.13): costs no mapping, so a million stacks fit
  protected_pages,  ///< mprotect: two mappings a stack, so vm.max_map_count (65530) allows some 32 thousand
  none,             ///< no guard: an overflow silently overwrites the neighbour
};
/// A short English phrase for `kind`.
[[nodiscard]] const char* to_string(guard_kind kind) noexcept;

namespace detail {
class stack_class;
class stack_pool_state;
struct pool_cooling;
#if defined(PIRN_ASAN)
// A reused stack is unpoisoned; LeakSanitizer scans live stacks one by one, since reading a guard would fault.
void stack_handed_out(const stack& value) noexcept;
void stack_taken_back(const stack& value) noexcept;
#else
PIRN_ALWAYS_INLINE void stack_handed_out(const stack&) noexcept {}
PIRN_ALWAYS_INLINE void stack_taken_back(const stack&) noexcept {}
#endif
}  // namespace detail

/// How a guarded_pool behaves.
struct guarded_pool_options {
  /// Appears in diagnostics. Must outlive the pool.
  const char* name = "stacks";
  /// Bytes of address space below each stack that fault; a multiple of the page size, not 0 unless `guard` is `none`.
  std::size_t guard_size = std::size_t{64} << 10;
  guard_kind guard = guard_kind::automatic;  ///< how the guard is made
  /// The most stacks that may exist, idle ones included.
  std::size_t max_stacks = SIZE_MAX;
  /// The most bytes of usable stack that may exist, idle ones included.
  std::size_t max_bytes = SIZE_MAX;
  /// Bytes at the top of each stack that get memory when it is made and always keep it.
  std::size_t prefault = 0;
  /// The bytes of memory that the idle stacks of one size class may hold. Beyond it the stacks that are idle the
  /// longest give their memory back. Each stack is assumed to hold as much as the deepest that was sampled.
  std::size_t idle_high_water = std::size_t{256} << 20;
  /// How long the idle stacks beyond that keep their memory, for fibers that come soon, while a runtime uses the pool:
  /// at most twice as long, and longer while its workers are busy. 0: they give it back at once, as without a runtime,
  /// and as one does for each stack that comes back on a plain thread.
  platform::duration idle_decay = std::chrono::seconds(1);
  /// Varies `top` from stack to stack by multiples of 128 bytes, below 3 KiB; `size()` is never less than asked for.
  bool colour = true;
};

/// The contents of a size class of a pool.
struct stack_class_statistics {
  std::size_t stack_size = 0;          ///< the size asked for, rounded up to the class
  std::size_t usable_size = 0;         ///< bytes between limit and the end of the top page
  std::size_t in_use = 0;              ///< stacks with users
  std::size_t idle = 0;                ///< stacks without, in the pool and in caches
  std::size_t idle_cold = 0;           ///< of these, in the pool and without memory
  std::size_t high_water = 0;          ///< bytes: the deepest use seen so far
  std::size_t resident = 0;            ///< bytes of memory that all of them hold; only with stack_sampling::memory
  std::size_t reserved = 0;            ///< bytes of address space
  std::size_t lightweight_guards = 0;  ///< stacks with a guard of that kind
  std::size_t protected_guards = 0;    ///< stacks with a guard of that kind
};

/// The contents of a guarded_pool: the sums over its size classes, and each class.
struct guarded_pool_statistics {
  std::vector<stack_class_statistics> classes;  ///< by size, those that were ever used
  std::size_t in_use = 0;                       ///< stacks with users
  std::size_t idle = 0;                         ///< stacks without
  std::size_t resident = 0;  ///< bytes of memory that all of them hold; only with stack_sampling::memory
  std::size_t reserved = 0;  ///< bytes of address space
};

/// Whether `statistics` examines each stack's memory.
enum class stack_sampling : std::uint8_t {
  counters,  ///< only the counters, which are kept anyway
  memory,    ///< also asks the kernel about every stack (0.3 us each), which updates high-water marks
};

/// The default stack allocator. Thread-safe. All stacks must be back and all caches destroyed before it; otherwise it
/// prints its name and aborts, since those stacks would vanish under their users.
class guarded_pool {
 public:
  /// Its stacks never lie in the frame of a function.
  static constexpr bool maps_stacks = true;
  class cache;

  /// Throws std::system_error (guard_refused) for options that ask for no guard without saying `guard_kind::none`,
  /// or for a guard that is not whole pages.
  explicit guarded_pool(const guarded_pool_options& options = {});
  ~guarded_pool();
  guarded_pool(const guarded_pool&) = delete;
  guarded_pool& operator=(const guarded_pool&) = delete;

  /// Allocates a stack of at least `size` usable bytes; sizes are rounded up to classes, four to each doubling.
  [[nodiscard]] stack_result allocate(std::size_t size) noexcept;
  /// Takes back a stack that `allocate` of this pool, or of a cache of it, returned. No code may be running on it.
  void deallocate(stack value) noexcept;
  /// Takes back a stack of any pool, which the stack itself names, or one of `small_stacks`.
  static void give_back(const stack& value) noexcept;

  /// Gives all memory of the pool's idle stacks back now, whatever the policy.
  void trim() noexcept;
  /// Throws std::bad_alloc.
  [[nodiscard]] guarded_pool_statistics statistics(stack_sampling sampling = stack_sampling::counters) const;
  /// Returns the options that the pool was made with.
  [[nodiscard]] const guarded_pool_options& options() const noexcept;

 private:
  friend class cache;
  friend struct detail::pool_cooling;
  detail::stack_pool_state* state_;  ///< its own, unless stacks were out when the process ended
};
static_assert(stack_allocator<guarded_pool>);

/// Stacks of one size kept at hand by one worker. Not thread-safe, except that `guarded_pool::statistics` may count it.
/// Last in, first out: the stack used last is still in the processor's cache.
class guarded_pool::cache {
 public:
  /// Its stacks never lie in the frame of a function.
  static constexpr bool maps_stacks = true;
  /// Keeps up to `capacity` stacks of `size` bytes; with a capacity of 0 it keeps no stack, and `reserve` always fails.
  /// In a pool without a limit it keeps more once more were reserved (see `age`). Throws std::bad_alloc, or
  /// std::system_error for an invalid size.
  cache(guarded_pool& pool, std::size_t size = default_stack_size, std::size_t capacity = 1024);
  /// Hands everything back to the pool.
  ~cache();
  cache(const cache&) = delete;
  cache& operator=(const cache&) = delete;

  /// Allocates a stack of at least the cache's size; pool_limit also while all that the cache may keep are reserved.
  [[nodiscard]] PIRN_ALWAYS_INLINE stack_result allocate() noexcept {
    if (const stack_error error = reserve(); error != stack_error::none) [[unlikely]] {
      return {stack{}, error};
    }
    return {allocate_reserved(), stack_error::none};
  }

  /// Reserves a stack for one later call of `allocate_reserved`, which hands out the stack used last at that time. The
  /// errors are those of `allocate`.
  [[nodiscard]] PIRN_ALWAYS_INLINE stack_error reserve() noexcept {
    // The slow path only fills items_: if it returned a stack, compilers would always pass that through memory.
    if (!has_unreserved()) [[unlikely]] {
      if (const stack_error error = refill(); error != stack_error::none) {
        return error;
      }
    }
    reserve_cached();
    return stack_error::none;
  }
  /// Whether `reserve` needs nothing from the pool.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool has_unreserved() const noexcept {
    return count_.load(platform::memory_order_relaxed) != reserved_;
  }
  /// As `reserve`, but only if `has_unreserved` is true; cannot fail.
  PIRN_ALWAYS_INLINE void reserve_cached() noexcept { ++reserved_; }
  /// Cancels one `reserve`.
  PIRN_ALWAYS_INLINE void unreserve() noexcept { --reserved_; }
  /// Returns a stack for one earlier `reserve`; cannot fail. To be copied before the next call.
  [[nodiscard]] PIRN_ALWAYS_INLINE const stack& allocate_reserved() noexcept {
    --reserved_;
    const std::uint32_t count = count_.load(platform::memory_order_relaxed) - 1;
    const stack& value = items_[count];
    count_.store(count, platform::memory_order_relaxed);
    detail::stack_handed_out(value);
    return value;
  }
  /// As `deallocate(value)` and then `allocate_reserved`, which returns that stack again: for a stack that the cache
  /// `keeps`.
  PIRN_ALWAYS_INLINE void reuse_reserved(const stack& value) noexcept {
    --reserved_;
    detail::stack_taken_back(value);
    detail::stack_handed_out(value);
  }
  /// Returns the number of reserved stacks.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::size_t reserved() const noexcept { return reserved_; }
  /// Whether `value` is of the cache's pool and size.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool keeps(const stack& value) const noexcept { return value.owner() == class_; }
  /// Whether one more stack of the cache's size can be kept here.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool has_room() const noexcept {
    return count_.load(platform::memory_order_relaxed) != room_;
  }

  /// Takes back any stack of the cache's pool; one of another size goes to the pool. The caller may still be running on
  /// a stack of the cache's size: it stays in the cache, unchanged, until the owner next calls the cache.
  PIRN_ALWAYS_INLINE void deallocate(const stack& value) noexcept {
    const std::uint32_t count = count_.load(platform::memory_order_relaxed);
    if (count == room_ || value.owner() != class_) [[unlikely]] {
      const stack copy = value;  // a reference to `value` itself would keep it out of registers
      deallocate_slow(copy);
      return;
    }
    detail::stack_taken_back(value);
    items_[count] = value;  // in the same pieces in which it is read: else the processor cannot forward it
    count_.store(count + 1, platform::memory_order_relaxed);
  }

  /// Returns the class's size in bytes: `allocate` returns stacks of at least that size.
  [[nodiscard]] std::size_t stack_size() const noexcept;
  /// Returns the number of stacks at hand.
  [[nodiscard]] std::size_t size() const noexcept { return count_.load(platform::memory_order_relaxed); }
  /// Hands all stacks at hand that are not reserved back to the pool.
  void clear() noexcept;
  /// Shrinks a cache that keeps more than its capacity, since as many were once reserved. To be called now and then: it
  /// hands half of the stacks back when a quarter has sufficed for some hundred calls. O(stacks handed back).
  PIRN_ALWAYS_INLINE void age() noexcept {
    if (room_ != capacity_) [[unlikely]] {
      age_slow();
    }
  }
  /// As `age`, but at once and down to the capacity, as far as the stacks are not reserved.
  PIRN_ALWAYS_INLINE void shrink() noexcept {
    if (room_ != capacity_) [[unlikely]] {
      shrink_to(capacity_);
    }
  }

 private:
  friend class detail::intrusive_list<cache>;
  friend class detail::stack_pool_state;
  PIRN_NOINLINE stack_error refill() noexcept;
  PIRN_ASIDE PIRN_NOINLINE void deallocate_slow(const stack& value) noexcept;
  void give_oldest(std::uint32_t number) noexcept;
  [[nodiscard]] bool grow() noexcept;
  PIRN_NOINLINE void age_slow() noexcept;
  PIRN_NOINLINE void shrink_to(std::uint32_t room) noexcept;

  // Only the owner writes; atomic because the pool's statistics read it. No step of an exploration, since the number of
  // refills depends on the stacks that earlier programs have left in the pool.
  platform::signal_atomic<std::uint32_t> count_{0};
  std::uint32_t reserved_ = 0;  ///< of them
  std::uint32_t room_;          ///< the stacks that fit: the capacity, doubled as often as it was too small
  detail::stack_class* class_;
  std::unique_ptr<stack[]> items_;
  guarded_pool& pool_;
  std::uint32_t capacity_;
  std::uint32_t lately_ = 0;        ///< the largest `reserved_` at calls of `age`, of which old ones count for less
  detail::list_links<cache> links;  ///< of the pool's list of caches, under its lock
};

/// Returns the pool of the whole process, made at first use and never destroyed. `allocate` and `deallocate` of
/// default-sized stacks use a small cache of the calling thread. Throws std::bad_alloc, at first use only.
[[nodiscard]] guarded_pool& default_stack_pool();

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
