// A fiber that moves to another OS thread between two uses of a thread-local variable. Compiled with THREAD_LOCALS safe
// each use is of the variable of its thread; with warn the compiler reports the address that is kept.
#include <cstdint>

#include <pirn/fiber/runtime.hpp>

thread_local int counter;

// Both workers' variables are alive, so their addresses differ.
__attribute__((noinline)) bool has_another_address() {
  const auto before = reinterpret_cast<std::uintptr_t>(&counter);
  ++counter;
  for (std::size_t worker = 0; worker < 2; ++worker) {
    if (!pirn::this_fiber::migrate_to(worker)) {
      return false;
    }
    ++counter;
    if (reinterpret_cast<std::uintptr_t>(&counter) != before) {
      return true;
    }
  }
  return false;
}

int main() {
  pirn::runtime runtime(pirn::runtime_options{.workers = 2});
  bool another = false;
  runtime.spawn([&another] { another = has_another_address(); }, {.migratable = true}).join();
  return another ? 0 : 1;
}
