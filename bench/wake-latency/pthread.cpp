// Two OS threads and a POSIX semaphore.
#include <semaphore.h>

#include <thread>

#include "wake_latency.hpp"

int main() {
  bench::wake_latency latency;
  sem_t woken;
  sem_init(&woken, 0, 0);
  {
    const std::jthread waits([&] {
      for (std::uint64_t i = 0; i < latency.count(); ++i) {
        while (sem_wait(&woken) != 0) {
        }
        latency.ran();
      }
    });
    latency.wake_all([&] { sem_post(&woken); });
  }
  latency.rows("pthread", "sem_post between OS threads");
}
