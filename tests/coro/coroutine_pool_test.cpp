// coroutine_pool: jobs that follow each other share a coroutine until one suspends.

#include "pirn/coro/coroutine_pool.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
