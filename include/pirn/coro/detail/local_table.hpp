// The values of variables of which each coroutine, fiber or thread has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pirn/context/detail/call_sites.hpp"
#include "pirn/detail/abi.hpp"
#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// One owner's value of one variable.
struct local_node {
  constexpr local_node(std::uint64_t which, void (*end)(local_node*) noexcept) noexcept : key(which), destroy(end) {}
  std::uint64_t key;
  void (*destroy)(local_node*) noexcept;
  local_node* older = nullptr;
};

/// The values of one coroutine, fiber or thread: a hash table for finding them, a list for destroying them.
class local_table {
 public:
  /// Returns the value with this key, or null. O(1).
  [[nodiscard]] local_node* find(std::uint64_t key) const noexcept {
    return capacity_ != 0 ? places_[place_of(key)] : nullptr;
  }
  /// Takes the node, whose key must not be in the table. Throws std::bad_alloc, and then does not take it.
  PIRN_NOINLINE void add(local_node* node) {
    if (2 * (count_ + 1) > capacity_) {
      grow();
    }
    ++count_;
    places_[place_of(node->key)] = node;
    node->older = newest_;
    newest_ = node;
  }
  /// Destroys all values, the newest first, and those that the destructors make.
  PIRN_NOINLINE void clear() noexcept {
    while (newest_ != nullptr) {
      // A destructor may ask for other values, and make new ones; values that are not yet destroyed are still there.
      // The place stays taken, so that values behind it are found.
      local_node* const node = newest_;
      newest_ = node->older;
      places_[place_of(node->key)] = &gone_;
      node->destroy(node);
    }
  }
  /// Destroys all values as `clear`, then the table, and makes the pointer null.
  PIRN_COLD static void end(local_table*& table) noexcept {
    table->clear();
    delete table;
    table = nullptr;
  }

 private:
  [[nodiscard]] std::size_t place_of(std::uint64_t key) const noexcept {
    // Keys are consecutive numbers: their low bits spread well. At most half of the places are taken.
    auto place = static_cast<std::size_t>(key & (capacity_ - 1));
    while (places_[place] != nullptr && places_[place]->key != key) {
      place = (place + 1) & (capacity_ - 1);
    }
    return place;
  }
  void grow() {
    const std::size_t capacity = capacity_ != 0 ? 2 * capacity_ : 8;
    places_ = std::make_unique<local_node*[]>(capacity);
    capacity_ = capacity;
    for (local_node* each = newest_; each != nullptr; each = each->older) {
      places_[place_of(each->key)] = each;
    }
  }

  static inline constinit local_node gone_{~std::uint64_t{0}, nullptr};

  std::unique_ptr<local_node*[]> places_;
  std::size_t capacity_ = 0;  ///< a power of two, or 0 at first
  std::size_t count_ = 0;
  local_node* newest_ = nullptr;
};

/// The number that identifies a variable's values. Not its address: another variable may come to lie there while the
/// values live on. Assigned at the first use and not by a constructor: a static object of another file may use the
/// variable before that would run.
class local_key {
 public:
  constexpr local_key() noexcept = default;
  /// Returns 0, which no value has, before the first use.
  [[nodiscard]] std::uint64_t if_any() const noexcept { return number_.load(platform::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() noexcept {
    const std::uint64_t known = if_any();
    return known != 0 ? known : make();
  }

 private:
  PIRN_NOINLINE std::uint64_t make() noexcept {
    std::uint64_t key = 0;
    const std::uint64_t mine = made_.fetch_add(1, platform::memory_order_relaxed) + 1;
    return number_.compare_exchange_strong(key, mine, platform::memory_order_relaxed) ? mine : key;
  }

  static inline constinit platform::signal_atomic<std::uint64_t> made_{0};

  platform::signal_atomic<std::uint64_t> number_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
