// A missed wake-up: a queue that wakes its producers only if it was full wakes too few of them.
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sim/explore.hpp>
#include <pirn/sync/condition_variable.hpp>
#include <pirn/sync/mutex.hpp>

#include <cstdio>
#include <deque>
#include <mutex>

namespace {

template <bool Fixed>
class bounded_queue {
 public:
  void push(int value) {
    std::unique_lock guard(lock_);
    room_.wait(guard, [&] { return values_.size() < capacity; }).value();
    values_.push_back(value);
    filled_.notify_one();
  }
  int pop() {
    std::unique_lock guard(lock_);
    filled_.wait(guard, [&] { return !values_.empty(); }).value();
    const bool was_full = values_.size() == capacity;
    const int value = values_.front();
    values_.pop_front();
    if (Fixed || was_full) {
      room_.notify_one();
    }
    return value;
  }

 private:
  static constexpr std::size_t capacity = 2;
  pirn::mutex lock_;
  pirn::condition_variable room_, filled_;
  std::deque<int> values_;
};

template <bool Fixed>
void two_producers() {
  pirn::runtime fibers{{.workers = 2}};
  bounded_queue<Fixed> queue;
  queue.push(1);
  queue.push(2);
  pirn::fiber first = fibers.spawn([&] { queue.push(3); }, {.name = "first", .worker = 0});
  pirn::fiber second = fibers.spawn([&] { queue.push(4); }, {.name = "second", .worker = 0});
  pirn::fiber consumer = fibers.spawn([&] { queue.pop(), queue.pop(); }, {.name = "consumer", .worker = 1});
  for (pirn::fiber* each : {&first, &second, &consumer}) {
    each->join();
  }
}

}  // namespace

int main() {
  const pirn::sim::result bug = pirn::sim::explore(two_producers<false>);
  std::fputs(bug.text().c_str(), stdout);
  const pirn::sim::result fixed = pirn::sim::explore(two_producers<true>, {.preemptions = 1});
  std::fputs(fixed.text().c_str(), stdout);
  return bug.what == pirn::sim::outcome::deadlock && fixed && fixed.complete ? 0 : 1;
}
