// State Threads, which keeps the stacks of finished threads.
#include "spawn.hpp"

#include <st.h>

namespace {

std::uint64_t ran = 0;

void* body(void* /*unused*/) {
  ++ran;
  return nullptr;
}

}  // namespace

int main() {
  st_init();
  const int stack = static_cast<int>(bench::input("STACK"));
  bench::spawn_rows(
      "st", ran, [stack] { return st_thread_create(body, nullptr, 1, stack); },
      [](st_thread_t thread) { st_thread_join(thread, nullptr); });
}
