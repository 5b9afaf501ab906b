// Waits that an exploration must see end in both ways: by a notification, and by the other cause that may end them.
#pragma once

#include <pirn/fiber/expert/wait_queue.hpp>

#include "sim/fibers.hpp"

namespace pirn_test {

/// How the waits of an exploration have ended.
struct ends {
  long notified = 0;
  long otherwise = 0;
};
inline ends seen_to_end;

/// Checks that a wait ended by its notification or by `other`, and counts which. Returns whether it was the
/// notification.
template <class Result>
bool ended_well(const Result& result, pirn::wait_error other) {
  pirn::sim::check(result.has_value() || result.error() == other, "it is ended by the two only");
  ++(result.has_value() ? seen_to_end.notified : seen_to_end.otherwise);
  return result.has_value();
}

/// As `expect_passes`, but also expects that the program's waits end in both ways.
inline void expect_both(const std::function<void()>& program, unsigned preemptions = 2) {
  seen_to_end = {};
  expect_passes(program, {.preemptions = preemptions});
  EXPECT_GT(seen_to_end.notified, 0);
  EXPECT_GT(seen_to_end.otherwise, 0);
}

}  // namespace pirn_test
