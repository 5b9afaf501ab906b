// The table of fiber-local values of each fiber and each plain thread.
#include "pirn/fiber/fiber_local.hpp"

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

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
    local_table::end(locals);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
