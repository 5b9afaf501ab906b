// Without reserved coroutines: the first requests make them.
#include "pool_jobs.hpp"

int main() {
  bench::pool_main("pirn-pool-cold", 0,
                   "jobs of a coroutine_pool, each continues with the next request; nothing was reserved");
}
