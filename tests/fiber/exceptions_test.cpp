// Exceptions in flight belong to the fiber: the state that the C++ runtime keeps per OS thread must follow each switch.
#include <exception>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/fiber/fiber.hpp"

namespace {

using namespace pirn_test;

int value_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (int v) {
    return v;
  }
}

struct pauses_when_destroyed {
  int id;
  int in_flight;
  ~pauses_when_destroyed() {
    EXPECT_EQ(std::uncaught_exceptions(), in_flight);
    pause(id);
    EXPECT_EQ(std::uncaught_exceptions(), in_flight);
    try {  // a second one while the first is still in flight
      pause(id + 1);
      throw -id;
    } catch (int v) {
      pause(id);
      EXPECT_EQ(v, -id);
      EXPECT_EQ(value_of(std::current_exception()), -id);
    }
    EXPECT_EQ(std::uncaught_exceptions(), in_flight);
  }
};

void throw_through_pauses(int id) {
  const pauses_when_destroyed guard{id, 1};
  pause(id);
  throw id;
}

void catch_and_pause(int id) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    try {
      throw_through_pauses(id);
    } catch (int v) {
      EXPECT_EQ(v, id);
      pause(i);
      EXPECT_EQ(value_of(std::current_exception()), id);
      try {
        throw id + 1000;
      } catch (int nested) {
        pause(i + 1);
        EXPECT_EQ(value_of(std::current_exception()), id + 1000);
        try {
          throw;
        } catch (int again) {
          pause(i);
          EXPECT_EQ(again, id + 1000);
          EXPECT_EQ(nested, again);
        }
      }
      pause(i);
      EXPECT_EQ(value_of(std::current_exception()), id);
    }
    pause(i);
  }
}

class exceptions : public testing::TestWithParam<unsigned> {};

TEST_P(exceptions, stay_with_the_fiber_that_threw) {
  rig r(GetParam());
  std::vector<pirn::fiber> all;
  for (int id = 1; id <= scaled(60) + 4; ++id) {
    all.push_back(r.rt.spawn([id] { catch_and_pause(id); }));
  }
  join_all(all);
}

TEST_P(exceptions, bystanders_see_none) {
  rig r(GetParam());
  std::atomic<bool> done = false;
  std::vector<pirn::fiber> bystanders;
  for (int i = 0; i < 3; ++i) {
    bystanders.push_back(r.rt.spawn(
        [&] {
          while (!done) {
            EXPECT_EQ(std::current_exception(), nullptr);
            EXPECT_EQ(std::uncaught_exceptions(), 0);
            pirn::this_fiber::yield();
          }
        },
        {.worker = 0}));
  }
  r.rt.spawn(
          [] {
            try {
              throw 1;
            } catch (int) {
              for (int i = 0; i < 300; ++i) {
                pirn::this_fiber::yield();
              }
              EXPECT_EQ(value_of(std::current_exception()), 1);
            }
            const pauses_when_destroyed plain{1, 0};
          },
          {.worker = 0})
      .join();
  done = true;
}

TEST_P(exceptions, a_fiber_may_end_or_begin_while_another_handles_one) {
  rig r(GetParam());
  r.rt.run([] {
    try {
      throw 1;
    } catch (int) {
      for (int i = 0; i < 50; ++i) {
        pirn::fiber f = pirn::spawn([i] {
          EXPECT_EQ(std::current_exception(), nullptr);
          throw 100 + i;
        });
        try {
          f.join();
          ADD_FAILURE();
        } catch (int v) {
          EXPECT_EQ(v, 100 + i);
        }
        EXPECT_EQ(value_of(std::current_exception()), 1);
      }
    }
    EXPECT_EQ(std::current_exception(), nullptr);
  });
}

TEST_P(exceptions, travel_between_workers) {
  rig r(GetParam());
  const int last = static_cast<int>(GetParam()) - 1;
  r.rt.run([last] {
    for (int i = 0; i < 200; ++i) {
      std::exception_ptr caught;
      pirn::spawn(
          [&] {
            try {
              throw std::runtime_error("number " + std::to_string(i));
            } catch (...) {
              caught = std::current_exception();
            }
          },
          {.worker = last})
          .join();
      try {
        std::rethrow_exception(caught);
      } catch (const std::runtime_error& e) {
        pirn::this_fiber::yield();
        EXPECT_EQ(e.what(), "number " + std::to_string(i));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(workers, exceptions, testing::Values(1u, 2u));

}  // namespace
