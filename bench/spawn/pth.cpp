// GNU Pth, which allocates a stack for every thread.
#include "spawn.hpp"

#include <pth.h>

namespace {

std::uint64_t ran = 0;

void* body(void* /*unused*/) {
  ++ran;
  return nullptr;
}

}  // namespace

int main() {
  pth_init();
  const pth_attr_t attributes = pth_attr_new();
  pth_attr_set(attributes, PTH_ATTR_STACK_SIZE, static_cast<unsigned int>(bench::input("STACK")));
  bench::spawn_rows(
      "pth", ran, [&] { return pth_spawn(attributes, body, nullptr); },
      [](pth_t thread) { pth_join(thread, nullptr); });
}
