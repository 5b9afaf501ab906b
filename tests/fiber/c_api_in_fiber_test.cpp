// Coroutines of the C API in whose bodies a fiber suspends.
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/pirn.h"

namespace {

using namespace pirn_test;
namespace this_fiber = pirn::this_fiber;

pirn_coroutine* made(pirn_function body, void* user = nullptr) {
  pirn_coroutine* co = nullptr;
  EXPECT_EQ(pirn_create(&co, nullptr, body, user), 0);
  return co;
}

/// Suspends the fiber, and moves it if it may move, before and after each yield of the coroutine.
void* suspends_between(pirn_coroutine* self, void* rounds) {
  const int most = *static_cast<int*>(rounds);
  for (int i = 0; i < most; ++i) {
    static_cast<void>(this_fiber::migrate_to(static_cast<std::size_t>(i) % 2));
    this_fiber::yield();
    EXPECT_EQ(pirn_self(), self);
    EXPECT_EQ(pirn_yield(self, &i, nullptr), 0);
    EXPECT_EQ(pirn_self(), self);
  }
  return nullptr;
}

void run_one(int rounds) {
  EXPECT_EQ(pirn_self(), nullptr);
  pirn_coroutine* const co = made(&suspends_between);
  for (int i = 0; i < rounds; ++i) {
    void* at = nullptr;
    ASSERT_EQ(pirn_resume(co, &rounds, &at), PIRN_YIELDED);
    EXPECT_EQ(*static_cast<int*>(at), i);
    EXPECT_EQ(pirn_self(), nullptr);
    this_fiber::yield();
    EXPECT_EQ(pirn_self(), nullptr);
  }
  EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_ENDED);
  EXPECT_EQ(pirn_destroy(co), 0);
}

void run_many(unsigned workers, const pirn::spawn_options& options) {
  rig r(workers);
  r.rt.run([&] {
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(pirn::spawn([] { run_one(scaled(200)); }, options));
    }
    join_all(all);
  });
}

TEST(c_api_in_fiber, two_fibers_of_one_worker_have_each_their_own) { run_many(1, {}); }
TEST(c_api_in_fiber, it_goes_with_a_fiber_that_moves) { run_many(2, {.migratable = true}); }

TEST(c_api_in_fiber, a_fiber_without_one_runs_in_none) {
  on_one_worker([] {
    pirn_coroutine* const co = made([](pirn_coroutine* self, void* /*unused*/) -> void* {
      pirn::spawn([self] {
        EXPECT_EQ(pirn_self(), nullptr);
        EXPECT_EQ(pirn_yield(self, nullptr, nullptr), -EPERM);
        EXPECT_EQ(pirn_resume(self, nullptr, nullptr), -EBUSY);
      }).join();
      EXPECT_EQ(pirn_self(), self);
      return nullptr;
    });
    EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_ENDED);
    EXPECT_EQ(pirn_destroy(co), 0);
  });
}

/// Suspends the fiber in its destructor.
struct suspends {
  pirn_coroutine* self;
  ~suspends() {
    for (std::size_t i = 0; i < 4; ++i) {
      static_cast<void>(this_fiber::migrate_to(i % 2));
      this_fiber::yield();
      EXPECT_EQ(pirn_self(), self);
    }
  }
};

TEST(c_api_in_fiber, the_fiber_suspends_while_one_is_unwound) {
  for (const unsigned workers : {1U, 2U}) {
    rig r(workers);
    r.rt.run([&] {
      std::vector<pirn::fiber> all;
      for (int i = 0; i < 4; ++i) {
        all.push_back(pirn::spawn(
            [] {
              for (int turn = 0; turn < scaled(50); ++turn) {
                pirn_coroutine* const co = made([](pirn_coroutine* self, void* first) {
                  const suspends guard{self};
                  pirn_yield(self, nullptr, nullptr);
                  return first;
                });
                EXPECT_EQ(pirn_resume(co, nullptr, nullptr), PIRN_YIELDED);
                EXPECT_EQ(pirn_destroy(co), 0);
                EXPECT_EQ(pirn_self(), nullptr);
                EXPECT_EQ(std::uncaught_exceptions(), 0);
              }
            },
            {.migratable = true}));
      }
      join_all(all);
    });
  }
}

/// Called out of line, as the rule for migratable fibers demands.
PIRN_NOINLINE std::exception_ptr caught_here() { return std::current_exception(); }

TEST(c_api_in_fiber, exceptions_of_the_resumer_go_with_a_fiber_that_moves) {
  rig r(2);
  r.rt.spawn(
          [] {
            for (std::size_t i = 0; i < 20; ++i) {
              try {
                throw std::runtime_error("the resumer's");
              } catch (const std::runtime_error&) {
                const std::exception_ptr mine = caught_here();
                pirn_coroutine* const co = made([](pirn_coroutine* /*self*/, void* to) -> void* {
                  static_cast<void>(this_fiber::migrate_to(*static_cast<std::size_t*>(to)));
                  EXPECT_EQ(caught_here(), nullptr);
                  return nullptr;
                });
                std::size_t to = i % 2;
                EXPECT_EQ(pirn_resume(co, &to, nullptr), PIRN_ENDED);
                EXPECT_EQ(caught_here(), mine);
                EXPECT_EQ(pirn_destroy(co), 0);
              }
              EXPECT_EQ(caught_here(), nullptr);
            }
          },
          {.migratable = true})
      .join();
}

struct says {
  const char* what;
  ~says() { static_cast<void>(std::fputs(what, stderr)); }
};

TEST(c_api_in_fiber_death, the_end_of_the_thread_in_a_body_comes_to_its_fiber) {
#if defined(PIRN_TSAN)
  GTEST_SKIP() << "ThreadSanitizer ends a process in which pthread_exit is called on another stack";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(on_one_worker([] {
                 const says outer{"the fiber's, "};
                 pirn_coroutine* const co = made([](pirn_coroutine*, void* first) {
                   const says inner{"the body's, "};
                   pthread_exit(first);
                   return first;
                 });
                 pirn_resume(co, nullptr, nullptr);
               }),
               "the body's, the fiber's, pirn: .* was left by pthread_exit");
}

}  // namespace
