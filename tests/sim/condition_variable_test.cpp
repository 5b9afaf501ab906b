// No notification of a condition variable is lost, neither between the unlock and the wait nor to a waiter that gives
// up just then.
#include <pirn/sync/condition_variable.hpp>
#include <pirn/sync/mutex.hpp>

#include <mutex>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

/// Tokens that are put and taken under a lock.
struct tokens {
  mutex lock;
  condition_variable changed;
  sim::var<int> left{0};

  void put() {
    {
      const std::lock_guard guard(lock);
      left += 1;
    }
    changed.notify_one();
  }
  std::expected<void, wait_error> take(platform::time_point deadline = platform::never) {
    std::unique_lock guard(lock);
    const auto got = changed.wait(guard, [&] { return left > 0; }, deadline);
    if (got) {
      left -= 1;
    } else {
      sim::check(left == 0, "whoever gives up leaves nothing behind that it could have had");
    }
    return got;
  }
};

TEST(condition_variable, notifies_one_for_each) {
  expect_passes([] {
    tokens all;
    const auto take = [&] { sim::check(all.take().has_value()); };
    run_together({take, take, [&] {
                    all.put();
                    all.put();
                  }});
    sim::check(all.left == 0);
  });
}

TEST(condition_variable, notifies_all) {
  expect_passes([] {
    mutex lock;
    condition_variable changed;
    sim::var<bool> open(false);
    const auto pass = [&] {
      std::unique_lock guard(lock);
      sim::check(changed.wait(guard, [&] { return open.get(); }).has_value());
    };
    run_together({pass, pass, [&] {
                    const std::lock_guard guard(lock);
                    open = true;
                    changed.notify_all();
                  }});
  });
}

TEST(condition_variable, notifies_as_a_deadline_passes) {
  expect_passes([] {
    tokens all;
    const platform::time_point when = soon();
    run_together({[&] {
                    if (const auto got = all.take(when)) {
                      all.put();
                    } else {
                      sim::check(got.error() == wait_error::timed_out);
                    }
                  },
                  [&] { sim::check(all.take().has_value()); },
                  [&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    all.put();
                  }});
    sim::check(all.left == 0);
  });
}

TEST(condition_variable, notifies_as_a_stop_comes) {
  expect_passes([] {
    tokens all;
    std::vector<fiber> fibers;
    run_together({[&] {
                    if (const auto got = all.take()) {
                      all.put();
                    } else {
                      sim::check(got.error() == wait_error::stopped);
                    }
                  },
                  [&] { sim::check(all.take().has_value()); },
                  [&] {
                    fibers[0].request_stop();
                    all.put();
                  }},
                 {.fibers = &fibers});
    sim::check(all.left == 0);
  });
}

// A stop that was meant for the wait must not end the locking that follows.
TEST(condition_variable, locks_again_whatever_comes_late) {
  expect_passes([] {
    tokens all;
    std::vector<fiber> fibers;
    int taken = 0;
    run_together({[&] { taken = all.take() ? 1 : 0; },
                  [&] {
                    const std::lock_guard guard(all.lock);
                    all.left += 1;
                    all.changed.notify_one();
                    sim::check(all.left == 1, "nobody else is in the lock");
                  },
                  [&] { fibers[0].request_stop(); }},
                 {.fibers = &fibers});
    sim::check(all.left == 1 - taken);
    sim::check(all.lock.try_lock());
    all.lock.unlock();
  });
}

}  // namespace
