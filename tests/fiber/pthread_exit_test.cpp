// pthread_exit in the bodies and calls that a runtime's threads run: it is refused, since the thread runs others too.
#include <pthread.h>

#include "fiber/support.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/co.hpp"
#include "pirn/fiber/fork_join.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;

template <class F>
void in_a_runtime(F&& f) {
  pirn::runtime runtime({.workers = 1});
  runtime.run(std::forward<F>(f));
}
int leave() { pthread_exit(nullptr); }

TEST(pthread_exit_death, each_kind_of_body) {
#if defined(PIRN_TSAN)
  GTEST_SKIP() << "ThreadSanitizer ends a process in which pthread_exit is called on another stack";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(in_a_runtime([] { leave(); }), "pirn: .* was left by pthread_exit");
  EXPECT_DEATH(in_a_runtime([] { pirn::spawn([] { leave(); }, {.name = "leaver"}).join(); }),
               "pirn: fiber [0-9]+ \"leaver\" was left by pthread_exit");
  EXPECT_DEATH(in_a_runtime([] {
                 pirn::scope all;
                 all.spawn([] { leave(); });
                 all.join();
               }),
               "pirn: fiber [0-9]+ \"\" was left by pthread_exit");
  EXPECT_DEATH(in_a_runtime([] { pirn::blocking([] { leave(); }); }), "pirn: a call .* was left by pthread_exit");
  EXPECT_DEATH(in_a_runtime([] { pirn::await([]() -> pirn::task<> { co_return static_cast<void>(leave()); }()); }),
               "pirn: a task was left by pthread_exit");
  EXPECT_DEATH(
      in_a_runtime([] { pirn::spawn([] { pirn::fork2([] { leave(); }, [] {}); }, {.migratable = true}).join(); }),
      "pirn: the first half of fork2.* was left by pthread_exit");
}

}  // namespace
