// operator new for programs that are explored. Addresses decide what happens where they are compared, for instance in a
// list whose head somebody exchanges: so whether a new object is where a former one was must depend on nothing but the
// schedule. Here what was freed last is given out next, within each size, and that is so in every execution, whatever
// the earlier ones have left. It also makes such reuse, which others rarely see, the rule.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t unit = 16;
constexpr std::size_t largest = 4096;

/// In front of each block.
struct alignas(unit) header {
  std::size_t units;  ///< 0: of malloc alone
};
struct free_block {
  free_block* next;
};

constinit free_block* free_blocks[largest / unit + 1] = {};
constinit std::atomic_flag busy;  // there may be threads of the operating system that have nothing to do with it

struct guard {
  guard() noexcept {
    while (busy.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~guard() { busy.clear(std::memory_order_release); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
};

void* take(std::size_t units) noexcept {
  const guard held;
  free_block* const block = free_blocks[units];
  if (block != nullptr) {
    free_blocks[units] = block->next;
  }
  return block;
}

void* allocate(std::size_t size) noexcept {
  const std::size_t rounded = (size + unit - 1) / unit;
  const std::size_t units = size == 0 ? 1 : size <= largest ? rounded : 0;
  if (units != 0) {
    if (void* const block = take(units)) {
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
  made->units = units;
  return made + 1;
}

void deallocate(void* memory) noexcept {
  if (memory == nullptr) {
    return;
  }
  header* const of = static_cast<header*>(memory) - 1;
  if (of->units == 0) {
    std::free(of);
    return;
  }
  const guard held;
  auto* const block = static_cast<free_block*>(memory);
  block->next = free_blocks[of->units];
  free_blocks[of->units] = block;
}

}  // namespace

// The other forms call these.
// NOLINTBEGIN(misc-new-delete-overloads)
void* operator new(std::size_t size) {
  if (void* const memory = allocate(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { deallocate(memory); }
void operator delete(void* memory, std::size_t) noexcept { deallocate(memory); }
// NOLINTEND(misc-new-delete-overloads)
