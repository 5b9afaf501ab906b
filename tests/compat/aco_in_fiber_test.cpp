// A coroutine of aco.h in a fiber that waits inside of it: its caller's frames are left alone when the fiber is
// trimmed.
#include "aco.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <type_traits>

#include "fiber/trim_support.hpp"
#include "pirn/coro/coroutine.hpp"

namespace {

using namespace pirn_test;

struct waits {
  event gate;
  std::atomic<bool> begun = false;
  pirn::stack of_fiber;
  int result = 0;
};

/// Waits in a coroutine that shows its caller, which is the coroutine of aco.h.
void wait_in_body() {
  auto& what = *static_cast<waits*>(aco_get_arg());
  std::array<unsigned char, 20'000> kept;
  kept.fill(5);
  asm volatile("" : : "r"(&kept) : "memory");
  pirn::coroutine<int()> body(pirn::default_stack_pool(), trim_stack_size * slowdown, [&](auto& yield) {
    yield.trim_callers();
    go_deep();
    what.begun = true;
    static_cast<void>(what.gate.wait());
    return 1;
  });
  what.result = body.resume();
  asm volatile("" : : "r"(&kept) : "memory");
  what.result += static_cast<int>(std::count(kept.begin(), kept.end(), 5));
  aco_exit();
}

PIRN_NOINLINE void resume_from_below(aco_t* co) {
  std::array<unsigned char, 20'000> kept;
  kept.fill(7);
  asm volatile("" : : "r"(&kept) : "memory");
  aco_resume(co);
  asm volatile("" : : "r"(&kept) : "memory");
  EXPECT_EQ(std::count(kept.begin(), kept.end(), 7), 20'000);
}

TEST(aco_in_fiber, keeps_the_frames_of_its_caller_when_the_fiber_is_trimmed) {
  if (!std::is_empty_v<pirn::sanitizer_state>) {
    GTEST_SKIP() << "sanitizers know nothing of this switch";
  }
  rig r(1, {.stack_size = trim_stack_size * slowdown});
  waits what;
  pirn::fiber one = r.rt.spawn([&] {
    what.of_fiber = pirn::this_stack::bounds();
    aco_thread_init(nullptr);
    aco_t* const main = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
    aco_share_stack_t* const shared = aco_share_stack_new(trim_stack_size * slowdown);
    aco_t* const co = aco_create(main, shared, 0, &wait_in_body, &what);
    go_deep();
    resume_from_below(co);
    EXPECT_TRUE(co->is_end);
    aco_destroy(co);
    aco_share_stack_destroy(shared);
    aco_destroy(main);
  });
  EXPECT_TRUE(eventually([&] { return what.begun.load(); }));
  r.rt.trim();
  EXPECT_TRUE(eventually([&] { return trimmed(r) == 1; }));
  EXPECT_GT(pirn::resident_bytes(what.of_fiber), shallow);
  what.gate.signal();
  one.join();
  EXPECT_EQ(what.result, 20'001);
}

}  // namespace
