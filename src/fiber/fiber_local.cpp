// The table of fiber-local values of each fiber and each plain thread.
#include "pirn/fiber/fiber_local.hpp"

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

constinit local_node gone(~std::uint64_t{0}, nullptr);

struct locals_of_thread {
  local_table* table = nullptr;
  locals_of_thread() = default;
  locals_of_thread(const locals_of_thread&) = delete;
  locals_of_thread& operator=(const locals_of_thread&) = delete;
  ~locals_of_thread() { end_locals(table); }
};

/// Returns where the caller keeps its table; null if there is no such place yet.
local_table** place_if_any() noexcept {
  if (const worker* const w = current_worker()) {
    fiber_control* const f = running_fiber(w);
    return f->has_cold_part() ? &f->cold().locals : nullptr;
  }
  return &platform::per_thread<locals_of_thread>::here().table;
}

}  // namespace

std::size_t local_table::place_of(std::uint64_t key) const noexcept {
  // Keys are consecutive numbers: their low bits spread well. At most half of the places are taken.
  std::size_t place = key & (capacity_ - 1);
  while (places_[place] != nullptr && places_[place]->key != key) {
    place = (place + 1) & (capacity_ - 1);
  }
  return place;
}

local_node* local_table::find(std::uint64_t key) const noexcept {
  return capacity_ != 0 ? places_[place_of(key)] : nullptr;
}

void local_table::grow() {
  const std::size_t capacity = capacity_ != 0 ? 2 * capacity_ : 8;
  places_ = std::make_unique<local_node*[]>(capacity);
  capacity_ = capacity;
  for (local_node* each = newest_; each != nullptr; each = each->older) {
    places_[place_of(each->key)] = each;
  }
}

void local_table::add(local_node* node) {
  if (2 * (count_ + 1) > capacity_) {
    grow();
  }
  ++count_;
  places_[place_of(node->key)] = node;
  node->older = newest_;
  newest_ = node;
}

void local_table::clear() noexcept {
  while (newest_ != nullptr) {
    // A destructor may ask for other values, and make new ones; values that are not yet destroyed are still there. The
    // place stays taken, so that values behind it are found.
    local_node* const node = newest_;
    newest_ = node->older;
    places_[place_of(node->key)] = &gone;
    node->destroy(node);
  }
}

local_table* locals_if_any() noexcept {
  local_table** const place = place_if_any();
  return place != nullptr ? *place : nullptr;
}

local_table& locals_here() {
  if (const worker* const w = current_worker()) {
    running_fiber(w)->cold();
  }
  local_table*& mine = *place_if_any();
  if (mine == nullptr) {
    mine = new local_table;
  }
  return *mine;
}

void end_locals(local_table*& locals) noexcept {
  if (locals != nullptr) {
    locals->clear();
    delete locals;
    locals = nullptr;
  }
}

std::uint64_t local_key::make() noexcept {
  static constinit platform::signal_atomic<std::uint64_t> made{0};
  std::uint64_t key = 0;
  const std::uint64_t mine = made.fetch_add(1, platform::memory_order_relaxed) + 1;
  return number_.compare_exchange_strong(key, mine, platform::memory_order_relaxed) ? mine : key;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
