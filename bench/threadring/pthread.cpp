// OS threads on one core that wake each other by semaphores.
#include <pthread.h>
#include <semaphore.h>

#include <cerrno>
#include <cstring>

#include "threadring.hpp"

namespace {

/// The place where a process gets the token.
struct place {
  sem_t arrived;
  std::int64_t token = 0;

  place() { sem_init(&arrived, 0, 0); }
  void put(std::int64_t value) {
    token = value;
    sem_post(&arrived);
  }
  std::int64_t take() {
    while (sem_wait(&arrived) != 0) {
      bench::check(errno == EINTR, "a semaphore is waited for");
    }
    return token;
  }
};

place finished;

struct process {
  place mine;
  process* next = nullptr;
  std::int64_t index = 0;
};

void* body(void* argument) {
  process& self = *static_cast<process*>(argument);
  bench::threadring_process([&self] { return self.mine.take(); },
                            [&self](std::int64_t token) { self.next->mine.put(token); },
                            [&self] { finished.put(self.index); });
  return nullptr;
}

}  // namespace

int main() {
  const std::uint64_t processes = bench::input("PROCESSES");
  bench::need_memory(processes * 20000);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bench::input("STACK"));
  std::vector<process> ring(processes);
  std::vector<pthread_t> handles(processes);
  for (std::uint64_t i = 0; i < processes; ++i) {
    ring[i].next = &ring[(i + 1) % processes];
    ring[i].index = static_cast<std::int64_t>(i);
    if (const int error = pthread_create(&handles[i], &attributes, body, &ring[i]); error != 0) {
      bench::skip("the system refuses thread " + std::to_string(i + 1) + ": " + std::strerror(error));
    }
  }
  bench::threadring_row(
      "pthread",
      [&](std::int64_t token) {
        ring[0].mine.put(token);
        return static_cast<std::uint64_t>(finished.take());
      },
      "OS threads on one core, semaphores");
  ring[0].mine.put(-1);
  for (const pthread_t handle : handles) {
    pthread_join(handle, nullptr);
  }
}
