// The stacks of the C API, and contexts on them. One mapping each: c_api.cpp says why.
#include "coro/c_api/c_stack.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "pirn/context/arch.hpp"
#include "pirn/inline.h"

namespace arch = pirn::arch;
using pirn_c::end_of;

namespace {

constexpr std::size_t guard_size = std::size_t{64} << 10;
constexpr std::size_t largest_stack = SIZE_MAX / 4;

pirn_stack* place_stack(char* limit, char* end, void* mapping, std::size_t mapped) noexcept {
  auto* const at =
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(end) - sizeof(pirn_stack)) & ~std::uintptr_t{15});
  return new (at) pirn_stack{limit, mapping, mapped, false, false};
}

}  // namespace

int pirn_stack_create_in(pirn_stack** result, void* memory, std::size_t size) {
  if (result == nullptr || memory == nullptr || size < PIRN_STACK_MIN || size > largest_stack) {
    return -EINVAL;
  }
  auto* const limit = static_cast<char*>(memory);
  char* const aligned = limit + (-reinterpret_cast<std::uintptr_t>(limit) & 15);
  *result = place_stack(aligned, limit + size, nullptr, 0);
  return 0;
}

int pirn_stack_create(pirn_stack** result, std::size_t size) {
  if (result == nullptr || size > largest_stack) {
    return -EINVAL;
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  size = std::max(size == 0 ? PIRN_DEFAULT_STACK_SIZE : size, PIRN_STACK_MIN);
  size = (size + sizeof(pirn_stack) + page - 1) & ~(page - 1);
  const int before = errno;
  int problem = 0;
  void* const mapping =
      mmap(nullptr, guard_size + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    problem = -errno;
  } else if (mprotect(mapping, guard_size, PROT_NONE) != 0) {
    problem = -errno;
    munmap(mapping, guard_size + size);
  } else {
    char* const limit = static_cast<char*>(mapping) + guard_size;
    *result = place_stack(limit, limit + size, mapping, guard_size + size);
  }
  errno = before;
  return problem;
}

int pirn_stack_destroy(pirn_stack* stack) {
  if (stack == nullptr) {
    return 0;
  }
  if (stack->taken) {
    return -EBUSY;
  }
  if (stack->mapping != nullptr) {
    munmap(stack->mapping, stack->mapped);
  }
  return 0;
}

std::size_t pirn_stack_size(const pirn_stack* stack) {
  return stack == nullptr ? 0 : static_cast<std::size_t>(end_of(stack) - stack->limit);
}

int pirn_stack_lend(pirn_stack* stack, void** top) {
  if (stack == nullptr || top == nullptr) {
    return -EINVAL;
  }
  if (stack->taken) {
    return -EBUSY;
  }
  stack->taken = stack->lent = true;
  *top = end_of(stack);
  return 0;
}

int pirn_stack_take_back(pirn_stack* stack) {
  if (stack == nullptr) {
    return 0;
  }
  if (!stack->lent) {
    return -EINVAL;
  }
  stack->taken = stack->lent = false;
  return 0;
}

void pirn_context_prepare(pirn_context* result, void* top, pirn_entry entry) {
  static_assert(sizeof(pirn_context) == sizeof(arch::context) &&
                    offsetof(pirn_context, sp) == offsetof(arch::context, sp) &&
                    offsetof(pirn_context, fp) == offsetof(arch::context, fp),
                "the assembly of both is the same");
  const arch::context fresh = arch::prepare(top, static_cast<arch::switch_entry>(entry));
  *result = {fresh.pc, fresh.sp, fresh.fp};
}
