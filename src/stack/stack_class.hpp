// The stacks of one size in a pool: carved from slabs, kept in lists while idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pirn/detail/platform.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "stack/slab_registry.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The state that all classes of a pool share: the counts against its limits, and when memory is given back.
struct stack_quota {
  platform::atomic<std::size_t> stacks{0};
  platform::atomic<std::size_t> bytes{0};
  platform::atomic<unsigned> workers{0};  ///< that give memory back when that is due
  platform::atomic<platform::time_point> cooling_due{platform::never};
};

/// A slot is named by the number of its slab (upper bits) and its index in it. Idle slots are in one of three lists:
/// warm (memory kept), cold (memory given back) and bare (its guard could not be made: never handed out).
class stack_class {
 public:
  /// Throws std::bad_alloc.
  stack_class(const guarded_pool_options& options, stack_quota& quota, std::size_t stack_size);
  ~stack_class();
  stack_class(const stack_class&) = delete;
  stack_class& operator=(const stack_class&) = delete;

  [[nodiscard]] std::size_t stack_size() const noexcept { return stack_size_; }

  /// Fills `out` with up to `wanted` stacks, the one used last at the end; makes one if no stack is idle. Returns their
  /// number; the error is set if it is 0.
  std::uint32_t take(stack* out, std::uint32_t wanted, stack_error& error) noexcept;
  /// Takes back `count` stacks, the one used last at the end, and gives memory back as the policy demands.
  void give(const stack* stacks, std::uint32_t count) noexcept;
  /// Gives the memory of all idle stacks back.
  void trim() noexcept;
  /// Gives the memory beyond the high-water mark back now.
  void keep_to_mark() noexcept;
  /// Begins a period: the stacks beyond the mark that were idle during all of the last one give their memory back, by
  /// `cool_some`.
  void begin_period() noexcept;
  /// Gives back the memory of up to `max` of them; returns of how many.
  std::size_t cool_some(std::size_t max) noexcept;
  /// Whether more of them are left, and whether there are any beyond the mark.
  [[nodiscard]] bool has_to_cool() noexcept;
  [[nodiscard]] bool is_beyond_mark() noexcept;

  /// Idle stacks in the class, not counting those in caches.
  [[nodiscard]] std::size_t idle() noexcept;
  /// Stacks handed out, those in caches included.
  [[nodiscard]] std::size_t handed_out() noexcept;
  /// `in_use` and `idle` are those of the class alone: the pool counts the stacks in caches.
  [[nodiscard]] stack_class_statistics statistics(stack_sampling sampling) noexcept;
  /// Calls `visit` for each stack that is handed out (a scan of all slots), up to `max_count` of them.
  void visit_handed_out(void (*visit)(const stack&), std::size_t max_count) noexcept;

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  static constexpr unsigned index_bits = 20;
  static constexpr std::size_t max_slots = std::size_t{1} << index_bits;
  static constexpr std::size_t max_slabs = (std::size_t{1} << (32 - index_bits)) - 1;

  struct record {
    std::uint32_t newer;
    std::uint32_t older;
    enum : std::uint32_t { fresh = 0, out, idle } state;
  };
  struct list {
    std::uint32_t newest = nobody;
    std::uint32_t oldest = nobody;
    std::size_t count = 0;
  };
  struct slab {
    char* base = nullptr;
    std::size_t bytes = 0;
    std::uint32_t slots = 0;
    std::uint32_t carved = 0;
    guard_kind guard = guard_kind::none;
    slab_entry* entry = nullptr;
    record* records = nullptr;
  };

  [[nodiscard]] slab& slab_of(std::uint32_t id) noexcept { return *slabs_[id >> index_bits]; }
  [[nodiscard]] record& record_of(std::uint32_t id) noexcept { return slab_of(id).records[id & (max_slots - 1)]; }
  [[nodiscard]] stack stack_of(const slab& in, std::uint32_t id) noexcept;
  void push(list& to, std::uint32_t id) noexcept;
  std::uint32_t pop_newest(list& from) noexcept;
  /// Removes the idle stack that was made first and returns it. At least one must be idle.
  std::uint32_t pop_lowest() noexcept;
  std::uint32_t pop_oldest(list& from) noexcept;

  // With lock_ held.
  [[nodiscard]] stack_error reserve(slab*& from, std::uint32_t& id) noexcept;
  [[nodiscard]] stack_error add_slab() noexcept;
  [[nodiscard]] stack_error map_slab(slab& made, std::size_t slots) noexcept;
  [[nodiscard]] std::size_t warm_limit() const noexcept;

  // Without it.
  [[nodiscard]] stack_error make(stack& out) noexcept;
  /// Makes up to `wanted` stacks, whose guards one system call installs. Returns their number; 0 if `make` must do it.
  std::uint32_t make_ahead(stack* out, std::uint32_t wanted) noexcept;
  [[nodiscard]] stack_error protect(const slab& in, std::uint32_t index) noexcept;
  std::size_t cool(std::size_t keep, std::size_t max) noexcept;
  void note_depth(const stack& value) noexcept;

  const guarded_pool_options& options_;
  stack_quota& quota_;
  const std::size_t page_;
  const std::size_t stack_size_;
  std::size_t usable_;
  std::size_t stride_;

  platform::spinlock lock_;
  std::vector<std::unique_ptr<slab>> slabs_;  // never grows beyond its first capacity
  std::size_t reserved_ = 0;
  list warm_;
  list cold_;
  list bare_;
  std::uint32_t made_in_a_row_ = 0;  // stacks that were made since an idle one was last found
  std::size_t fewest_ = 0;           // the least number of warm stacks in this period
  std::size_t to_cool_ = 0;          // stacks that were idle during all of the last one, and are beyond the mark
  std::size_t cooling_ = 0;          // idle, in neither list while their memory is being given back
  std::size_t live_ = 0;             // slots with a guard

  platform::atomic<std::uint32_t> gives_{0};
  platform::atomic<std::size_t> high_water_{0};
  platform::atomic<std::size_t> lightweight_guards_{0};
  platform::atomic<std::size_t> protected_guards_{0};
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
