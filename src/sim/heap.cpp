// operator new for programs that are explored. Addresses affect a program that compares them, for instance in a list
// whose head is exchanged, or when two things are locked in the order of their addresses. So they must depend on
// nothing but the schedule. Within each size, the block that was freed last is given out next. Blocks that an execution
// has not used yet follow in the order of addresses, whatever earlier executions have left. The former also makes reuse
// the rule, which is rare elsewhere. The memory of the exploration itself comes from elsewhere.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

constexpr std::size_t unit = 16;
constexpr std::size_t largest = 4096;
constexpr std::size_t room = std::size_t{4} << 30;  // of addresses

/// In front of each block.
struct alignas(unit) header {
  std::uint32_t units;  ///< 0 if the block is malloc's alone
  bool of_program;
  bool freed = false;
};
/// The content of a block while it is free.
struct free_block {
  free_block* next;
  std::uintptr_t seal;  ///< shows whether the block was written meanwhile

  void link(free_block* to) noexcept {
    next = to;
    seal = ~reinterpret_cast<std::uintptr_t>(to);
  }
  [[nodiscard]] bool sealed() const noexcept { return seal == ~reinterpret_cast<std::uintptr_t>(next); }
};
static_assert(sizeof(free_block) <= unit);

constexpr const char* written = "memory was written after it was freed";
constexpr const char* twice = "memory was freed twice";

/// Reports that the program has damaged the heap. The caller has repaired the lists before.
[[noreturn]] void broken(const char* how) {
  if (platform::checked::watching) {
    current->abort(how);
  }
  static_cast<void>(std::fprintf(stderr, "pirn::sim: %s\n", how));
  std::abort();
}

struct heap {
  free_block* free[largest / unit + 1] = {};
};
constinit heap programs = {}, others = {};
constinit std::bitset<largest / unit + 1> unsorted;  ///< lists of `programs`
constinit std::atomic_flag busy;                     // unrelated threads of the operating system may exist

// The part of its room that the program has not used yet. Blocks never return to it.
constinit char* fresh = nullptr;
constinit char* fresh_end = nullptr;

struct guard {
  guard() noexcept {
    while (busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~guard() { busy.clear(std::memory_order_release); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
};

/// Returns a new block for a program, in the order of addresses; null if the room is full.
header* make_fresh(std::size_t units) noexcept {
  static constinit bool tried = false;
  if (!tried) {
    tried = true;
    void* const found = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found != MAP_FAILED) {
      fresh = static_cast<char*>(found);
      fresh_end = fresh + room;
    }
  }
  const std::size_t size = sizeof(header) + units * unit;
  if (static_cast<std::size_t>(fresh_end - fresh) < size) {
    return nullptr;
  }
  char* const made = fresh;
  fresh += size;
  return reinterpret_cast<header*>(made);
}

/// Returns a block of that many units; null if no such block exists yet.
void* take(bool for_program, std::size_t units) {
  std::optional<guard> held(std::in_place);
  free_block*& first = (for_program ? programs : others).free[units];
  if (first != nullptr) {
    if (for_program) {
      unsorted.set(units);
    }
    if (!first->sealed()) {
      first = nullptr;
      held.reset();
      broken(written);
    }
    (reinterpret_cast<header*>(first) - 1)->freed = false;
    return std::exchange(first, first->next);
  }
  if (header* const made = for_program ? make_fresh(units) : nullptr) {
    *made = {static_cast<std::uint32_t>(units), true};
    return made + 1;
  }
  return nullptr;
}

void* allocate(std::size_t size) {
  const bool for_program = platform::checked::watching;
  const std::size_t rounded = (size + unit - 1) / unit;
  const std::size_t units = size == 0 ? 1 : size <= largest ? rounded : 0;
  if (units != 0) {
    if (void* const block = take(for_program, units)) {
      return block;
    }
  }
  if (size > SIZE_MAX - 2 * unit) {
    return nullptr;
  }
  auto* const made = static_cast<header*>(std::malloc(sizeof(header) + (units != 0 ? units * unit : size)));
  if (made == nullptr) {
    return nullptr;
  }
  *made = {static_cast<std::uint32_t>(units), for_program};
  return made + 1;
}

void deallocate(void* memory) {
  if (memory == nullptr) {
    return;
  }
  header* const of = static_cast<header*>(memory) - 1;
  if (of->units == 0) {
    std::free(of);
    return;
  }
  if (of->freed) {
    broken(twice);
  }
  const guard held;
  of->freed = true;
  auto* const block = static_cast<free_block*>(memory);
  free_block*& first = (of->of_program ? programs : others).free[of->units];
  block->link(std::exchange(first, block));
  if (of->of_program) {
    unsorted.set(of->units);
  }
}

/// Allocates a block that is large enough, and keeps its address in front of the aligned memory, behind the content of
/// a free block.
void* allocate(std::size_t size, std::size_t alignment) {
  if (alignment <= unit) {
    return allocate(size);
  }
  void* const whole = size <= SIZE_MAX - unit - alignment ? allocate(size + unit + alignment) : nullptr;
  if (whole == nullptr) {
    return nullptr;
  }
  const auto aligned = (reinterpret_cast<std::uintptr_t>(whole) + unit + alignment) / alignment * alignment;
  auto* const given = reinterpret_cast<void**>(aligned);
  given[-1] = whole;
  return given;
}

void deallocate(void* memory, std::size_t alignment) {
  deallocate(memory == nullptr || alignment <= unit ? memory : static_cast<void**>(memory)[-1]);
}

}  // namespace

const char* sort_heap() {
  const guard held;
  const char* found = nullptr;
  static constinit free_block** all = nullptr;
  static constinit std::size_t capacity = 0;
  for (std::size_t units = 1; unsorted.any() && units <= largest / unit; ++units) {
    if (!unsorted.test(units)) {
      continue;
    }
    unsorted.reset(units);
    std::size_t count = 0;
    for (free_block* each = programs.free[units]; each != nullptr; each = each->next) {
      if (count == capacity) {
        capacity = std::max<std::size_t>(2 * capacity, 1024);
        auto* const more = static_cast<free_block**>(std::realloc(all, capacity * sizeof *all));
        if (more == nullptr) {
          std::abort();
        }
        all = more;
      }
      all[count++] = each;
      if (!each->sealed()) {
        found = written;  // the blocks behind it are lost
        break;
      }
    }
    std::sort(all, all + count, std::less<>());
    free_block* next = nullptr;
    while (count != 0) {
      free_block* const last = all[--count];
      last->link(next);
      next = last;
    }
    programs.free[units] = next;
  }
  return found;
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

// The other forms call these.
// NOLINTBEGIN(misc-new-delete-overloads)
void* operator new(std::size_t size) {
  if (void* const memory = pirn::sim::detail::allocate(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  if (void* const memory = pirn::sim::detail::allocate(size, static_cast<std::size_t>(alignment))) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory, std::align_val_t alignment) noexcept {
  pirn::sim::detail::deallocate(memory, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  pirn::sim::detail::deallocate(memory, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { pirn::sim::detail::deallocate(memory); }
void operator delete(void* memory, std::size_t) noexcept { pirn::sim::detail::deallocate(memory); }
// NOLINTEND(misc-new-delete-overloads)
