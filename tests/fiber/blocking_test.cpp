// `blocking`: calls that block run on other threads, and the worker runs other fibers meanwhile.
#include "pirn/fiber/blocking.hpp"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::blocking;

/// A gate at which plain threads block until it opens.
class gate {
 public:
  void open() {
    open_.store(true);
    open_.notify_all();
  }
  void pass() { open_.wait(false); }

 private:
  std::atomic<bool> open_ = false;
};

TEST(blocking, returns_what_the_call_returns) {
  rig r(1);
  r.rt.run([] {
    const auto worker = std::this_thread::get_id();
    EXPECT_NE(blocking([] { return std::this_thread::get_id(); }), worker);
    EXPECT_EQ(std::this_thread::get_id(), worker);
    EXPECT_EQ(*blocking([] { return std::make_unique<int>(3); }), 3);
    std::string text;
    std::string& same = blocking([&]() -> std::string& { return text; });
    EXPECT_EQ(&same, &text);
    blocking([&] { text = "written there"; });
    EXPECT_EQ(text, "written there");
    auto only_moved = [kept = std::make_unique<int>(4)]() mutable { return std::move(kept); };
    EXPECT_EQ(*blocking(std::move(only_moved)), 4);
  });
}

TEST(blocking, throws_what_the_call_throws) {
  rig r(1);
  r.rt.run([] {
    for (int i = 0; i < 3; ++i) {
      try {
        blocking([] { throw std::runtime_error("there"); });
        ADD_FAILURE();
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "there");
        EXPECT_EQ(blocking([] { return 5; }), 5);  // also while that exception is in flight
      }
    }
  });
}

TEST(blocking, on_a_plain_thread_and_within_a_call_it_just_calls) {
  const auto here = std::this_thread::get_id();
  EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), here);
  EXPECT_THROW(blocking([] { throw std::runtime_error("here"); }), std::runtime_error);
  rig r(1);
  r.rt.run([] {
    blocking([] {
      const auto there = std::this_thread::get_id();
      EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), there);
    });
  });
  EXPECT_EQ(r.rt.statistics().blocking_threads, 1u);
}

TEST(blocking, the_worker_runs_others_meanwhile) {
  rig r(1);
  gate until_opened;
  r.rt.run([&] {
    pirn::fiber opener = pirn::spawn([&] { until_opened.open(); });
    blocking([&] { until_opened.pass(); });  // hangs if the call blocks the only worker
    opener.join();
  });
}

TEST(blocking, starts_a_thread_only_if_none_is_idle) {
  rig r(2);
  for (int i = 0; i < 50; ++i) {
    r.rt.run([] { blocking([] {}); });
    EXPECT_EQ(r.rt.statistics().blocking_threads, 1u);
  }
}

TEST(blocking, grows_to_the_limit_where_calls_wait_for_their_turn_and_shrinks) {
  rig r(2, {.max_blocking_threads = 3, .blocking_idle_time = 5ms});
  gate until_opened;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  std::vector<pirn::fiber> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(r.rt.spawn([&] {
      blocking([&] {
        most = std::max(most.load(), ++inside);
        until_opened.pass();
        --inside;
      });
      ++done;
    }));
  }
  ASSERT_TRUE(eventually([&] { return inside >= 3; }));
  std::this_thread::sleep_for(10ms);  // longer than an idle thread lives
  EXPECT_EQ(inside, 3);
  EXPECT_EQ(r.rt.statistics().blocking_threads, 3u);
  until_opened.open();
  join_all(all);
  EXPECT_EQ(done, 10);
  EXPECT_EQ(most, 3);
  ASSERT_TRUE(eventually([&] { return r.rt.statistics().blocking_threads == 0; }));
  r.rt.run([] { EXPECT_EQ(blocking([] { return 1; }), 1); });  // and starts a thread again
}

TEST(blocking, a_call_that_comes_as_a_thread_ends_is_made) {
  rig r(2, {.max_blocking_threads = 1, .blocking_idle_time = 100us});
  std::vector<pirn::fiber> all;
  std::atomic<int> made = 0;
  const int rounds = scaled(2000);
  for (int who = 0; who < 2; ++who) {
    all.push_back(r.rt.spawn([&, who] {
      for (int i = 0; i < rounds; ++i) {
        blocking([&] { ++made; });
        static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(60 + (i * (who + 7)) % 80)));
      }
    }));
  }
  join_all(all);
  EXPECT_EQ(made, 2 * rounds);
}

TEST(blocking, many_at_once_from_all_workers) {
  rig r(3, {.max_blocking_threads = 16});
  std::vector<pirn::fiber> all;
  std::atomic<long> sum = 0;
  const int each = scaled(300);
  for (int who = 0; who < 60; ++who) {
    all.push_back(r.rt.spawn(
        [&, who] {
          for (int i = 0; i < each; ++i) {
            sum += blocking([&] { return who; });
          }
        },
        {.worker = who % 3}));
  }
  join_all(all);
  EXPECT_EQ(sum, 60L * 59 / 2 * each);
  EXPECT_LE(r.rt.statistics().blocking_threads, 16u);
}

TEST(blocking, a_stop_does_not_abandon_the_call) {
  rig r(1);
  gate until_opened;
  std::atomic<bool> inside = false;
  std::atomic<bool> returned = false;
  pirn::fiber f = r.rt.spawn([&] {
    std::string on_the_stack = "before";
    blocking([&] {
      inside = true;
      until_opened.pass();
      on_the_stack = "after";
    });
    EXPECT_EQ(on_the_stack, "after");
    EXPECT_TRUE(pirn::this_fiber::stop_requested());
    EXPECT_EQ(blocking([] { return 2; }), 2);  // nor does it prevent a later call
    returned = true;
  });
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  f.request_stop();
  std::this_thread::sleep_for(2ms);
  EXPECT_FALSE(returned);
  until_opened.open();
  f.join();
  EXPECT_TRUE(returned);
}

TEST(blocking, a_token_ends_the_call_that_asks_it) {
  rig r(1);
  pirn::stop_source source;
  pirn::fiber f = r.rt.spawn(
      [token = source.get_token()] {
        blocking([&] {
          while (!token.stop_requested()) {
            std::this_thread::sleep_for(100us);
          }
        });
      },
      {.stop = source.get_token()});
  std::this_thread::sleep_for(1ms);
  source.request_stop();
  f.join();
}

TEST(blocking, without_threads_it_says_so) {
  rig r(1, {.max_blocking_threads = 0});
  r.rt.run([] {
    bool called = false;
    try {
      blocking([&] { called = true; });
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::operation_not_permitted);
    }
    EXPECT_FALSE(called);
  });
}

TEST(blocking, a_thread_that_cannot_be_started_is_an_error) {
  rig r(1);
  pthread_attr_t before;
  pthread_attr_t too_large;  // a stack for which there is no address space
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&too_large), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&too_large, std::size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&too_large), 0);
  r.rt.run([] {
    bool called = false;
    EXPECT_THROW(blocking([&] { called = true; }), std::system_error);
    EXPECT_FALSE(called);
  });
  EXPECT_EQ(r.rt.statistics().blocking_threads, 0u);
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  r.rt.run([] { EXPECT_EQ(blocking([] { return 1; }), 1); });
  pthread_attr_destroy(&too_large);
  pthread_attr_destroy(&before);
}

TEST(blocking, a_runtime_joins_its_threads) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> alive = 0;
    struct counted {
      std::atomic<int>* count;
      explicit counted(std::atomic<int>& c) : count(&c) { ++c; }
      counted(const counted&) = delete;
      counted& operator=(const counted&) = delete;
      ~counted() { --*count; }
    };
    {
      rig r(2);
      for (int n = 0; n < 5; ++n) {
        r.rt.spawn([&] { blocking([&] { thread_local const counted here(alive); }); }).detach();
      }
    }
    EXPECT_EQ(alive, 0);
  }
}

}  // namespace
