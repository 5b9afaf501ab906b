// Makes the stacks of one size, keeps the idle ones in lists, and gives their memory back.
#include "stack/stack_class.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/time.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "stack/address_space.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {
// A 32-bit address space has no room for more than a few dozen slabs of a few MiB.
constexpr bool wide = sizeof(void*) > 4;
constexpr std::size_t first_slab = std::size_t{wide ? 64 : 4} << 20;
constexpr std::size_t largest_slab = std::size_t{wide ? 16 * 1024 : 128} << 20;
}  // namespace

stack_class::stack_class(const guarded_pool_options& options, stack_quota& quota, std::size_t stack_size)
    : options_(options), quota_(quota), page_(page_size()), stack_size_(stack_size) {
  const std::size_t guard = options.guard == guard_kind::none ? 0 : options.guard_size;
  usable_ = (stack_size + (options.colour ? colour_span : 0) + page_ - 1) / page_ * page_;
  if ((guard + usable_) / page_ % 2 == 0) {
    usable_ += page_;  // slots an odd number of pages apart
  }
  stride_ = guard + usable_;
  slabs_.reserve(max_slabs);
}

stack_class::~stack_class() {
  for (const auto& each : slabs_) {
    unregister_slab(each->entry);
    release_range(each->base, each->bytes);
    std::free(each->records);
  }
  quota_.stacks.fetch_sub(live_, platform::memory_order_relaxed);
  quota_.bytes.fetch_sub(live_ * usable_, platform::memory_order_relaxed);
}

stack stack_class::stack_of(const slab& in, std::uint32_t id) noexcept {
  const std::uint32_t index = id & (max_slots - 1);
  char* const end = in.base + (index + 1) * stride_;
  return {end - usable_, end - (options_.colour ? colour_of(index) : 0), this, id};
}

// ---- lists --------------------------------------------------------------------------------------------------------

void stack_class::push(list& to, std::uint32_t id) noexcept {
  record& entry = record_of(id);
  entry.state = record::idle;
  entry.newer = nobody;
  entry.older = to.newest;
  (to.newest == nobody ? to.oldest : record_of(to.newest).newer) = id;
  to.newest = id;
  ++to.count;
}

std::uint32_t stack_class::pop_newest(list& from) noexcept {
  const std::uint32_t id = from.newest;
  record& entry = record_of(id);
  from.newest = entry.older;
  (from.newest == nobody ? from.oldest : record_of(from.newest).newer) = nobody;
  --from.count;
  entry.state = record::out;
  return id;
}

std::uint32_t stack_class::pop_lowest() noexcept {
  list* from = nullptr;
  std::uint32_t lowest = nobody;
  for (list* const each : {&warm_, &cold_}) {
    for (std::uint32_t id = each->newest; id != nobody; id = record_of(id).older) {
      if (id < lowest) {
        lowest = id;
        from = each;
      }
    }
  }
  record& entry = record_of(lowest);
  (entry.newer == nobody ? from->newest : record_of(entry.newer).older) = entry.older;
  (entry.older == nobody ? from->oldest : record_of(entry.older).newer) = entry.newer;
  --from->count;
  entry.state = record::out;
  return lowest;
}

std::uint32_t stack_class::pop_oldest(list& from) noexcept {
  const std::uint32_t id = from.oldest;
  from.oldest = record_of(id).newer;
  (from.oldest == nobody ? from.newest : record_of(from.oldest).older) = nobody;
  --from.count;
  return id;
}

// ---- making stacks ------------------------------------------------------------------------------------------------

stack_error stack_class::map_slab(slab& made, std::size_t slots) noexcept {
  made.bytes = slots * stride_;
  made.slots = static_cast<std::uint32_t>(slots);
  stack_error error = stack_error::none;
  made.base = reserve_range(made.bytes, error);
  if (made.base == nullptr) {
    return error;
  }
  const std::size_t guard = stride_ - usable_;
  made.guard = options_.guard;
  if (options_.guard == guard_kind::automatic || options_.guard == guard_kind::lightweight) {
    error = install_guard(made.base, guard);
    made.guard = error == stack_error::none ? guard_kind::lightweight : guard_kind::protected_pages;
    if (error == stack_error::guard_refused && options_.guard == guard_kind::automatic) {
      error = stack_error::none;
    }
  }
  if (error == stack_error::none && made.guard != guard_kind::protected_pages) {
    error = make_usable(made.base, made.bytes);
  }
  if (error == stack_error::none) {
    made.records = static_cast<record*>(std::calloc(slots, sizeof(record)));
    error = made.records == nullptr ? stack_error::out_of_memory : stack_error::none;
  }
  if (error == stack_error::none) {
    made.entry = register_slab(
        {reinterpret_cast<std::uintptr_t>(made.base), stride_, guard, made.slots, stack_size_, options_.colour});
    error = made.entry == nullptr ? stack_error::pool_limit : stack_error::none;
  }
  if (error != stack_error::none) {
    std::free(made.records);
    release_range(made.base, made.bytes);
  }
  return error;
}

stack_error stack_class::add_slab() noexcept {
  if (slabs_.size() == max_slabs) {
    return stack_error::pool_limit;
  }
  std::unique_ptr<slab> made(new (std::nothrow) slab);
  if (!made) {
    return stack_error::out_of_memory;
  }
  // Each slab is as large as all before it together, or smaller where the kernel refuses that much.
  const std::size_t bytes = std::clamp(reserved_, first_slab, largest_slab);
  std::size_t slots = std::clamp<std::size_t>(bytes / stride_, 1, max_slots);
  stack_error error = map_slab(*made, slots);
  while ((error == stack_error::address_space || error == stack_error::out_of_memory) && slots > 1) {
    slots /= 2;
    error = map_slab(*made, slots);
  }
  if (error == stack_error::none) {
    made->entry->high_water.store(high_water_.load(platform::memory_order_relaxed), platform::memory_order_relaxed);
    reserved_ += made->bytes;
    slabs_.push_back(std::move(made));
  }
  return error;
}

stack_error stack_class::reserve(slab*& from, std::uint32_t& id) noexcept {
  if (bare_.count != 0) {
    id = pop_newest(bare_);
    from = &slab_of(id);
    return stack_error::none;
  }
  if (slabs_.empty() || slabs_.back()->carved == slabs_.back()->slots) {
    if (const stack_error error = add_slab(); error != stack_error::none) {
      return error;
    }
  }
  from = slabs_.back().get();
  id = static_cast<std::uint32_t>((slabs_.size() - 1) << index_bits) | from->carved++;
  from->records[id & (max_slots - 1)].state = record::out;
  from->entry->carved.store(from->carved, platform::memory_order_release);
  return stack_error::none;
}

stack_error stack_class::protect(const slab& in, std::uint32_t index) noexcept {
  char* const guard = in.base + index * stride_;
  const std::size_t guard_size = stride_ - usable_;
  if (in.guard == guard_kind::none) {
    return stack_error::none;
  }
  if (in.guard == guard_kind::lightweight) {
    const stack_error error = install_guard(guard, guard_size);
    if (error == stack_error::none) {
      lightweight_guards_.fetch_add(1, platform::memory_order_relaxed);
    }
    if (error != stack_error::guard_refused || options_.guard == guard_kind::lightweight) {
      return error;
    }
  }
  // The slab was made inaccessible, or became locked after it was made usable.
  const stack_error error = in.guard == guard_kind::lightweight ? make_inaccessible(guard, guard_size)
                                                                : make_usable(guard + guard_size, usable_);
  if (error == stack_error::none) {
    protected_guards_.fetch_add(1, platform::memory_order_relaxed);
  }
  return error;
}

stack_error stack_class::make(stack& out) noexcept {
  const bool too_many = quota_.stacks.fetch_add(1, platform::memory_order_relaxed) >= options_.max_stacks;
  const std::size_t bytes = quota_.bytes.fetch_add(usable_, platform::memory_order_relaxed);
  stack_error error = stack_error::none;
  slab* from = nullptr;
  std::uint32_t id = nobody;
  if (too_many || bytes > options_.max_bytes || options_.max_bytes - bytes < usable_) {
    error = stack_error::pool_limit;
  } else {
    const platform::spin_guard guard(lock_);
    error = reserve(from, id);
  }
  if (error == stack_error::none) {
    error = protect(*from, id & (max_slots - 1));
    const platform::spin_guard guard(lock_);
    if (error != stack_error::none) {
      push(bare_, id);
    } else {
      ++live_;
    }
  }
  if (error != stack_error::none) {
    quota_.stacks.fetch_sub(1, platform::memory_order_relaxed);
    quota_.bytes.fetch_sub(usable_, platform::memory_order_relaxed);
    return error;
  }
  out = stack_of(*from, id);
  const std::size_t prefault = std::min((options_.prefault + page_ - 1) / page_ * page_, usable_);
  get_memory(static_cast<char*>(out.limit()) + usable_ - prefault, prefault);
  return stack_error::none;
}

std::uint32_t stack_class::make_ahead(stack* out, std::uint32_t wanted) noexcept {
  constexpr std::uint32_t batch = 64;
  constexpr std::uint32_t singles = 256;  // programs with fewer fibers get no stacks that they do not need
  // With a limit another cache may need them.
  if (options_.max_stacks != SIZE_MAX || options_.max_bytes != SIZE_MAX || options_.prefault != 0 || wanted < 2) {
    return 0;
  }
  std::uint32_t ids[batch];
  iovec guards[batch];
  std::uint32_t count = 0;
  slab* from = nullptr;
  {
    const platform::spin_guard guard(lock_);
    if (made_in_a_row_ < singles) {
      return 0;
    }
    // Only from the present slab: the first guard of each is installed alone, which shows whether it can be.
    if (slabs_.empty() || bare_.count != 0 || slabs_.back()->guard != guard_kind::lightweight) {
      return 0;
    }
    const std::uint32_t left = slabs_.back()->slots - slabs_.back()->carved;
    for (count = 0; count < std::min({batch, wanted, left}); ++count) {
      static_cast<void>(reserve(from, ids[count]));  // the slab has room
    }
  }
  if (count == 0) {
    return 0;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    guards[i] = {from->base + (ids[i] & (max_slots - 1)) * stride_, stride_ - usable_};
  }
  if (!install_guards(guards, count)) {
    const platform::spin_guard guard(lock_);
    for (std::uint32_t i = count; i-- > 0;) {
      push(bare_, ids[i]);  // whatever guard it has is installed again
    }
    return 0;
  }
  lightweight_guards_.fetch_add(count, platform::memory_order_relaxed);
  quota_.stacks.fetch_add(count, platform::memory_order_relaxed);
  quota_.bytes.fetch_add(count * usable_, platform::memory_order_relaxed);
  {
    const platform::spin_guard guard(lock_);
    live_ += count;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    out[i] = stack_of(*from, ids[count - 1 - i]);
  }
  return count;
}

// ---- handing out and taking back ----------------------------------------------------------------------------------

std::uint32_t stack_class::take(stack* out, std::uint32_t wanted, stack_error& error) noexcept {
  const platform::quiet one_step;
  std::uint32_t taken = 0;
  {
    const platform::spin_guard guard(lock_);
    for (list* from : {&warm_, &cold_}) {
      while (taken < wanted && from->count != 0) {
        // An exploration must not see the order in which earlier programs left the stacks, since addresses are
        // compared.
        const std::uint32_t id = platform::exploring ? pop_lowest() : pop_newest(*from);
        out[taken++] = stack_of(slab_of(id), id);
      }
    }
    fewest_ = std::min(fewest_, warm_.count);
    made_in_a_row_ = taken == 0 ? made_in_a_row_ + 1 : 0;
  }
  if (taken == 0) {
    if (const std::uint32_t made = make_ahead(out, wanted); made != 0) {
      return made;
    }
    error = make(out[0]);
    return error == stack_error::none ? 1 : 0;
  }
  std::reverse(out, out + taken);
  return taken;
}

void stack_class::give(const stack* stacks, std::uint32_t count) noexcept {
  // A sample of one in 64 keeps the estimate behind warm_limit current at a few nanoseconds a stack; the first few are
  // all sampled.
  constexpr std::uint32_t sample_every = 64;
  if (count == 0) {
    return;
  }
  const platform::quiet one_step;
  const std::uint32_t before = gives_.fetch_add(count, platform::memory_order_relaxed);
  if (before < sample_every / 4 || before % sample_every + count >= sample_every) {
    note_depth(stacks[count - 1]);
  }
  bool too_warm = false;
  {
    const platform::spin_guard guard(lock_);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto id = static_cast<std::uint32_t>(stacks[i].slot());
      if (record_of(id).state != record::out) {
        fail_contract("a stack of the pool \"", options_.name, "\" was given back twice");
      }
      push(warm_, id);
    }
    too_warm = warm_.count > warm_limit();
  }
  if (!too_warm) {
    return;
  }
  if (options_.idle_decay <= platform::duration::zero() || quota_.workers.load(platform::memory_order_acquire) == 0) {
    keep_to_mark();
  } else if (platform::current_worker() == nullptr) {
    cool(SIZE_MAX, count);  // the workers may all be asleep, and would not notice
  } else if (quota_.cooling_due.load(platform::memory_order_relaxed) == platform::never) {
    quota_.cooling_due.store(platform::later(platform::now(), options_.idle_decay), platform::memory_order_relaxed);
  }
}

std::size_t stack_class::warm_limit() const noexcept {
  const std::size_t deepest = high_water_.load(platform::memory_order_relaxed);
  return options_.idle_high_water / std::max(page_, (deepest + page_ - 1) / page_ * page_);
}

void stack_class::note_depth(const stack& value) noexcept {
  const std::size_t depth = high_water(value);
  std::size_t known = high_water_.load(platform::memory_order_relaxed);
  while (depth > known && !high_water_.compare_exchange_weak(known, depth, platform::memory_order_relaxed)) {
  }
  if (depth > known) {
    const platform::spin_guard guard(lock_);
    for (const auto& each : slabs_) {
      each->entry->high_water.store(high_water_.load(platform::memory_order_relaxed), platform::memory_order_relaxed);
    }
  }
}

std::size_t stack_class::cool(std::size_t keep, std::size_t max) noexcept {
  const platform::quiet one_step;
  std::size_t done = 0;
  constexpr std::size_t batch = 16;  // the caller may be running on a small stack
  std::uint32_t ids[batch];
  stack stacks[batch];
  const std::size_t kept = std::min((options_.prefault + page_ - 1) / page_ * page_, usable_);
  while (true) {
    std::size_t count = 0;
    {
      const platform::spin_guard guard(lock_);
      const std::size_t limit = std::min(keep, warm_limit());
      while (warm_.count > limit && count < std::min(batch, max - done)) {
        ids[count] = pop_oldest(warm_);
        stacks[count] = stack_of(slab_of(ids[count]), ids[count]);
        ++count;
      }
      cooling_ += count;
    }
    if (count == 0) {
      return done;
    }
    done += count;
    note_depth(stacks[0]);
    iovec ranges[batch];
    std::size_t parts = 0;
    std::sort(stacks, stacks + count, [](const stack& a, const stack& b) { return a.limit() < b.limit(); });
    for (std::size_t i = 0; i < count; ++i) {
      // Neighbours go as one range: a guard between them holds no memory and stays.
      if (parts != 0 && kept == 0 &&
          static_cast<char*>(ranges[parts - 1].iov_base) + ranges[parts - 1].iov_len + (stride_ - usable_) ==
              stacks[i].limit()) {
        ranges[parts - 1].iov_len += stride_;
      } else {
        ranges[parts++] = {stacks[i].limit(), usable_ - kept};
      }
    }
    give_memory_back(ranges, parts);
    const platform::spin_guard guard(lock_);
    for (std::size_t i = 0; i < count; ++i) {
      push(cold_, ids[i]);
    }
    cooling_ -= count;
  }
}

void stack_class::trim() noexcept { cool(0, SIZE_MAX); }

void stack_class::keep_to_mark() noexcept { cool(SIZE_MAX, SIZE_MAX); }

void stack_class::begin_period() noexcept {
  const platform::spin_guard guard(lock_);
  const std::size_t limit = warm_limit();
  to_cool_ = fewest_ > limit ? fewest_ - limit : 0;
  fewest_ = warm_.count;
}

std::size_t stack_class::cool_some(std::size_t max) noexcept {
  std::size_t wanted = 0;
  {
    const platform::spin_guard guard(lock_);
    wanted = std::min(max, to_cool_);
    to_cool_ -= wanted;
  }
  const std::size_t done = wanted != 0 ? cool(SIZE_MAX, wanted) : 0;
  const platform::spin_guard guard(lock_);
  if (done < wanted) {
    to_cool_ = 0;  // the others have been taken meanwhile
  }
  fewest_ = std::min(fewest_, warm_.count);
  return done;
}

bool stack_class::has_to_cool() noexcept {
  const platform::spin_guard guard(lock_);
  return to_cool_ != 0;
}

bool stack_class::is_beyond_mark() noexcept {
  const platform::spin_guard guard(lock_);
  return warm_.count > warm_limit();
}

// ---- statistics ---------------------------------------------------------------------------------------------------

std::size_t stack_class::idle() noexcept {
  const platform::quiet one_step;
  const platform::spin_guard guard(lock_);
  return warm_.count + cold_.count + cooling_;
}

std::size_t stack_class::handed_out() noexcept {
  const platform::quiet one_step;
  const platform::spin_guard guard(lock_);
  return live_ - warm_.count - cold_.count - cooling_;
}

stack_class_statistics stack_class::statistics(stack_sampling sampling) noexcept {
  const platform::quiet one_step;
  stack_class_statistics result;
  if (sampling == stack_sampling::memory) {
    for (std::size_t i = 0;; ++i) {
      const slab* each = nullptr;
      std::uint32_t carved = 0;
      {
        const platform::spin_guard guard(lock_);
        if (i == slabs_.size()) {
          break;
        }
        each = slabs_[i].get();
        carved = each->carved;
      }
      for (std::uint32_t index = 0; index < carved; ++index) {
        const stack value = stack_of(*each, static_cast<std::uint32_t>(i << index_bits) | index);
        note_depth(value);
        result.resident += resident_bytes(value);
      }
    }
  }
  const platform::spin_guard guard(lock_);
  result.stack_size = stack_size_;
  result.usable_size = usable_;
  result.idle = warm_.count + cold_.count + cooling_;
  result.idle_cold = cold_.count;
  result.in_use = live_ - result.idle;
  result.high_water = high_water_.load(platform::memory_order_relaxed);
  result.reserved = reserved_;
  result.lightweight_guards = lightweight_guards_.load(platform::memory_order_relaxed);
  result.protected_guards = protected_guards_.load(platform::memory_order_relaxed);
  return result;
}

void stack_class::visit_handed_out(void (*visit)(const stack&), std::size_t max_count) noexcept {
  const platform::spin_guard guard(lock_);
  for (std::size_t i = 0; i < slabs_.size(); ++i) {
    for (std::uint32_t index = 0; index < slabs_[i]->carved && max_count != 0; ++index) {
      if (slabs_[i]->records[index].state == record::out) {
        visit(stack_of(*slabs_[i], static_cast<std::uint32_t>(i << index_bits) | index));
        --max_count;
      }
    }
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
