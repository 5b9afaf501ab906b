// A body that another thread continues after each of its suspensions. Prints a word for each kind of mistake, which is
// an access to another thread's variable, and exits with 1 if there was any.
#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "counted_elsewhere.hpp"
#include "pirn/context/arch.hpp"

namespace arch = pirn::arch;

namespace {

thread_local int first = 0;
thread_local int second = 0;
thread_local struct made {
  made() noexcept : value(7) {}
  int value;
} with_constructor;

arch::context body;
arch::context caller;
alignas(16) unsigned char stack[65536];
int mistakes = 0;

/// Prints each word once.
[[gnu::noinline]] void mistaken(const char* word) {
  static const char* said[16];
  for (int i = 0; i < mistakes; ++i) {
    if (std::strcmp(said[i], word) == 0) {
      return;
    }
  }
  said[mistakes++] = word;
  std::printf("%s\n", word);
}

[[gnu::always_inline]] inline void suspend() {
  arch::word none0 = 0;
  arch::word none1 = 0;
  arch::switch_to(body, caller, none0, none1);
}

/// Returns the address of this thread's own variables; no compiler knows the value that it reads.
[[gnu::noinline]] std::uintptr_t thread_pointer() {
  std::uintptr_t pointer;
  asm volatile("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

/// An address is as far from the thread pointer in each thread.
struct distances {
  std::uintptr_t first, second, error, with_constructor, elsewhere;
};
distances expected;

[[gnu::noinline]] void look(const void* address, std::uintptr_t distance, const char* name) {
  if (reinterpret_cast<std::uintptr_t>(address) - thread_pointer() != distance) {
    mistaken(name);
  }
}

[[gnu::noinline]] distances measure() {
  const std::uintptr_t pointer = thread_pointer();
  const auto from = [=](const void* address) { return reinterpret_cast<std::uintptr_t>(address) - pointer; };
  return {from(&first), from(&second), from(&errno), from(&with_constructor), from(where_counted())};
}

[[gnu::noinline]] void look_at_self(pthread_t said) {
  if (static_cast<std::uintptr_t>(said) != thread_pointer()) {
    mistaken("self");
  }
}

void variable() {
  look(&first, expected.first, "before");
  suspend();
  look(&first, expected.first, "variable");
}
void neighbour() {
  look(&first, expected.first, "before");
  suspend();
  look(&second, expected.second, "neighbour");
}
[[gnu::noinline]] void loop(int turns) {
  for (int i = 0; i < turns; ++i) {
    suspend();
    look(&second, expected.second, "loop");
  }
}
void error() {
  look(&errno, expected.error, "before");
  suspend();
  look(&errno, expected.error, "errno");
}
void constructed() {
  look(&with_constructor, expected.with_constructor, "before");
  suspend();
  look(&with_constructor, expected.with_constructor, "constructed");
}
void self() {
  look_at_self(pthread_self());
  suspend();
  look_at_self(pthread_self());
}
[[gnu::noinline]] int* somebodys() { return &first; }
void function() {
  look(somebodys(), expected.first, "before");
  suspend();
  look(somebodys(), expected.first, "function");
}
void link() {
  look(where_counted(), expected.elsewhere, "before");
  suspend();
  look(where_counted(), expected.elsewhere, "link");
}
/// Data in place of addresses: each thread counts what it does itself.
int sums[2];
[[gnu::noinline]] void add_one(int& to) { ++to; }
void count() {
  for (int i = 0; i < 1000; ++i) {
    add_one(first);
    count_elsewhere();
    suspend();
  }
}

[[noreturn]] void run(arch::word, arch::word) {
  variable();
  neighbour();
  loop(3);
  error();
  constructed();
  self();
  function();
  link();
  count();
  arch::switch_last(caller, 1, 0);
}

int turn = 0;
bool ended = false;

void* go_on_in_turn(void* index) {
  const int me = *static_cast<const int*>(index);
  while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
    if (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != me) {
      sched_yield();
      continue;
    }
    arch::word end = 0;
    arch::word none = 0;
    arch::switch_to(caller, body, end, none);
    sums[me] = first + *where_counted();
    __atomic_store_n(&ended, end == 1, __ATOMIC_RELEASE);
    __atomic_store_n(&turn, end == 1 ? me : 1 - me, __ATOMIC_RELEASE);
  }
  return nullptr;
}

}  // namespace

int main() {
  expected = measure();
  body = arch::prepare(stack + sizeof(stack), &run);
  int indices[2] = {0, 1};
  pthread_t other{};
  if (pthread_create(&other, nullptr, &go_on_in_turn, &indices[1]) != 0) {
    return 2;
  }
  go_on_in_turn(&indices[0]);
  pthread_join(other, nullptr);
  if (sums[0] != 1000 || sums[1] != 1000) {
    mistaken("count");
  }
  return mistakes == 0 ? 0 : 1;
}
