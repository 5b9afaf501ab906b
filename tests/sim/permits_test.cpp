// Semaphores and call_once: as many pass as may, waiters are woken, and a waiter that gives up takes nothing with it.
#include <pirn/sync/expert/biased_semaphore.hpp>
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

// ---- counting_semaphore and biased_semaphore -----------------------------------------------------------------------

struct of_all {
  template <std::ptrdiff_t LeastMax>
  using semaphore = counting_semaphore<LeastMax>;
};
struct of_one_worker {
  template <std::ptrdiff_t LeastMax>
  using semaphore = biased_semaphore<LeastMax>;
};

template <class Kind>
class semaphores : public testing::Test {};
using kinds = testing::Types<of_all, of_one_worker>;
TYPED_TEST_SUITE(semaphores, kinds);

TYPED_TEST(semaphores, lets_in_as_many_as_there_are_permits) {
  expect_passes([] {
    typename TypeParam::template semaphore<2> places(2);
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

TYPED_TEST(semaphores, excludes_with_one_permit) {
  expect_passes([] {
    typename TypeParam::template semaphore<1> place(1);
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

TYPED_TEST(semaphores, gives_several_at_once) {
  expect_passes([] {
    typename TypeParam::template semaphore<3> places(0);
    const auto take = [&] { sim::check(places.acquire().has_value()); };
    run_together({[&] { places.release(3); }, take, take});
    sim::check(places.try_acquire() && !places.try_acquire());
  });
}

TYPED_TEST(semaphores, serves_who_came_first) {
  expect_passes([] {
    typename TypeParam::template semaphore<1> place(0);
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

TYPED_TEST(semaphores, wakes_those_who_wait_elsewhere) {
  expect_passes([] {
    typename TypeParam::template semaphore<3> places(0);
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

TYPED_TEST(semaphores, is_released_as_a_deadline_passes) {
  expect_passes([] {
    typename TypeParam::template semaphore<2> places(0);
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

TYPED_TEST(semaphores, is_released_as_a_stop_comes) {
  expect_passes([] {
    typename TypeParam::template semaphore<2> places(0);
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

// ---- biased_semaphore ----------------------------------------------------------------------------------------------

/// One worker takes and gives back permits while others come, from another worker and from a thread.
template <std::ptrdiff_t Permits>
void others_come(bool with_thread) {
  biased_semaphore<Permits> places(Permits);
  sim::atomic<std::ptrdiff_t> inside = 0;
  sim::var<int> entered(0);  // for one permit only, which orders it
  const auto go_in = [&] {
    sim::check(places.acquire().has_value());
    sim::check(inside.fetch_add(1) < Permits, "no more than there are permits");
    if (Permits == 1) {
      entered += 1;
    }
    inside.fetch_sub(1);
    places.release();
  };
  pirn_test::bodies all{[&] {
                          go_in();
                          go_in();
                        },
                        go_in};
  if (with_thread) {
    all.emplace_back([&] {
      if (places.try_acquire()) {
        places.release();
      }
    });
  }
  run_together(all, {.threads = with_thread ? 1U : 0U});
  sim::check(Permits != 1 || entered == 3);
  for (std::ptrdiff_t i = 0; i < Permits; ++i) {
    sim::check(places.try_acquire(), "no permit is lost");
  }
  sim::check(!places.try_acquire(), "and none is there twice");
}

TEST(biased_semaphore, loses_its_bias_at_any_moment) {
  expect_passes([] { others_come<1>(false); });
  expect_passes([] { others_come<2>(false); });
  expect_passes([] { others_come<1>(true); });
}
TEST(biased_semaphore, loses_its_bias_where_loads_are_old) {
  for (const bool symmetric : {false, true}) {
    for (const bool with_thread : {false, true}) {
      expect_passes(
          [with_thread] { others_come<1>(with_thread); },
          {.strategy = sim::strategy::random, .stale_reads = true, .symmetric_fences = symmetric, .executions = 5000});
    }
  }
}

TEST(biased_semaphore, is_released_elsewhere_as_a_fiber_of_its_worker_waits) {
  expect_passes([] {
    biased_semaphore<2> places(0);
    sim::var<int> written(0);
    run_together({[&] {
                    if (places.try_acquire()) {  // the first call: the bias is towards this worker
                      places.release();
                    }
                    sim::check(places.acquire().has_value());
                    sim::check(written == 1, "what came before the release is seen");
                  },
                  [&] {
                    written += 1;
                    places.release();
                  }});
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
