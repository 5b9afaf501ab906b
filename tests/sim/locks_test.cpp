// Mutual exclusion, order and no lost wake-up of every lock, with three fibers that lock it at the same time. A lock
// whose waiter gives up, by a deadline or a stop, is as if that waiter had never come.
#include <pirn/sync/expert/biased_mutex.hpp>
#include <pirn/sync/latch.hpp>
#include <pirn/sync/mutex.hpp>
#include <pirn/sync/recursive_mutex.hpp>
#include <pirn/sync/shared_mutex.hpp>

#include <functional>
#include <mutex>
#include <shared_mutex>

#include "pirn/sim/var.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::gate;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

template <class Mutex>
void three_go_in(Mutex& lock, unsigned threads = 0) {
  sim::var<int> entered(0);
  const auto go_in = [&] {
    const std::lock_guard guard(lock);
    entered += 1;
  };
  const auto go_in_twice = [&] {
    go_in();
    go_in();
  };
  run_together({go_in_twice, go_in, go_in}, {.threads = threads});
  sim::check(entered == 4, "each went in as often as it wanted");
  sim::check(lock.try_lock(), "nobody holds it in the end");
  lock.unlock();
}

/// One fiber only tries, beside two that wait: it enters alone or not at all.
template <class Mutex>
void one_tries() {
  Mutex lock;
  sim::var<int> entered(0);
  int wanted = 2;
  const auto go_in = [&] {
    const std::lock_guard guard(lock);
    entered += 1;
  };
  run_together({go_in, go_in, [&] {
                  if (lock.try_lock()) {
                    entered += 1;
                    lock.unlock();
                    ++wanted;
                  }
                }});
  sim::check(entered == wanted);
}

/// One fiber unlocks when the deadline of another passes; a third one waits for as long as it takes.
template <class Mutex>
void deadline_passes() {
  Mutex lock;
  sim::var<int> entered(0);
  int wanted = 2;
  const platform::time_point when = soon();
  run_together({[&] {
                  const std::lock_guard guard(lock);
                  entered += 1;
                  static_cast<void>(this_fiber::sleep_until(when));
                },
                [&] {
                  if (const auto got = lock.lock(when)) {
                    entered += 1;
                    ++wanted;
                    lock.unlock();
                  } else {
                    sim::check(got.error() == wait_error::timed_out);
                    sim::check(platform::now() >= when, "not before its time");
                  }
                },
                [&] {
                  const std::lock_guard guard(lock);
                  entered += 1;
                }});
  sim::check(entered == wanted);
  sim::check(lock.try_lock(), "nobody holds it in the end");
  lock.unlock();
}

/// One fiber asks another to stop and unlocks; a third one waits for as long as it takes.
template <class Mutex>
void stop_comes() {
  Mutex lock;
  sim::var<int> entered(0);
  int wanted = 2;
  std::vector<fiber> fibers;
  run_together({[&] {
                  const std::lock_guard guard(lock);
                  entered += 1;
                  fibers[1].request_stop();
                },
                [&] {
                  if (const auto got = lock.lock(platform::never)) {
                    entered += 1;
                    ++wanted;
                    lock.unlock();
                  } else {
                    sim::check(got.error() == wait_error::stopped);
                  }
                },
                [&] {
                  const std::lock_guard guard(lock);
                  entered += 1;
                }},
               {.fibers = &fibers});
  sim::check(entered == wanted);
  sim::check(lock.try_lock(), "nobody holds it in the end");
  lock.unlock();
}

TEST(mutex, excludes_and_loses_no_wake_up) {
  expect_passes([] {
    mutex lock;
    three_go_in(lock);
  });
}
TEST(mutex, excludes_where_the_next_is_not_the_oldest) {
  expect_passes([] {
    mutex lock(mutex_policy::barging);
    three_go_in(lock);
  });
}
TEST(mutex, excludes_plain_threads) {
  expect_passes([] {
    mutex lock;
    three_go_in(lock, 2);
  });
}
TEST(mutex, excludes_fibers_that_migrate) {
  expect_passes([] {
    mutex lock;
    sim::var<int> entered(0);
    const auto go_in = [&] {
      const std::lock_guard guard(lock);
      entered += 1;
    };
    run_together({go_in, go_in, go_in}, {.migratable = true});
    sim::check(entered == 3);
  });
}
TEST(mutex, shows_what_was_done_by_the_owners_before) {
  expect_passes(
      [] {
        mutex lock;
        three_go_in(lock);
      },
      {.strategy = sim::strategy::random, .stale_reads = true, .executions = 5000});
}
TEST(mutex, is_tried) {
  expect_passes([] { one_tries<mutex>(); });
}
TEST(mutex, hands_over_in_order_on_one_worker) {
  expect_passes([] {
    mutex lock;
    sim::var<int> next(0);
    const auto ask_as = [&](int number) {
      return [&, number] {
        const std::lock_guard guard(lock);
        sim::check(next == number, "who asked first is first");
        next += 1;
      };
    };
    run_together({[&] {
      lock.lock();
      fiber first = spawn(ask_as(0));
      fiber second = spawn(ask_as(1));
      this_fiber::yield();
      lock.unlock();
      ask_as(2)();
      first.join();
      second.join();
    }});
  });
}
TEST(mutex, is_taken_from_a_neighbour_who_has_not_run) {
  expect_passes([] {
    mutex lock;
    sim::var<int> entered(0);
    int wanted = 3;
    const auto go_in = [&] {
      const std::lock_guard guard(lock);
      entered += 1;
    };
    run_together({[&] {
                    lock.lock();
                    fiber first = spawn(go_in);
                    fiber second = spawn(go_in);
                    this_fiber::yield();
                    entered += 1;
                    lock.unlock();
                    first.join();
                    second.join();
                  },
                  [&] {
                    if (lock.try_lock()) {
                      entered += 1;
                      ++wanted;
                      lock.unlock();
                    }
                  }});
    sim::check(entered == wanted);
  });
}

/// A lock that fails when callers that try and back off make no progress.
template <class Mutex>
class counted {
 public:
  explicit counted(int& failures) : failures_(failures) {}
  void lock() { lock_.lock(); }
  bool try_lock() {
    const bool got = lock_.try_lock();
    failures_ = got ? 0 : failures_ + 1;
    sim::check(failures_ < 20, "those who lock two at once get on");
    return got;
  }
  void unlock() { lock_.unlock(); }

 private:
  Mutex lock_;
  int& failures_;  ///< in a row, of all
};

/// Four fibers on one worker, to which locks are handed off while others are ready, and one elsewhere. If no fiber
/// could take a lock that was handed off to a fiber that has not run, they would find each other's lock taken for ever.
template <class Mutex>
void two_at_once(bool with_another) {
  int failures = 0;
  counted<Mutex> a(failures);
  counted<Mutex> b(failures);
  sim::var<int> entered(0);
  const auto both = [&](counted<Mutex>& one, counted<Mutex>& other) {
    return [&] {
      const std::scoped_lock all(one, other);
      entered += 1;
      this_fiber::yield();
    };
  };
  pirn_test::bodies all{[&] {
    std::vector<fiber> four;
    four.push_back(spawn(both(b, a)));
    four.push_back(spawn(both(b, a)));
    four.push_back(spawn(both(a, b)));
    four.push_back(spawn(both(b, a)));
    for (fiber& each : four) {
      each.join();
    }
  }};
  if (with_another) {
    all.emplace_back(both(a, b));
  }
  pirn_test::run_fibers(runtime_options{.workers = with_another ? 2U : 1U, .lifo_turns = 0}, all);
  sim::check(entered == (with_another ? 5 : 4));
}
TEST(mutex, those_who_lock_two_at_once_get_on) {
  expect_passes([] { two_at_once<mutex>(false); });
  expect_passes([] { two_at_once<mutex>(true); });
}
TEST(shared_mutex, those_who_lock_two_at_once_get_on) {
  expect_passes([] { two_at_once<shared_mutex>(false); });
  expect_passes([] { two_at_once<shared_mutex>(true); });
}

TEST(mutex, is_unlocked_as_a_deadline_passes) {
  expect_passes([] { deadline_passes<mutex>(); });
}
TEST(mutex, is_unlocked_as_a_stop_comes) {
  expect_passes([] { stop_comes<mutex>(); });
}

TEST(recursive_mutex, excludes) {
  expect_passes([] {
    recursive_mutex lock;
    sim::var<int> entered(0);
    const auto go_in = [&] {
      const std::lock_guard once(lock);
      const std::lock_guard twice(lock);
      entered += 1;
    };
    run_together({go_in, go_in, go_in});
    sim::check(entered == 3);
  });
}
TEST(recursive_mutex, is_unlocked_as_a_deadline_passes) {
  expect_passes([] { deadline_passes<recursive_mutex>(); });
}

TEST(biased_mutex, excludes) {
  expect_passes([] {
    biased_mutex lock;
    three_go_in(lock);
  });
}
TEST(biased_mutex, excludes_where_loads_are_old) {
  expect_passes(
      [] {
        biased_mutex lock;
        three_go_in(lock);
      },
      {.strategy = sim::strategy::random, .stale_reads = true, .executions = 5000});
}
TEST(biased_mutex, is_tried) {
  expect_passes([] { one_tries<biased_mutex>(); });
}
TEST(biased_mutex, is_unlocked_as_a_deadline_passes) {
  expect_passes([] { deadline_passes<biased_mutex>(); });
}
TEST(biased_mutex, is_unlocked_as_a_stop_comes) {
  expect_passes([] { stop_comes<biased_mutex>(); });
}

TEST(shared_mutex, excludes_writers) {
  expect_passes([] {
    shared_mutex lock;
    three_go_in(lock);
  });
}
TEST(shared_mutex, is_tried) {
  expect_passes([] { one_tries<shared_mutex>(); });
}
TEST(shared_mutex, excludes_readers_while_it_is_written) {
  expect_passes([] {
    shared_mutex lock;
    sim::var<int> value(0);
    const auto read = [&] {
      const std::shared_lock guard(lock);
      return value.get();
    };
    const auto write = [&] {
      const std::lock_guard guard(lock);
      value += 1;
    };
    run_together({write,
                  [&] {
                    const int before = read();
                    sim::check(read() >= before);
                  },
                  [&] {
                    write();
                    sim::check(read() >= 1);
                  }});
    sim::check(read() == 2);
  });
}
TEST(shared_mutex, lets_readers_in_together) {
  expect_passes([] {
    shared_mutex lock;
    latch met(2);
    const auto read = [&] {
      const std::shared_lock guard(lock);
      static_cast<void>(met.arrive_and_wait());  // for ever, if only one of the two is admitted
    };
    run_together({[&] { lock.unlock(); }, read, read}, {.before = [&] { lock.lock(); }});
    sim::check(lock.try_lock());
    lock.unlock();
  });
}
TEST(shared_mutex, wakes_those_who_wait_elsewhere) {
  const auto program = [](auto before, auto first) {
    shared_mutex lock;
    sim::var<int> value(0);
    const auto write = [&] {
      const std::lock_guard guard(lock);
      value += 1;
    };
    run_together({[&] {
                    first(lock);
                    write();  // before the waiters that it has woken, or after them
                  },
                  [&] {
                    fiber reader = spawn([&] {
                      const std::shared_lock guard(lock);
                      sim::check(value <= 3);
                    });
                    write();
                    reader.join();
                  },
                  write},
                 {.before = [&] { before(lock); }});
    sim::check(value == 3);
    sim::check(lock.try_lock(), "it is free in the end");
    lock.unlock();
  };
  expect_passes([&] { program([](shared_mutex& lock) { lock.lock(); }, [](shared_mutex& lock) { lock.unlock(); }); });
  expect_passes([&] {
    program([](shared_mutex& lock) { lock.lock_shared(); }, [](shared_mutex& lock) { lock.unlock_shared(); });
  });
}
TEST(shared_mutex, is_free_for_readers_while_who_was_woken_does_not_run) {
  expect_passes([] {
    shared_mutex lock;
    gate queued;
    gate read;
    run_together({[&] {
                    queued.pass();
                    lock.unlock();
                  },
                  [&] {
                    fiber reader = spawn([&] { const std::shared_lock guard(lock); });
                    fiber writer = spawn([&] { const std::lock_guard guard(lock); });
                    this_fiber::yield();
                    queued.open();
                    read.pass();  // blocks the worker's thread: no other fiber runs there meanwhile
                    reader.join();
                    writer.join();
                  },
                  [&] {
                    queued.pass();
                    const std::shared_lock guard(lock);
                    read.open();
                  }},
                 {.before = [&] { lock.lock(); }});
    sim::check(lock.try_lock());
    lock.unlock();
  });
}
TEST(shared_mutex, lets_readers_in_when_a_writer_gives_up) {
  expect_passes([] {
    shared_mutex lock;
    latch met(2);
    const platform::time_point when = soon();
    run_together({[&] {
                    static_cast<void>(met.arrive_and_wait());
                    lock.unlock_shared();
                  },
                  [&] {
                    if (lock.lock(when)) {
                      sim::check(met.try_wait(), "the readers were both in before");
                      lock.unlock();
                    }
                  },
                  [&] {
                    const std::shared_lock guard(lock);
                    static_cast<void>(met.arrive_and_wait());
                  }},
                 {.before = [&] { lock.lock_shared(); }});
    sim::check(lock.try_lock());
    lock.unlock();
  });
}
/// One fiber unlocks and tries to lock again, beside a neighbour that waits to read, and `other`.
void reader_is_let_in(bool tries_to_write, const std::function<void(shared_mutex&, sim::var<int>&)>& other) {
  shared_mutex lock;
  sim::var<int> value(0);
  const auto read = [&] {
    const std::shared_lock guard(lock);
    sim::check(value >= 1, "what was written before is seen");
  };
  const auto again = [&] {
    fiber neighbour = spawn(read);
    this_fiber::yield();
    value = 1;
    lock.unlock();
    if (tries_to_write && lock.try_lock()) {
      value += 1;
      lock.unlock();
    } else if (!tries_to_write && lock.try_lock_shared()) {
      sim::check(value >= 1, "what was written before is seen");
      lock.unlock_shared();
    }
    neighbour.join();
  };
  run_together({again, [&] { other(lock, value); }}, {.before = [&] { lock.lock(); }});
  sim::check(lock.try_lock(), "nobody holds it in the end");
  lock.unlock();
}
TEST(shared_mutex, is_taken_from_readers_who_have_not_run) {
  expect_passes([] {
    reader_is_let_in(true, [](shared_mutex& lock, sim::var<int>& value) {
      if (lock.try_lock_shared()) {
        sim::check(value >= 1, "what was written before is seen");
        lock.unlock_shared();
      }
    });
  });
}
TEST(shared_mutex, is_taken_from_readers_beside_a_writer) {
  expect_passes([] {
    reader_is_let_in(true, [](shared_mutex& lock, sim::var<int>& value) {
      const std::lock_guard guard(lock);
      value += 1;
    });
  });
}
TEST(shared_mutex, is_taken_to_read_from_a_writer_who_has_not_run) {
  expect_passes([] {
    reader_is_let_in(false, [](shared_mutex& lock, sim::var<int>& value) {
      const std::lock_guard guard(lock);
      value += 1;
    });
  });
}

TEST(shared_mutex, is_unlocked_as_a_deadline_passes) {
  expect_passes([] { deadline_passes<shared_mutex>(); });
}
TEST(shared_mutex, is_unlocked_as_a_stop_comes) {
  expect_passes([] { stop_comes<shared_mutex>(); });
}

}  // namespace
