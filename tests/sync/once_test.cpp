// `call_once`: one call is made, and other callers wait for it or give up.
#include "pirn/sync/once.hpp"

#include <memory>
#include <stdexcept>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::call_once;
using pirn::once_flag;
using pirn::wait_error;

constinit once_flag global;  // no constructor runs

TEST(once, calls_with_arguments_and_ignores_the_result) {
  int calls = 0;
  const auto add = [&calls](int a, const std::unique_ptr<int>& b) { return calls += a + *b; };
  for (int i = 0; i < 3; ++i) {
    call_once(global, add, 1, std::make_unique<int>(2));
  }
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(global.call([&] { ++calls; }, clock::time_point{}).has_value());
  EXPECT_EQ(calls, 3);
  struct thing {
    long value = 0;
    void set(long v) { value = v; }
  } it;
  once_flag other;
  call_once(other, &thing::set, it, 4);
  EXPECT_EQ(it.value, 4);
}

TEST(once, all_see_what_the_first_one_did) {
  rig r(3);
  for (int round = 0; round < scaled(500); ++round) {
    once_flag flag;
    int value = 0;  // not atomic: the flag orders it
    const auto body = [&] {
      call_once(flag, [&] {
        pirn::this_fiber::yield();
        ++value;
      });
      EXPECT_EQ(value, 1);
    };
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 6; ++i) {
      all.push_back(r.rt.spawn(body));
    }
    std::jthread thread(body);
    body();
    join_all(all);
  }
}

TEST(once, after_an_exception_the_next_one_tries) {
  rig r(2);
  once_flag flag;
  std::atomic<int> tries = 0;
  std::atomic<int> failed = 0;
  std::vector<pirn::fiber> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(r.rt.spawn([&] {
      try {
        call_once(flag, [&] {
          static_cast<void>(pirn::this_fiber::sleep_for(1ms));
          if (++tries < 4) {
            throw std::runtime_error("not yet");
          }
        });
        EXPECT_EQ(tries, 4);
      } catch (const std::runtime_error&) {
        ++failed;
      }
    }));
  }
  join_all(all);
  EXPECT_EQ(tries, 4);
  EXPECT_EQ(failed, 3);
}

TEST(once, waiting_for_another_one_may_be_given_up) {
  rig r(1);
  once_flag flag;
  bool done = false;
  r.rt.run([&] {
    bool go_on = false;
    pirn::fiber slow = pirn::spawn([&] {
      call_once(flag, [&] {
        while (!go_on) {
          pirn::this_fiber::yield();
        }
      });
    });
    pirn::this_fiber::yield();
    const auto never_called = [] { ADD_FAILURE(); };
    EXPECT_EQ(flag.call(never_called, clock::now() + 1ms).error(), wait_error::timed_out);
    pirn::fiber stopped =
        pirn::spawn([&] { EXPECT_EQ(flag.call(never_called, pirn::platform::never).error(), wait_error::stopped); });
    pirn::fiber relies_on_it = pirn::spawn([&] {
      call_once(flag, never_called);
      EXPECT_TRUE(go_on);
      done = true;
    });
    pirn::this_fiber::yield();
    stopped.request_stop();
    relies_on_it.request_stop();
    stopped.join();
    EXPECT_FALSE(done);
    go_on = true;
    relies_on_it.join();
    slow.join();
  });
  EXPECT_TRUE(done);
}

TEST(once, may_be_destroyed_as_soon_as_it_is_done) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    auto flag = std::make_unique<once_flag>();
    once_flag& here = *flag;
    std::atomic<bool> begun = false;
    pirn::fiber f = r.rt.spawn([&] { call_once(here, [&] { begun = true; }); });
    while (!begun) {
      pirn::platform::relax();
    }
    if (i % 2 == 0) {
      static_cast<void>(here.call([] {}, clock::time_point{}));
    }
    call_once(here, [] { ADD_FAILURE(); });
    flag.reset();
    f.join();
  }
}

}  // namespace
