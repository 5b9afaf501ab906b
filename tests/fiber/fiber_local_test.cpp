// Variables of which each fiber has a separate value.
#include "pirn/fiber/fiber_local.hpp"

#include <memory>

#include "fiber/support.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;
using pirn::fiber_local;
namespace this_fiber = pirn::this_fiber;

TEST(fiber_local, each_has_its_own) {
  rig r(2);
  fiber_local<int> number;
  EXPECT_EQ(number.find(), nullptr);
  *number = 7;
  r.rt.run([&] {
    EXPECT_EQ(*number, 0);
    pirn::scope s;
    for (int i = 0; i < 20; ++i) {
      s.spawn(
          [&, i] {
            EXPECT_EQ(number.find(), nullptr);
            *number = i;
            this_fiber::yield();
            EXPECT_TRUE(this_fiber::sleep_for(50us));
            EXPECT_EQ(*number, i);
          },
          {.worker = i % 2});
    }
    s.join();
    EXPECT_EQ(*number, 0);
  });
  EXPECT_EQ(*number, 7);
}

TEST(fiber_local, any_number_of_them) {
  rig r(1);
  r.rt.run([] {
    const std::unique_ptr<fiber_local<std::size_t>[]> many(new fiber_local<std::size_t>[1000]);
    for (std::size_t i = 0; i < 1000; ++i) {
      many[i].emplace(i);
    }
    many[3].emplace(5u);
    for (std::size_t i = 0; i < 1000; ++i) {
      EXPECT_EQ(*many[i], i == 3 ? 5 : i);
    }
  });
}

/// Writes its letter when it is destroyed, after a suspension.
struct letter {
  letter(std::string& where, char what) : to(&where), c(what) {}
  letter(letter&& other) noexcept : to(std::exchange(other.to, nullptr)), c(other.c) {}
  letter& operator=(letter&& other) noexcept {
    to = std::exchange(other.to, nullptr);
    c = other.c;
    return *this;
  }
  ~letter() {
    if (to != nullptr) {
      this_fiber::yield();
      *to += c;
    }
  }
  std::string* to;
  char c;
};

TEST(fiber_local, destroyed_newest_first_however_the_fiber_ends) {
  rig r(1);
  fiber_local<letter> a;
  fiber_local<letter> b;
  fiber_local<letter> c;
  const auto make = [&](std::string& order) {
    a.emplace(order, 'a');
    c.emplace(order, 'c');
    b.emplace(order, 'b');
  };
  std::string order;
  r.rt.run([&] { make(order); });
  EXPECT_EQ(order, "bca");
  order.clear();
  pirn::fiber thrower = r.rt.spawn([&] {
    make(order);
    throw 1;
  });
  EXPECT_THROW(thrower.join(), int);
  EXPECT_EQ(order, "bca");
  order.clear();
  pirn::fiber stopped = r.rt.spawn([&] {
    make(order);
    EXPECT_FALSE(this_fiber::sleep_for(1h));
  });
  stopped = {};  // stops and joins
  EXPECT_EQ(order, "bca");
  order.clear();
  r.rt.run([&] {
    pirn::scope s;
    s.spawn([&] {
      make(order);
      throw 1;
    });
    EXPECT_THROW(s.join(), int);
    EXPECT_EQ(order, "bca");  // before the scope has ended
  });
  order.clear();
  std::thread([&] { make(order); }).join();
  EXPECT_EQ(order, "bca");
}

TEST(fiber_local, a_destructor_may_use_others) {
  rig r(1);
  static std::vector<int> seen;
  static fiber_local<int> early;
  static fiber_local<int> late;
  struct user {
    ~user() {
      seen.push_back(*early);
      *late += 2;
      seen.push_back(*late);
    }
  };
  seen.clear();
  fiber_local<user> last;
  r.rt.run([&] {
    *early = 1;
    static_cast<void>(*last);
    *late = 5;  // already destroyed when it is used, and made anew
  });
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST(fiber_local, values_outlive_the_variable) {
  rig r(1);
  std::string order;
  r.rt.run([&] {
    {
      fiber_local<letter> gone;
      gone.emplace(order, 'x');
    }
    fiber_local<letter> next;
    EXPECT_EQ(next.find(), nullptr);
    EXPECT_EQ(order, "");
  });
  EXPECT_EQ(order, "x");
}

}  // namespace
