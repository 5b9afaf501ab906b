// coroutine_pool: jobs that follow each other share a coroutine until one suspends.

#include "pirn/coro/coroutine_pool.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace {

using pirn::coroutine_pool;

TEST(coroutine_pool_test, jobs_run_until_they_suspend) {
  coroutine_pool pool;
  std::vector<int> log;
  auto job = pool.start([&](auto& yield) {
    log.push_back(1);
    yield();
    log.push_back(2);
  });
  EXPECT_FALSE(job.done());
  EXPECT_EQ(log, (std::vector{1}));
  job.resume();
  EXPECT_TRUE(job.done());
  EXPECT_EQ(log, (std::vector{1, 2}));
  EXPECT_THROW(job.resume(), std::logic_error);
}

TEST(coroutine_pool_test, one_coroutine_runs_all_jobs_that_follow_each_other) {
  coroutine_pool pool;
  const void* stack = nullptr;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) {
    auto job = pool.start([&](coroutine_pool::yield& yield) {
      const void* const here = __builtin_frame_address(0);  // locals are elsewhere under AddressSanitizer
      if (stack != nullptr) {
        EXPECT_EQ(here, stack);
      }
      stack = here;
      if (i % 2 == 0) {
        yield();
      }
      ++ran;
    });
    if (!job.done()) {
      job.resume();
    }
    EXPECT_TRUE(job.done());
  }
  EXPECT_EQ(ran, 1000);
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_EQ(pool.idle(), 1u);
}

TEST(coroutine_pool_test, as_many_as_there_are_jobs_at_once) {
  coroutine_pool pool;
  std::vector<coroutine_pool::job> jobs;
  int sum = 0;
  for (int i = 0; i < 50; ++i) {
    jobs.push_back(pool.start([&sum, i](auto& yield) {
      yield();
      sum += i;
    }));
  }
  EXPECT_EQ(pool.size(), 50u);
  EXPECT_EQ(pool.idle(), 0u);
  for (auto& job : jobs) {
    job.resume();
  }
  EXPECT_EQ(sum, 49 * 50 / 2);
  EXPECT_EQ(pool.idle(), 50u);
  pool.trim(3);
  EXPECT_EQ(pool.size(), 3u);
  EXPECT_EQ(pool.idle(), 3u);
  EXPECT_TRUE(pool.start([](auto&) {}).done());
}

TEST(coroutine_pool_test, an_exception_leaves_and_the_coroutine_stays) {
  coroutine_pool pool;
  EXPECT_THROW(pool.start([](auto&) { throw std::runtime_error("at once"); }), std::runtime_error);
  auto job = pool.start([](auto& yield) {
    yield();
    throw std::runtime_error("later");
  });
  EXPECT_THROW(job.resume(), std::runtime_error);
  EXPECT_TRUE(job.done());
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_EQ(pool.idle(), 1u);
  int ran = 0;
  EXPECT_TRUE(pool.start([&ran](auto&) { ++ran; }).done());
  EXPECT_EQ(ran, 1);
}

TEST(coroutine_pool_test, a_job_that_is_dropped_is_unwound) {
  coroutine_pool pool;
  const auto owned = std::make_shared<int>(1);
  {
    const auto job = pool.start([held = owned, &owned](auto& yield) {
      std::shared_ptr<int> local;
      local = owned;
      EXPECT_EQ(local.use_count(), 3);
      yield();
      ADD_FAILURE();
    });
    EXPECT_EQ(owned.use_count(), 3);
  }
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(pool.idle(), 1u);
  EXPECT_TRUE(pool.start([](auto&) {}).done());
}

TEST(coroutine_pool_test, the_job_itself_is_destroyed_when_it_has_ended) {
  coroutine_pool pool;
  const auto owned = std::make_shared<int>(1);
  pool.start([held = owned](auto&) {});
  EXPECT_EQ(owned.use_count(), 1);
  const auto kept = [held = owned](auto&) {};
  pool.start(kept);
  EXPECT_EQ(owned.use_count(), 2);
}

TEST(coroutine_pool_test, jobs_start_jobs) {
  coroutine_pool pool;
  std::string log;
  auto outer = pool.start([&](auto& yield) {
    auto inner = pool.start([&](auto& yields) {
      log += "a";
      yields();
      log += "c";
    });
    log += "b";
    yield();
    inner.resume();
    log += "d";
  });
  outer.resume();
  EXPECT_EQ(log, "abcd");
  EXPECT_EQ(pool.size(), 2u);
}

TEST(coroutine_pool_test, each_job_has_its_own_variables) {
  coroutine_pool pool;
  const pirn::coroutine_local<int> counter(5);
  for (int i = 0; i < 3; ++i) {
    pool.start([&counter](auto& yield) { EXPECT_EQ(++counter.get(yield), 6); });
  }
  EXPECT_EQ(pool.size(), 1u);
}

TEST(coroutine_pool_test, variables_end_with_their_job) {
  coroutine_pool pool;
  const auto owned = std::make_shared<int>(1);
  const pirn::coroutine_local<std::shared_ptr<int>> held;
  auto job = pool.start([&](auto& yield) {
    held.get(yield) = owned;
    yield();
  });
  EXPECT_EQ(owned.use_count(), 2);
  job.resume();
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_THROW(pool.start([&](auto& yield) {
    held.get(yield) = owned;
    throw std::runtime_error("with a variable");
  }),
               std::runtime_error);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(coroutine_pool_test, misuse_is_said) {
  coroutine_pool pool;
  std::optional<coroutine_pool::job> self;
  self = pool.start([&self](auto& yield) {
    yield();
    EXPECT_THROW(self->resume(), std::logic_error);
  });
  self->resume();
  EXPECT_TRUE(self->done());
  coroutine_pool::job none;
  EXPECT_THROW(none.resume(), std::logic_error);
}

TEST(coroutine_pool_test, a_job_assigned_to_itself_stays) {
  coroutine_pool pool;
  auto job = pool.start([](auto& yield) { yield(); });
  auto& same = job;
  job = std::move(same);
  EXPECT_FALSE(job.done());
  job.resume();
  EXPECT_TRUE(job.done());
}

TEST(coroutine_pool_test, reserved_coroutines_wait_for_jobs) {
  coroutine_pool pool;
  pool.reserve(40);
  EXPECT_EQ(pool.size(), 40u);
  EXPECT_EQ(pool.idle(), 40u);
  pool.reserve(3);
  EXPECT_EQ(pool.size(), 40u);
  auto job = pool.start([](auto& yield) { yield(); });
  EXPECT_EQ(pool.idle(), 39u);
  pool.reserve(40);
  EXPECT_EQ(pool.size(), 41u);
  job.resume();
  EXPECT_EQ(pool.idle(), 41u);
}

TEST(coroutine_pool_test, the_next_job_runs_where_the_last_one_ended) {
  coroutine_pool pool;
  const auto place = [&pool](const void*& to) {
    return pool.start([&to](auto& yield) {
      to = __builtin_frame_address(0);
      yield();
    });
  };
  const void* one = nullptr;
  const void* two = nullptr;
  auto first = place(one);
  auto second = place(two);
  ASSERT_NE(one, two);
  first.resume();
  second.resume();
  const void* next = nullptr;
  const void* oldest = nullptr;
  auto third = place(next);
  auto fourth = place(oldest);
  EXPECT_EQ(next, two);
  EXPECT_EQ(oldest, one);
  third.resume();
  fourth.resume();
  pool.trim(1);  // the one that has been idle for longer goes
  const void* last = nullptr;
  place(last).resume();
  EXPECT_EQ(last, one);
}

template <std::size_t size>
struct counting_job {
  int* log;
  char filler[size];
  explicit counting_job(int* to) : log(to), filler() {}
  counting_job(counting_job&& other) noexcept : log(other.log), filler() { ++log[1]; }
  counting_job(const counting_job& other) : log(other.log), filler() { ++log[2]; }
  ~counting_job() { ++log[3]; }
  void operator()(coroutine_pool::yield& yield) {
    ++log[0];
    yield();
    ++log[0];
  }
};

TEST(coroutine_pool_test, a_job_is_moved_once_and_destroyed_when_it_ends) {
  coroutine_pool pool;
  int log[4] = {};
  auto moved = pool.start(counting_job<1>(log));
  EXPECT_EQ((std::vector(log, log + 4)), (std::vector{1, 1, 0, 1}));
  moved.resume();
  EXPECT_EQ((std::vector(log, log + 4)), (std::vector{2, 1, 0, 2}));
  const counting_job<5000> large(log);
  auto copied = pool.start(large);
  EXPECT_EQ((std::vector(log, log + 4)), (std::vector{3, 1, 1, 2}));
  copied.resume();
  EXPECT_EQ((std::vector(log, log + 4)), (std::vector{4, 1, 1, 3}));
}

TEST(coroutine_pool_test, jobs_of_one_to_five_words_arrive_whole) {
  coroutine_pool pool;
  long a = 1, b = 20, c = 300, d = 4000, e = 50000;
  long sum = 0;
  pool.start([](auto&) {});
  pool.start([&sum](auto&) { sum += 7; });
  pool.start([&sum, a, b](auto&) { sum += a + b; });
  EXPECT_EQ(sum, 28);
  pool.start([&sum, a, b, c](auto&) { sum = a + b + c; });
  EXPECT_EQ(sum, 321);
  pool.start([&sum, a, b, c, d, e](auto& yield) {
        yield();
        sum = a + b + c + d + e;
      })
      .resume();
  EXPECT_EQ(sum, 54321);
}

TEST(coroutine_pool_test, exceptions_in_flight_stay_on_their_side) {
  coroutine_pool pool;
  coroutine_pool::job job;
  try {
    throw std::runtime_error("outer");
  } catch (const std::runtime_error&) {
    job = pool.start([](auto& yield) {
      EXPECT_EQ(std::current_exception(), nullptr);
      try {
        throw std::logic_error("inner");
      } catch (const std::logic_error& inner) {
        yield();
        EXPECT_STREQ(inner.what(), "inner");
        EXPECT_NE(std::current_exception(), nullptr);
      }
    });
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::runtime_error& still) {
      EXPECT_STREQ(still.what(), "outer");
    }
  }
  EXPECT_EQ(std::current_exception(), nullptr);
  job.resume();
  EXPECT_TRUE(job.done());
  EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(coroutine_pool_test, an_unwound_job_may_answer_by_an_exception) {
  coroutine_pool pool;
  const auto earlier = pirn::forced_unwind::set_reporter([](const char*) noexcept {});
  const auto owned = std::make_shared<int>(1);
  {
    auto job = pool.start([&owned](auto& yield) {
      try {
        yield();
      } catch (...) {
        throw std::shared_ptr<int>(owned);
      }
    });
  }
  pirn::forced_unwind::set_reporter(earlier);
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(pool.idle(), 1u);
  EXPECT_EQ(std::current_exception(), nullptr);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_THROW(pool.start([](auto&) { throw std::logic_error("not the answer"); }), std::logic_error);
  EXPECT_TRUE(pool.start([](auto&) {}).done());
}

TEST(coroutine_pool_test, a_job_does_not_yield_for_another_one) {
  coroutine_pool pool;
  auto outer = pool.start([&pool](auto& yield) {
    pool.start([&yield](auto&) { EXPECT_THROW(yield(), std::logic_error); });
    yield();
  });
  EXPECT_FALSE(outer.done());
  outer.resume();
  EXPECT_TRUE(outer.done());
}

TEST(coroutine_pool_test, without_a_stack_there_is_an_error_and_no_job) {
  pirn::guarded_pool stacks({.name = "two", .max_stacks = 2});
  coroutine_pool pool(stacks, 16384);
  auto one = pool.start([](auto& yield) { yield(); });
  EXPECT_THROW(pool.reserve(2), std::system_error);
  EXPECT_EQ(pool.size(), 2u);
  auto two = pool.start([](auto& yield) { yield(); });
  EXPECT_THROW(pool.start([](auto&) {}), std::system_error);
  EXPECT_EQ(pool.size(), 2u);
  one.resume();
  two.resume();
  EXPECT_EQ(pool.idle(), 2u);
}

TEST(coroutine_pool_death_test, destroyed_before_its_jobs) {
  EXPECT_DEATH(
      {
        coroutine_pool::job job;
        const coroutine_pool pool;
        job = const_cast<coroutine_pool&>(pool).start([](auto& yield) { yield(); });
      },
      "a coroutine_pool was destroyed while 1 of its jobs");
}

TEST(coroutine_pool_death_test, a_running_job_destroyed) {
  EXPECT_DEATH(
      {
        coroutine_pool pool;
        std::optional<coroutine_pool::job> self;
        self = pool.start([&self](auto& yield) {
          yield();
          self.reset();
        });
        self->resume();
      },
      "a coroutine was destroyed while it is running");
}

void move_while_running(bool suspends) {
  coroutine_pool pool;
  coroutine_pool::job self;
  coroutine_pool::job other;
  self = pool.start([&](auto& yield) {
    yield();
    other = std::move(self);
    if (suspends) {
      yield();
    }
  });
  self.resume();
}

TEST(coroutine_pool_death_test, a_running_job_moved) {
  EXPECT_DEATH(move_while_running(false), "a coroutine was moved while it is running");
  EXPECT_DEATH(move_while_running(true), "a coroutine was moved while it is running");
}

}  // namespace
