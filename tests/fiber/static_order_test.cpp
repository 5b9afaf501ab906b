// A static object uses variables of pirn before they are constructed, as an object of another file may. Either there is
// nothing to construct, or the misuse is detected.
#include <cstring>
#include <optional>
#include <string>

#include "fiber/support.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/fiber/context_value.hpp"
#include "pirn/fiber/fiber_local.hpp"

namespace {

using namespace pirn_test;

extern pirn::fiber_local<int> number;
extern pirn::fiber_local<std::string> text;
extern pirn::context_value<int> bound_number;
extern pirn::context_value<std::string> bound_text;

/// A program whose runtime is a static object.
struct application {
  application() {
    rt.run([this] {
      number.emplace(0x41414141);
      text_was_there = text.find() != nullptr;
      *text = "text";
      const decltype(bound_number)::binding one(bound_number, 1);
      bound_text_was_there = bound_text.get() != nullptr;
      number_kept = *number == 0x41414141 && *text == "text" && *bound_number.get() == 1;
    });
    *number = 7;  // the value of this thread
  }
  pirn::runtime rt{{.workers = 1}};
  bool text_was_there = true;
  bool bound_text_was_there = true;
  bool number_kept = false;
};
application constructed_first;

pirn::fiber_local<int> number;
pirn::fiber_local<std::string> text;
pirn::context_value<int> bound_number;
pirn::context_value<std::string> bound_text;

TEST(static_order, each_variable_has_its_own_values) {
  EXPECT_FALSE(constructed_first.text_was_there);
  EXPECT_FALSE(constructed_first.bound_text_was_there);
  EXPECT_TRUE(constructed_first.number_kept);
  EXPECT_EQ(*number, 7) << "the constructor has made another variable of it";
  EXPECT_EQ(text.find(), nullptr);
}

TEST(static_order_death, a_variable_with_an_initial_value_is_not_used_too_early) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The state of a static object before its constructor has run.
  alignas(pirn::coroutine_local<std::string>) static char zeros[sizeof(pirn::coroutine_local<std::string>)] = {};
  pirn::coroutine<void()> c(
      [](auto& yield) { static_cast<void>(reinterpret_cast<pirn::coroutine_local<std::string>*>(zeros)->get(yield)); });
  EXPECT_DEATH(c.resume(), "pirn: a coroutine_local is used before it is constructed");
}

}  // namespace
