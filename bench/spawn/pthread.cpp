// OS threads on one core, with stacks small enough for glibc to keep a whole batch of them.
#include "spawn.hpp"

#include <pthread.h>

#include <atomic>

namespace {

std::uint64_t ran = 0;

void* body(void* /*unused*/) {
  std::atomic_ref(ran).fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace

int main() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 32 * 1024);
  bench::spawn_rows(
      "pthread", ran,
      [&] {
        pthread_t thread{};
        bench::check(pthread_create(&thread, &attributes, body, nullptr) == 0, "a thread is created");
        return thread;
      },
      [](pthread_t thread) { pthread_join(thread, nullptr); }, "OS threads on one core");
}
