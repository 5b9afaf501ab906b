// Events, latches, wait groups and barriers: waiters are woken and see what was done before. A waiter that gives up
// takes nothing with it.
#include <pirn/sync/barrier.hpp>
#include <pirn/sync/event.hpp>
#include <pirn/sync/latch.hpp>
#include <pirn/sync/wait_group.hpp>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

// ---- event ---------------------------------------------------------------------------------------------------------

TEST(event, lets_all_pass_who_see_what_was_done) {
  expect_passes([] {
    event happened;
    sim::var<int> value(0);
    const auto pass = [&] {
      sim::check(happened.wait().has_value());
      sim::check(value == 1);
      sim::check(happened.is_set());
    };
    run_together({[&] {
                    value = 1;
                    happened.set();
                  },
                  pass,
                  [&] {
                    pass();
                    pass();
                  }});
  });
}

TEST(event, lets_those_pass_that_waited_before_it_is_reset) {
  expect_passes([] {
    event happened;
    event waiting;
    run_together({[&] {
                    sim::check(waiting.wait().has_value());
                    happened.set();
                    happened.reset();
                  },
                  [&] {
                    fiber one = spawn([&] { sim::check(happened.wait().has_value()); });
                    this_fiber::yield();  // runs that fiber until it waits
                    waiting.set();
                    one.join();
                  }});
    sim::check(!happened.is_set());
  });
}

TEST(event, lets_one_at_a_time_pass_that_takes_it_back) {
  expect_passes([] {
    event free(event_reset::automatic);
    sim::var<int> passed(0);
    const auto pass = [&] {
      sim::check(free.wait().has_value());
      passed += 1;
      free.set();
    };
    free.set();
    run_together({pass, pass, [&] {
                    pass();
                    pass();
                  }});
    sim::check(passed == 4);
    sim::check(free.try_wait() && !free.is_set());
  });
}

TEST(event, counts_once_however_often_it_is_set) {
  expect_passes([] {
    event set(event_reset::automatic);
    sim::var<int> value[2];
    int passed = 0;
    run_together({[&] {
                    value[0] = 1;
                    set.set();
                  },
                  [&] {
                    value[1] = 1;
                    set.set();
                  },
                  [&] {
                    sim::check(set.wait().has_value());
                    ++passed;
                    passed += set.try_wait() ? 1 : 0;
                  }});
    passed += set.try_wait() ? 1 : 0;
    sim::check(passed == 1 || passed == 2);
    sim::check(!set.is_set());
  });
}

TEST(event, is_set_as_a_deadline_passes) {
  expect_passes([] {
    event free(event_reset::automatic);
    const platform::time_point when = soon();
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    free.set();
                  },
                  [&] {
                    if (free.wait(when)) {
                      free.set();
                    }
                  },
                  [&] { sim::check(free.wait().has_value()); }});
    sim::check(!free.is_set());
  });
}

TEST(event, is_set_as_a_stop_comes) {
  expect_passes([] {
    event free(event_reset::automatic);
    std::vector<fiber> fibers;
    run_together({[&] {
                    fibers[1].request_stop();
                    free.set();
                  },
                  [&] {
                    if (const auto passed = free.wait()) {
                      free.set();
                    } else {
                      sim::check(passed.error() == wait_error::stopped);
                    }
                  },
                  [&] { sim::check(free.wait().has_value()); }},
                 {.fibers = &fibers});
    sim::check(!free.is_set());
  });
}

// ---- latch, wait_group ---------------------------------------------------------------------------------------------

TEST(latch, opens_when_all_have_come) {
  expect_passes([] {
    latch all(3);
    sim::var<int> done[3];
    const auto body = [&](int i) {
      return [&, i] {
        done[i] = 1;
        sim::check(all.arrive_and_wait().has_value());
        sim::check(done[0] + done[1] + done[2] == 3, "who passes sees what all did");
      };
    };
    run_together({body(0), body(1), body(2)});
    sim::check(all.try_wait());
  });
}

TEST(latch, opens_as_a_deadline_passes) {
  expect_passes([] {
    latch all(2);
    const platform::time_point when = soon();
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    all.count_down();
                  },
                  [&] {
                    if (!all.arrive_and_wait(1, when)) {
                      sim::check(all.wait().has_value());  // the arrival stands
                    }
                  },
                  [&] { sim::check(all.wait().has_value()); }});
  });
}

TEST(wait_group, waits_for_all_that_was_added) {
  expect_passes([] {
    wait_group all(2);
    sim::var<int> done[3];
    run_together({[&] {
                    done[0] = 1;
                    all.add();  // before its own work is done
                    all.done();
                    done[1] = 1;
                    all.done();
                  },
                  [&] {
                    done[2] = 1;
                    all.done();
                  },
                  [&] {
                    sim::check(all.wait().has_value());
                    sim::check(done[0] + done[1] + done[2] == 3, "who passes sees what all did");
                  }});
    sim::check(all.count() == 0);
  });
}

TEST(wait_group, is_used_again_by_who_has_waited) {
  expect_passes([] {
    wait_group all(1);
    event again;
    run_together({[&] {
                    sim::check(all.wait().has_value());
                    all.add();
                    again.set();
                    sim::check(all.wait().has_value());
                  },
                  [&] { all.done(); },
                  [&] {
                    sim::check(again.wait().has_value());
                    all.done();
                  }});
    sim::check(all.count() == 0);
  });
}

// ---- barrier -------------------------------------------------------------------------------------------------------

TEST(barrier, ends_each_phase_once_when_all_have_come) {
  expect_passes([] {
    sim::var<int> phases(0);
    sim::var<int> came[2];
    const auto end = [&]() noexcept {
      phases += 1;
      sim::check(came[0] == phases && came[1] == phases, "nobody is ahead, nobody behind");
    };
    barrier all(2, end);
    const auto body = [&](int i) {
      return [&, i] {
        for (int phase = 1; phase <= 2; ++phase) {
          came[i] += 1;
          sim::check(all.arrive_and_wait().has_value());
          sim::check(phases >= phase);
        }
      };
    };
    run_together({body(0), body(1)});
    sim::check(phases == 2);
  });
}

TEST(barrier, expects_no_more_who_has_left_as_a_deadline_passes) {
  expect_passes([] {
    barrier all(3);
    const platform::time_point when = soon();
    const auto twice = [&] {
      sim::check(all.arrive_and_wait().has_value());
      sim::check(all.arrive_and_wait().has_value());
    };
    run_together({[&] {
                    static_cast<void>(this_fiber::sleep_until(when));
                    twice();
                  },
                  [&] {
                    if (all.arrive_and_wait(when)) {
                      all.arrive_and_drop();
                    }
                  },
                  twice});
  });
}

}  // namespace
