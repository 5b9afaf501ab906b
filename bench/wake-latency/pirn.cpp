// pirn's fibers on two workers.
#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/semaphore.hpp"
#include "wake_latency.hpp"

int main() {
  bench::wake_latency latency;
  pirn::runtime runtime({.workers = 2, .pin_workers = false});
  pirn::counting_semaphore<> woken(0);
  pirn::fiber waits = runtime.spawn(
      [&] {
        for (std::uint64_t i = 0; i < latency.count(); ++i) {
          bench::check(woken.acquire().has_value(), "a wait ends as it should");
          latency.ran();
        }
      },
      {.worker = 1});
  runtime.spawn([&] { latency.wake_all([&] { woken.release(); }); }, {.worker = 0}).join();
  waits.join();
  latency.rows("pirn", "a semaphore between fibers of two workers");
}
