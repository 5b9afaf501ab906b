// Semaphores and call_once: as many pass as may, waiters are woken, and a waiter that gives up takes nothing with it.
#include <pirn/sync/once.hpp>
#include <pirn/sync/semaphore.hpp>

#include <stdexcept>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

// ---- counting_semaphore --------------------------------------------------------------------------------------------

TEST(counting_semaphore, lets_in_as_many_as_there_are_permits) {
  expect_passes([] {
    counting_semaphore<2> places(2);
    sim::atomic<int> inside = 0;
    const auto go_in = [&] {
      sim::check(places.acquire().has_value());
      sim::check(inside.fetch_add(1) < 2);
      inside.fetch_sub(1);
      places.release();
    };
    run_together({go_in, go_in, go_in});
    sim::check(places.try_acquire() && places.try_acquire() && !places.try_acquire());
  });
}

TEST(counting_semaphore, excludes_with_one_permit) {
  expect_passes([] {
    binary_semaphore place(1);
    sim::var<int> entered(0);
    const auto go_in = [&] {
      sim::check(place.acquire().has_value());
      entered += 1;
      place.release();
    };
    run_together({go_in, go_in, [&] {
                    go_in();
                    if (place.try_acquire()) {
                      entered += 1;
                      place.release();
                    }
                  }});
    sim::check(place.try_acquire() && !place.try_acquire());
  });
}

TEST(counting_semaphore, gives_several_at_once) {
  expect_passes([] {
    counting_semaphore<3> places(0);
    const auto take = [&] { sim::check(places.acquire().has_value()); };
    run_together({[&] { places.release(3); }, take, take});
    sim::check(places.try_acquire() && !places.try_acquire());
  });
}

TEST(counting_semaphore, serves_who_came_first) {
  expect_passes([] {
    counting_semaphore<1> place(0);
    sim::var<int> next(0);
    const auto ask_as = [&](int number) {
      return [&, number] {
        sim::check(place.acquire().has_value());
        sim::check(next == number, "who asked first is first");
        next += 1;
        place.release();
      };
    };
    run_together({[&] {
                    fiber first = spawn(ask_as(0));
                    fiber second = spawn(ask_as(1));
                    this_fiber::yield();
                    place.release();
                    first.join();
                    second.join();
                  },
                  [&] {
                    sim::check(place.acquire().has_value());
                    place.release();
                  }});
  });
}

TEST(counting_semaphore, wakes_those_who_wait_elsewhere) {
  expect_passes([] {
    counting_semaphore<3> places(0);
    sim::var<int> entered(0);
    run_together({[&] {
                    places.release();
                    places.release();
                    if (places.try_acquire()) {
                      places.release();
                    }
                  },
                  [&] {
                    fiber other = spawn([&] { sim::check(places.acquire().has_value()); });
                    sim::check(places.acquire().has_value());
                    places.release();
                    other.join();
                  },
                  [&] {
                    sim::check(places.acquire().has_value());
                    places.release();
                  }});
    sim::check(places.try_acquire() && !places.try_acquire());
  });
}

TEST(counting_semaphore, is_released_as_a_deadline_passes) {
  expect_passes([] {
    counting_semaphore<2> places(0);
    const platform::time_point when = soon();
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    places.release();
                  },
                  [&] {
                    if (places.acquire(when)) {
                      places.release();
                    }
                  },
                  [&] { sim::check(places.acquire().has_value()); }});
    sim::check(!places.try_acquire());
  });
}

TEST(counting_semaphore, is_released_as_a_stop_comes) {
  expect_passes([] {
    counting_semaphore<2> places(0);
    std::vector<fiber> fibers;
    run_together({[&] {
                    fibers[1].request_stop();
                    places.release();
                  },
                  [&] {
                    if (places.acquire()) {
                      places.release();
                    }
                  },
                  [&] { sim::check(places.acquire().has_value()); }},
                 {.fibers = &fibers});
    sim::check(!places.try_acquire());
  });
}

// ---- once ----------------------------------------------------------------------------------------------------------

TEST(once, does_it_once) {
  expect_passes([] {
    once_flag flag;
    sim::var<int> done(0);
    const auto call = [&] {
      call_once(flag, [&] { done += 1; });
      sim::check(done == 1, "who returns sees what was done");
    };
    run_together({call, call, call});
  });
}

TEST(once, tries_again_after_an_exception) {
  expect_passes([] {
    once_flag flag;
    sim::var<int> tried(0);
    sim::var<int> done(0);
    sim::atomic<int> caught = 0;
    const auto call = [&] {
      try {
        call_once(flag, [&] {
          tried += 1;
          if (tried == 1) {
            throw std::runtime_error("the first one fails");
          }
          done += 1;
        });
        sim::check(done == 1);
      } catch (const std::runtime_error&) {
        caught.fetch_add(1);
      }
    };
    run_together({call, call, call});
    sim::check(tried == 2 && done == 1 && caught == 1);
  });
}

TEST(once, is_done_as_a_deadline_passes) {
  expect_passes([] {
    once_flag flag;
    sim::var<int> done(0);
    const platform::time_point when = soon();
    const auto body = [&] {
      static_cast<void>(this_fiber::sleep_until(when));
      done += 1;
    };
    const auto call = [&] {
      call_once(flag, body);
      sim::check(done == 1);
    };
    run_together({call, call, [&] {
                    if (flag.call(body, when)) {
                      sim::check(done == 1);
                    }
                  }});
    sim::check(done == 1);
  });
}

}  // namespace
