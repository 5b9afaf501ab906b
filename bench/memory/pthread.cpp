// OS threads, as many as the system allows.
#include <pthread.h>

#include <atomic>
#include <fstream>

#include "memory.hpp"

namespace {

std::atomic<std::uint64_t> waiting = 0;
pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

void* body(void* /*unused*/) {
  waiting.fetch_add(1);
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return nullptr;
}

/// Returns a quarter less than the system's limits, so that other threads and processes can still start.
std::uint64_t allowed() {
  std::uint64_t least = UINT64_MAX;
  for (const char* name : {"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", "/proc/sys/vm/max_map_count"}) {
    std::uint64_t limit = 0;
    std::ifstream(name) >> limit;
    least = std::min(least, limit / (name[10] == 'v' ? 2 : 1));  // a stack and its guard are two mappings
  }
  return least - least / 4;
}

}  // namespace

int main() {
  const std::uint64_t most = std::min(bench::memory::units(), allowed());
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bench::input("STACK"));
  pthread_mutex_lock(&gate);
  const bench::memory::meter meter;
  std::vector<pthread_t> all;
  while (all.size() < most) {
    pthread_t thread{};
    if (pthread_create(&thread, &attributes, body, nullptr) != 0) {
      break;
    }
    all.push_back(thread);
  }
  while (waiting.load() < all.size()) {
    sched_yield();
  }
  bench::check(!all.empty(), "there is a thread");
  const std::string note = "only " + std::to_string(all.size()) + " threads; without the kernel's own stacks";
  meter.row("pthread", "fresh", all.size(), all.size() == bench::memory::units() ? nullptr : note.c_str());
  pthread_mutex_unlock(&gate);
  for (const pthread_t thread : all) {
    pthread_join(thread, nullptr);
  }
}
