// Variables of a thread by POSIX.
#include <pthread.h>

#include "locals.hpp"

namespace {

std::vector<pthread_key_t> keys;
[[gnu::noinline]] void add(std::uint64_t which) {
  const auto value = reinterpret_cast<std::uintptr_t>(pthread_getspecific(keys[which]));
  pthread_setspecific(keys[which], reinterpret_cast<void*>(value + 1));
}

}  // namespace

int main() {
  keys.resize(bench::input("VARIABLES"));
  for (pthread_key_t& each : keys) {
    bench::check(pthread_key_create(&each, nullptr) == 0, "a key");
  }
  bench::locals_row(
      "pthread", add,
      [](std::uint64_t which) { return reinterpret_cast<std::uintptr_t>(pthread_getspecific(keys[which])); },
      "of a thread: one pthread_getspecific and one pthread_setspecific");
}
