// The pool of guarded stacks that all threads share, its size classes, and the caches in front of it.
#include "pirn/stack/expert/guarded_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

#include "detail/exiting.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/time.hpp"
#include "pirn/stack/expert/small_stacks.hpp"
#include "stack/address_space.hpp"
#include "stack/describe.hpp"
#include "stack/pool_cooling.hpp"
#include "stack/stack_class.hpp"

#if defined(PIRN_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

const char* to_string(guard_kind kind) noexcept {
  switch (kind) {
    case guard_kind::automatic:
      return "automatic";
    case guard_kind::lightweight:
      return "lightweight";
    case guard_kind::protected_pages:
      return "protected pages";
    case guard_kind::none:
      return "none";
  }
  return "unknown";
}

namespace detail {

#if defined(PIRN_ASAN)
void stack_handed_out(const stack& value) noexcept {
  // A fiber that never returned from its frames left their red zones poisoned.
  __asan_unpoison_memory_region(value.limit(), value.size());
  __lsan_register_root_region(value.limit(), value.size());
}
void stack_taken_back(const stack& value) noexcept { __lsan_unregister_root_region(value.limit(), value.size()); }
#endif

namespace {
// Classes are 2^n * {4, 5, 6, 7} / 4 bytes, n from 12 (4 KiB) to 36 (64 GiB), or to 30 in a 32-bit address space.
constexpr unsigned smallest_bits = 12;
constexpr unsigned largest_bits = sizeof(void*) > 4 ? 36 : 30;
constexpr unsigned steps = 4;
constexpr std::size_t class_count = std::size_t{largest_bits - smallest_bits} * steps + 1;

constexpr std::size_t size_of_class(std::size_t index) noexcept {
  return (std::size_t{steps} + index % steps) << (smallest_bits - 2 + index / steps);
}

/// The smallest class of at least `size` bytes, or class_count.
constexpr std::size_t class_index(std::size_t size) noexcept {
  if (size <= (std::size_t{1} << smallest_bits)) {
    return size == 0 ? class_count : 0;
  }
  if (size > (std::size_t{1} << largest_bits)) {
    return class_count;
  }
  const unsigned bits = static_cast<unsigned>(std::bit_width(size - 1)) - 1;  // 2^bits < size <= 2^(bits + 1)
  const std::size_t step = std::size_t{1} << (bits - 2);
  return std::size_t{bits - smallest_bits} * steps + (size - (std::size_t{1} << bits) + step - 1) / step;
}
static_assert(class_index(4096) == 0 && class_index(4097) == 1 && size_of_class(1) == 5120);
static_assert(size_of_class(class_index(65536)) == 65536 && size_of_class(class_index(65537)) == 81920);
static_assert(class_index(std::size_t{1} << largest_bits) == class_count - 1);
}  // namespace

/// The implementation of a guarded_pool.
class stack_pool_state {
 public:
  explicit stack_pool_state(const guarded_pool_options& requested) : options(requested) {}
  ~stack_pool_state() {
    for (auto& each : classes_) {
      delete each.load(platform::memory_order_acquire);
    }
  }

  /// Whether the process ends while stacks or caches are out: then code still runs on them, perhaps the caller.
  [[nodiscard]] bool needed_in_exit() noexcept {
    const bool out = !caches_.empty() || std::ranges::any_of(classes_, [](auto& each) {
      stack_class* const one = each.load(platform::memory_order_acquire);
      return one != nullptr && one->handed_out() != 0;
    });
    return out && platform::exiting();
  }
  /// Unmapping a stack on which code may still run would end in a fault far from its cause.
  void check_all_back() noexcept {
    for (auto& each : classes_) {
      stack_class* const one = each.load(platform::memory_order_acquire);
      const std::size_t missing = one == nullptr ? 0 : one->handed_out();
      if (missing == 0) {
        continue;
      }
      std::fprintf(stderr, "pirn: the stack pool \"%s\" is destroyed while %zu of its stacks of %zu bytes are %s:\n",
                   options.name, missing, one->stack_size(), !caches_.empty() ? "in use or in a cache" : "in use");
      constexpr std::size_t max_count = 8;
      one->visit_handed_out(
          [](const stack& value) {
            char text[160];
            describe_stack(value.limit(), value.top(), nullptr, text, sizeof text);
            std::fprintf(stderr, "  %s, at [%p, %p)\n", text, value.limit(), value.top());
          },
          max_count);
      std::abort();
    }
    if (!caches_.empty()) {
      fail_contract("the stack pool \"", options.name, "\" is destroyed before one of its caches");
    }
  }

  /// The class for stacks of `size` bytes, made at first use.
  stack_class* class_for(std::size_t size, stack_error& error) noexcept {
    const platform::quiet one_step;
    const std::size_t index = class_index(size);
    if (index == class_count) {
      error = stack_error::invalid_size;
      return nullptr;
    }
    stack_class* found = classes_[index].load(platform::memory_order_acquire);
    return found != nullptr ? found : make_class(index, error);
  }

  void attach(guarded_pool::cache& added) noexcept {
    const platform::quiet one_step;
    const platform::spin_guard guard(lock_);
    caches_.push_front(added);
  }

  void detach(guarded_pool::cache& removed) noexcept {
    const platform::quiet one_step;
    const platform::spin_guard guard(lock_);
    caches_.remove(removed);
  }

  void trim() noexcept {
    for_each_class([](stack_class& each) { each.trim(); });
  }

  guarded_pool_statistics statistics(stack_sampling sampling) {
    guarded_pool_statistics all;
    for (auto& each : classes_) {
      stack_class* const one = each.load(platform::memory_order_acquire);
      if (one == nullptr) {
        continue;
      }
      stack_class_statistics stats = one->statistics(sampling);
      const std::size_t cached = std::min(in_caches(one), stats.in_use);
      stats.in_use -= cached;
      stats.idle += cached;
      all.in_use += stats.in_use;
      all.idle += stats.idle;
      all.resident += stats.resident;
      all.reserved += stats.reserved;
      all.classes.push_back(stats);
    }
    return all;
  }

  void begin_cooling() noexcept { quota_.workers.fetch_add(1, platform::memory_order_acq_rel); }
  void end_cooling() noexcept {
    if (quota_.workers.fetch_sub(1, platform::memory_order_acq_rel) == 1) {
      for_each_class([](stack_class& each) { each.keep_to_mark(); });
    }
  }
  [[nodiscard]] platform::time_point cooling_due() const noexcept {
    return quota_.cooling_due.load(platform::memory_order_relaxed);
  }
  void cool(platform::time_point now, std::size_t max, platform::duration pause) noexcept {
    if (cools_.exchange(true, platform::memory_order_acquire)) {
      return;
    }
    bool more = false;
    for_each_class([&](stack_class& each) {
      if (!cooling_) {
        each.begin_period();
      }
      max -= each.cool_some(max);
      more |= each.has_to_cool();
    });
    cooling_ = more;
    quota_.cooling_due.store(more ? now + pause : platform::never, platform::memory_order_relaxed);
    if (!more) {
      // After that store: a stack that comes back from here on sees it, and says so itself.
      for_each_class([&](stack_class& each) {
        if (each.is_beyond_mark()) {
          quota_.cooling_due.store(platform::later(now, options.idle_decay), platform::memory_order_relaxed);
        }
      });
    }
    cools_.store(false, platform::memory_order_release);
  }

  const guarded_pool_options options;

 private:
  template <class Visit>
  void for_each_class(const Visit& visit) noexcept {
    for (auto& each : classes_) {
      if (stack_class* const one = each.load(platform::memory_order_acquire)) {
        visit(*one);
      }
    }
  }
  stack_class* make_class(std::size_t index, stack_error& error) noexcept {
    try {
      auto made = std::make_unique<stack_class>(options, quota_, size_of_class(index));
      stack_class* other = nullptr;
      if (classes_[index].compare_exchange_strong(other, made.get(), platform::memory_order_acq_rel)) {
        return made.release();
      }
      return other;
    } catch (const std::bad_alloc&) {
      error = stack_error::out_of_memory;
      return nullptr;
    }
  }

  std::size_t in_caches(const stack_class* wanted) noexcept {
    const platform::spin_guard guard(lock_);
    std::size_t count = 0;
    for (const guarded_pool::cache& each : caches_) {
      count += each.class_ == wanted ? each.size() : 0;
    }
    return count;
  }

  stack_quota quota_;
  platform::atomic<bool> cools_{false};  ///< a worker is at it
  bool cooling_ = false;                 ///< whether a period's stacks are not all done; of that worker
  platform::atomic<stack_class*> classes_[class_count]{};
  platform::spinlock lock_;
  intrusive_list<guarded_pool::cache> caches_;
};

namespace {
/// The calling thread's cache of default-sized stacks of the default pool, or null while it is being made or emptied.
class thread_cache {
 public:
  guarded_pool::cache* get() noexcept {
    if (state_ == unmade) {
      make();
    }
    return state_ == made ? &cache_ : nullptr;
  }
  thread_cache() noexcept {}
  ~thread_cache() {
    if (state_ == made) {
      state_ = gone;
      cache_.~cache();
    }
  }
  thread_cache(const thread_cache&) = delete;
  thread_cache& operator=(const thread_cache&) = delete;

 private:
  static constexpr std::size_t capacity = 64;
  void make() noexcept {
    state_ = gone;
    report_overflows_here();
    try {
      new (&cache_) guarded_pool::cache(default_stack_pool(), default_stack_size, capacity);
      state_ = made;
    } catch (const std::exception&) {
      state_ = unmade;  // no memory for it now: the pool itself serves
    }
  }

  enum : std::uint8_t { unmade, made, gone } state_ = unmade;
  union {
    guarded_pool::cache cache_;
  };
};

/// Out of line, so that no compiler keeps the thread-local address across a switch. Null in an exploration: the cache
/// would outlive each execution, and the choice of the next stack would depend on earlier executions.
PIRN_NOINLINE guarded_pool::cache* cache_of_thread() noexcept {
  if (platform::exploring) {
    return nullptr;
  }
  thread_cache& mine = platform::per_thread<thread_cache>::here();
  asm volatile("");
  return mine.get();
}

platform::atomic<guarded_pool*> the_default_pool{nullptr};
}  // namespace

}  // namespace detail

// ---- guarded_pool -------------------------------------------------------------------------------------------------

guarded_pool::guarded_pool(const guarded_pool_options& options) {
  if (options.guard != guard_kind::none && (options.guard_size == 0 || options.guard_size % detail::page_size() != 0)) {
    throw std::system_error(stack_error::guard_refused, options.name);
  }
  state_ = new detail::stack_pool_state(options);
}

guarded_pool::~guarded_pool() {
  if (!state_->needed_in_exit()) {
    state_->check_all_back();
    delete state_;
  }
}

stack_result guarded_pool::allocate(std::size_t size) noexcept {
  const platform::quiet one_step;
  if (this == detail::the_default_pool.load(platform::memory_order_relaxed)) {
    cache* const mine = detail::cache_of_thread();
    if (mine != nullptr && size <= mine->stack_size() && size > mine->stack_size() / 2) {
      return mine->allocate();
    }
  }
  stack_result result;
  if (detail::stack_class* const from = state_->class_for(size, result.error)) {
    if (from->take(&result.value, 1, result.error) != 0) {
      detail::stack_handed_out(result.value);
    }
  }
  return result;
}

void guarded_pool::deallocate(stack value) noexcept {
  const platform::quiet one_step;
  if (this == detail::the_default_pool.load(platform::memory_order_relaxed)) {
    if (cache* const mine = detail::cache_of_thread()) {
      mine->deallocate(value);
      return;
    }
  }
  give_back(value);
}

void guarded_pool::give_back(const stack& value) noexcept {
  if (small_stacks::has(value)) {
    small_stacks::give_back(value);
    return;
  }
  static_cast<detail::stack_class*>(value.owner())->give(&value, 1);
  detail::stack_taken_back(value);
}

void guarded_pool::trim() noexcept { state_->trim(); }

namespace detail {
void pool_cooling::begin(guarded_pool& pool) noexcept {
  if (!platform::exploring) {
    pool.state_->begin_cooling();
  }
}
void pool_cooling::end(guarded_pool& pool) noexcept {
  if (!platform::exploring) {
    pool.state_->end_cooling();
  }
}
platform::time_point pool_cooling::next(const guarded_pool& pool) noexcept {
  return platform::exploring ? platform::never : pool.state_->cooling_due();
}
void pool_cooling::step(guarded_pool& pool, platform::time_point now, bool busy) noexcept {
  // Some 10 us of a busy worker's millisecond.
  constexpr std::size_t busy_stacks = 16;
  constexpr std::size_t idle_stacks = 128;
  pool.state_->cool(now, busy ? busy_stacks : idle_stacks,
                    busy ? std::chrono::milliseconds(1) : platform::duration::zero());
}
}  // namespace detail

guarded_pool_statistics guarded_pool::statistics(stack_sampling sampling) const { return state_->statistics(sampling); }

const guarded_pool_options& guarded_pool::options() const noexcept { return state_->options; }

guarded_pool& default_stack_pool() {
  static guarded_pool* const pool = [] {
    guarded_pool_options options;
    options.name = "default";
    auto* const made = new guarded_pool(options);
    detail::the_default_pool.store(made, platform::memory_order_relaxed);
    return made;
  }();
  return *pool;
}

// ---- cache --------------------------------------------------------------------------------------------------------

namespace {
detail::stack_class* class_or_throw(detail::stack_pool_state& state, std::size_t size) {
  stack_error error = stack_error::none;
  detail::stack_class* const found = state.class_for(size, error);
  if (found == nullptr) {
    throw std::system_error(error, "guarded_pool::cache");
  }
  return found;
}
}  // namespace

guarded_pool::cache::cache(guarded_pool& pool, std::size_t size, std::size_t capacity)
    : room_(capacity == 0 ? 0 : static_cast<std::uint32_t>(std::clamp<std::size_t>(capacity, 2, UINT32_MAX))),
      class_(class_or_throw(*pool.state_, size)),
      items_(std::make_unique<stack[]>(room_)),
      pool_(pool),
      capacity_(room_) {
  pool_.state_->attach(*this);
}

guarded_pool::cache::~cache() {
  clear();
  pool_.state_->detach(*this);
}

std::size_t guarded_pool::cache::stack_size() const noexcept { return class_->stack_size(); }

void guarded_pool::cache::clear() noexcept { give_oldest(count_.load(platform::memory_order_relaxed) - reserved_); }

void guarded_pool::cache::give_oldest(std::uint32_t number) noexcept {
  const std::uint32_t count = count_.load(platform::memory_order_relaxed);
  constexpr std::uint32_t batch = 256;  // other threads wait for the pool's lock meanwhile
  for (std::uint32_t given = 0; given < number; given += batch) {
    class_->give(items_.get() + given, std::min(batch, number - given));
  }
  std::move(items_.get() + number, items_.get() + count, items_.get());
  count_.store(count - number, platform::memory_order_relaxed);
}

stack_error guarded_pool::cache::refill() noexcept {
  // The number of stacks to take depends on earlier programs, which an exploration must not see.
  constexpr std::uint32_t batch = platform::exploring ? 1 : 64;
  const std::uint32_t count = count_.load(platform::memory_order_relaxed);
  if (count == room_ && !grow()) {
    return stack_error::pool_limit;
  }
  stack_error error = stack_error::none;
  const std::uint32_t more = class_->take(items_.get() + count, std::min(batch, room_ - count), error);
  count_.store(count + more, platform::memory_order_relaxed);
  return error;
}

void guarded_pool::cache::deallocate_slow(const stack& value) noexcept {
  if (value.owner() != class_ || reserved_ == room_) {
    give_back(value);
    return;
  }
  // The older half goes back: `value` and the stacks that were used with it stay.
  give_oldest(std::min(room_ / 2, room_ - reserved_));
  deallocate(value);
}

bool guarded_pool::cache::grow() noexcept {
  const guarded_pool_options& options = pool_.options();
  const bool limited =
      options.max_stacks != SIZE_MAX || options.max_bytes != SIZE_MAX;  // then others may need the idle stacks
  if (room_ == 0 || room_ > UINT32_MAX / 2 || limited) {
    return false;
  }
  std::unique_ptr<stack[]> larger(new (std::nothrow) stack[2 * std::size_t{room_}]);
  if (larger == nullptr) {
    return false;
  }
  std::move(items_.get(), items_.get() + count_.load(platform::memory_order_relaxed), larger.get());
  items_ = std::move(larger);
  room_ *= 2;
  lately_ = room_;
  return true;
}

void guarded_pool::cache::age_slow() noexcept {
  lately_ = std::max(reserved_, lately_ - (lately_ + 127) / 128);
  if (lately_ < room_ / 4) {
    shrink_to(room_ / 2);
  }
}

void guarded_pool::cache::shrink_to(std::uint32_t room) noexcept {
  while (room < reserved_) {
    room *= 2;
  }
  if (const std::uint32_t count = count_.load(platform::memory_order_relaxed); count > room) {
    give_oldest(count - room);
  }
  room_ = room;  // without memory for a smaller array the old one serves
  if (std::unique_ptr<stack[]> smaller(new (std::nothrow) stack[room]); smaller != nullptr) {
    std::move(items_.get(), items_.get() + count_.load(platform::memory_order_relaxed), smaller.get());
    items_ = std::move(smaller);
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
