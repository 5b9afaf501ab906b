// The copy_stacks of the process, found by an address on them: code that has no yield object at hand finds the values
// of the coroutine that it runs in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/stack/detail/values_by_body.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

struct shared_stack_found {
  stack on{};
  values_by_body* values = nullptr;
};

/// Some of the stacks of one bucket, and the way to more.
class shared_stack_sites {
 public:
  static constexpr auto acquire = platform::memory_order_acquire;

  [[nodiscard]] static std::uintptr_t address(const stack& on) noexcept {
    return reinterpret_cast<std::uintptr_t>(on.limit());
  }
  /// False if there is no room.
  bool add(const stack& on, values_by_body& values) noexcept {
    for (site& each : all_) {
      std::uintptr_t free = 0;
      if (each.limit.load(platform::memory_order_relaxed) == 0 &&
          each.limit.compare_exchange_strong(free, written, acquire)) {
        each.size.store(on.size(), platform::memory_order_relaxed);
        each.values.store(&values, platform::memory_order_relaxed);
        each.limit.store(address(on), platform::memory_order_release);
        return true;
      }
    }
    return false;
  }
  void remove(const stack& on) noexcept {
    for (site& each : all_) {
      if (each.limit.load(platform::memory_order_relaxed) == address(on) &&
          each.size.load(platform::memory_order_relaxed) == on.size()) {
        each.limit.store(0, platform::memory_order_release);
      }
    }
  }
  /// Replaces `best` by a smaller stack that holds the position, if there is one here.
  void look(std::uintptr_t position, shared_stack_found& best) const noexcept {
    for (const site& each : all_) {
      const std::uintptr_t limit = each.limit.load(acquire);
      const std::size_t size = each.size.load(platform::memory_order_relaxed);
      if (limit > written && position - limit < size && (best.values == nullptr || size < best.on.size())) {
        auto* const low = reinterpret_cast<char*>(limit);
        best = {stack(low, low + size), each.values.load(platform::memory_order_relaxed)};
      }
    }
  }
  /// Returns the next ones, or null.
  [[nodiscard]] shared_stack_sites* next() const noexcept { return next_.load(acquire); }
  /// As `next`, but makes them, which then stay; null without memory.
  [[nodiscard]] shared_stack_sites* next_or_made() noexcept {
    shared_stack_sites* known = next();
    if (known == nullptr) {
      void* const memory = std::malloc(sizeof(shared_stack_sites));
      if (memory == nullptr) {
        return nullptr;
      }
      auto* const made = new (memory) shared_stack_sites;
      if (next_.compare_exchange_strong(known, made, platform::memory_order_acq_rel)) {
        return made;
      }
      std::free(memory);
    }
    return known;
  }

 private:
  static constexpr std::uintptr_t written = 1;  // no address of a stack
  struct site {
    platform::atomic<std::uintptr_t> limit{0};  // 0: free
    platform::atomic<std::size_t> size{0};
    platform::atomic<values_by_body*> values{nullptr};
  };

  site all_[7];
  platform::atomic<shared_stack_sites*> next_{nullptr};
};

/// A hash table by address, at a granularity for each power of two that a stack's size is rounded up to. Any thread;
/// without locks. It stays exact for the stack that the caller runs on, which neither begins nor goes meanwhile.
class shared_stacks {
 public:
  using found = shared_stack_found;

  /// Without memory the stack is not found later.
  PIRN_NOINLINE static void made(const stack& on, values_by_body& values) noexcept {
    const platform::quiet no_steps;
    const unsigned level = level_of(on.size());
    levels_.fetch_or(std::uint64_t{1} << level, platform::memory_order_relaxed);
    sites* at = &bucket(level, sites::address(on) >> level);
    while (at != nullptr && !at->add(on, values)) {
      at = at->next_or_made();
    }
  }
  PIRN_NOINLINE static void gone(const stack& on) noexcept {
    const platform::quiet no_steps;
    const unsigned level = level_of(on.size());
    for (sites* at = &bucket(level, sites::address(on) >> level); at != nullptr; at = at->next()) {
      at->remove(on);
    }
    forget();
  }
  /// Returns the smallest stack that holds the position, if any. O(1).
  [[nodiscard]] PIRN_NOINLINE static found at(std::uintptr_t position) noexcept {
    const platform::quiet no_steps;
    found best;
    for (std::uint64_t left = levels_.load(platform::memory_order_relaxed); left != 0; left &= left - 1) {
      const auto level = static_cast<unsigned>(__builtin_ctzll(left));
      const std::uintptr_t granule = position >> level;
      for (sites* at = &bucket(level, granule); at != nullptr; at = at->next()) {
        at->look(position, best);
      }
      for (sites* at = &bucket(level, granule - 1); at != nullptr; at = at->next()) {
        at->look(position, best);
      }
    }
    return best;
  }

  /// A number that changes when memory of stacks is given back to the system or to the caller: what a thread has noted
  /// of a stack before may be wrong after it.
  [[nodiscard]] static std::uint64_t forgotten() noexcept { return forgotten_.load(platform::memory_order_relaxed); }
  /// Changes that number.
  static void forget() noexcept {
    const platform::quiet no_steps;
    forgotten_.fetch_add(1, platform::memory_order_relaxed);
  }

 private:
  using sites = shared_stack_sites;

  static unsigned level_of(std::size_t size) noexcept {
    return 64 - static_cast<unsigned>(__builtin_clzll(std::uint64_t{size} - 1));
  }
  static sites& bucket(unsigned level, std::uintptr_t granule) noexcept { return table_[(granule + level) % buckets]; }
  static constexpr std::size_t buckets = 64;

  static inline sites table_[buckets];
  static inline platform::atomic<std::uint64_t> levels_{0};
  static inline platform::atomic<std::uint64_t> forgotten_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
