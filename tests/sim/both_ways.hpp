// Waits of which an exploration must see both ends: what they are for, and what may end them besides.
#pragma once

#include <pirn/fiber/wait_queue.hpp>

#include "sim/fibers.hpp"

namespace pirn_test {

/// How the waits of an exploration have ended.
struct ends {
  long notified = 0;
  long otherwise = 0;
};
inline ends seen_to_end;

/// What a wait says that only `other` may end too.
template <class Result>
bool ended_well(const Result& result, pirn::wait_error other) {
  pirn::sim::check(result.has_value() || result.error() == other, "it is ended by the two only");
  ++(result.has_value() ? seen_to_end.notified : seen_to_end.otherwise);
  return result.has_value();
}

/// As `expect_passes`, for a program that must be seen to end in both ways.
inline void expect_both(const std::function<void()>& program, unsigned preemptions = 2) {
  seen_to_end = {};
  expect_passes(program, {.preemptions = preemptions});
  EXPECT_GT(seen_to_end.notified, 0);
  EXPECT_GT(seen_to_end.otherwise, 0);
}

}  // namespace pirn_test
