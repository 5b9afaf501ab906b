// The hand-off queue through each of its users, in both domains: a stop from another worker ends the wait of the first
// waiter just as the lock is handed off to it, or a `try_lock` takes the lock from it.
#include <pirn/sync/detail/hand_off_queue.hpp>
#include <pirn/sync/expert/biased_mutex.hpp>
#include <pirn/sync/expert/biased_semaphore.hpp>
#include <pirn/sync/expert/local.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/recursive_mutex.hpp>
#include <pirn/sync/semaphore.hpp>
#include <pirn/sync/shared_mutex.hpp>

#include <mutex>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::gate;
using pirn_test::run_together;

namespace {

/// A semaphore of one permit as a lock.
template <class Semaphore>
class permit {
 public:
  void lock() { sim::check(free_.acquire().has_value()); }
  [[nodiscard]] auto lock(time_limit deadline) { return free_.acquire(deadline); }
  [[nodiscard]] bool try_lock() { return free_.try_acquire(); }
  void unlock() { free_.release(); }

 private:
  Semaphore free_{1};
};

/// The owner hands the lock off while two fibers of its worker wait, and tries to take it back. Another worker asks the
/// first waiter to stop, and then locks too, if `competes`.
template <class Lock>
void two_wait(bool competes) {
  Lock lock;
  sim::var<int> entered(0);
  int wanted = competes ? 3 : 2;
  bool second_was_in = false;
  gate waiting;
  gate asked;
  fiber first;
  const auto go_in = [&] {
    const std::lock_guard guard(lock);
    entered += 1;
  };
  run_together({[&] {
                  lock.lock();
                  first = spawn([&] {
                    if (const auto got = lock.lock(platform::never)) {
                      sim::check(competes || !second_was_in, "a waiter that was bypassed keeps its place");
                      entered += 1;
                      ++wanted;
                      lock.unlock();
                    } else {
                      sim::check(got.error() == wait_error::stopped);
                    }
                  });
                  fiber second = spawn([&] {
                    const std::lock_guard guard(lock);
                    second_was_in = true;
                    entered += 1;
                  });
                  this_fiber::yield();
                  waiting.open();
                  entered += 1;
                  lock.unlock();
                  if (lock.try_lock()) {
                    this_fiber::yield();  // until a waiter that was bypassed has run, others may come before it
                    entered += 1;
                    ++wanted;
                    lock.unlock();
                  }
                  second.join();
                  asked.pass();
                  first.join();
                  go_in();
                  ++wanted;
                },
                [&] {
                  waiting.pass();
                  first.request_stop();
                  asked.open();
                  if (competes) {
                    go_in();
                  }
                }});
  sim::check(entered == wanted, "each that got the lock was alone, and none is left behind");
}

template <class Lock>
class hand_off_queue : public testing::Test {};
using all_locks = testing::Types<mutex, recursive_mutex, shared_mutex, biased_mutex, permit<binary_semaphore>,
                                 permit<biased_semaphore<1>>, local::mutex, local::recursive_mutex, local::shared_mutex,
                                 permit<local::binary_semaphore>>;
TYPED_TEST_SUITE(hand_off_queue, all_locks);

TYPED_TEST(hand_off_queue, hands_off_in_order_as_the_first_waiter_is_stopped) {
  expect_passes([] { two_wait<TypeParam>(false); });
}

template <class Lock>
class hand_off_queue_of_many : public testing::Test {};
using locks_of_many = testing::Types<mutex, recursive_mutex, shared_mutex, biased_mutex, permit<binary_semaphore>,
                                     permit<biased_semaphore<1>>>;
TYPED_TEST_SUITE(hand_off_queue_of_many, locks_of_many);

TYPED_TEST(hand_off_queue_of_many, leaves_none_behind_beside_another_worker) {
  expect_passes([] { two_wait<TypeParam>(true); });
}

}  // namespace
