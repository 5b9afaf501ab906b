// Mutual exclusion, no lost wake-up and order, of every lock, with three fibers that go for it at the same time.
#include <pirn/sync/biased_mutex.hpp>
#include <pirn/sync/condition_variable.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/recursive_mutex.hpp>
#include <pirn/sync/shared_mutex.hpp>

#include <mutex>
#include <shared_mutex>

#include "sim/fibers.hpp"
#include "pirn/sim/var.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_fibers;

namespace {

template <class Mutex, class... Arguments>
void three_go_in(Arguments... arguments) {
  Mutex lock(arguments...);
  sim::var<int> entered(0);
  const auto go_in = [&] {
    const std::lock_guard guard(lock);
    entered += 1;
  };
  run_fibers(3, {go_in, go_in, go_in});
  sim::check(entered == 3, "each went in once");
}

TEST(mutex, excludes_and_loses_no_wake_up) { expect_passes([] { three_go_in<mutex>(); }); }
TEST(mutex, excludes_where_the_next_is_not_the_oldest) {
  expect_passes([] { three_go_in<mutex>(mutex_policy::barging); });
}
TEST(recursive_mutex, excludes) { expect_passes([] { three_go_in<recursive_mutex>(); }); }
TEST(shared_mutex, excludes_writers) { expect_passes([] { three_go_in<shared_mutex>(); }); }
TEST(biased_mutex, excludes) { expect_passes([] { three_go_in<biased_mutex>(); }); }

}  // namespace
