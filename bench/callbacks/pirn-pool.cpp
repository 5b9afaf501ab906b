// With coroutines made in advance, as the source of coroutine_pool does.
#include "pool_jobs.hpp"

int main() {
  bench::pool_main("pirn-pool", bench::input("UNDER_WAY"),
                   "jobs of a coroutine_pool, each continues with the next request; as many coroutines as requests "
                   "under way were reserved");
}
