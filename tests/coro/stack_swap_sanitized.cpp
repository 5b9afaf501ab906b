// Swapped tasks whose frames are full of variables with red zones of AddressSanitizer. It makes no false report about
// them, or about code that runs on the same part of the stack afterwards.
#include <alloca.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "pirn/coro/expert/stack_swap.hpp"

namespace {

struct task : pirn::swapped_task {
  int number = 0;
  int ended = 0;
};

struct scheduler {
  std::deque<task*> ready;

  pirn::swapped_task* next() noexcept {
    if (ready.empty()) {
      return nullptr;
    }
    task* const first = ready.front();
    ready.pop_front();
    return first;
  }
  void* allocate(std::size_t size) noexcept { return std::malloc(size); }
  void free(void* buffer, std::size_t) noexcept { std::free(buffer); }
};

scheduler policy;
pirn::stack_swap dispatcher(policy);

void yield() {
  policy.ready.push_back(static_cast<task*>(dispatcher.current()));
  if (dispatcher.block() != pirn::swap_error::none) {
    std::abort();
  }
}

// Keeps the bytes behind `bytes` in memory.
void touch(void* bytes) { asm volatile("" : : "r"(bytes) : "memory"); }

struct guard {
  char bytes[24] = {};
  ~guard() { touch(bytes); }
};

__attribute__((noinline)) void fill(int number, int depth) {
  const guard one;
  alignas(64) unsigned char aligned[128];
  const auto size = static_cast<std::size_t>(100 + 40 * (number % 5));
  auto* const more = static_cast<unsigned char*>(alloca(size));
  std::memset(aligned, number, sizeof aligned);
  std::memset(more, number, size);
  touch(aligned);
  yield();
  if (depth != 0) {
    fill(number, depth - 1);
  }
  yield();
  touch(aligned);
  for (std::size_t i = 0; i < size; ++i) {
    if (more[i] != number || aligned[i % sizeof aligned] != number) {
      std::abort();
    }
  }
}

void body(task& self) {
  for (int i = 0; i < 3; ++i) {
    fill(self.number, self.number % 4);
  }
  self.ended = 1;
  if (self.number % 3 == 0) {
    dispatcher.abort();
  }
}

/// Writes to the whole part of the stack that the swapped tasks have used.
__attribute__((noinline)) void scribble() {
  unsigned char bytes[16384];
  std::memset(bytes, 0xa5, sizeof bytes);
  touch(bytes);
}

}  // namespace

int main() {
  std::deque<task> tasks(20);
  for (int turn = 0; turn < 2; ++turn) {
    int number = 0;
    for (auto& each : tasks) {
      each.number = number++;
      each.ended = 0;
      each.assign<&body>(each);
      policy.ready.push_back(&each);
    }
    if (dispatcher.run() != pirn::swap_error::none) {
      return 1;
    }
    scribble();
    for (const auto& each : tasks) {
      if (each.ended != 1) {
        return 1;
      }
    }
  }
  std::puts("ok");
  return 0;
}
