// Helpers that the tests of select share.
#pragma once

#include "fiber/support.hpp"
#include "pirn/sync/select.hpp"

namespace pirn_test {

inline bool succeeded(const pirn::selection& s, std::size_t index) { return s.index == index && s.outcome.has_value(); }
inline bool failed(const pirn::selection& s, std::size_t index, pirn::wait_error why) {
  return s.index == index && !s.outcome.has_value() && s.outcome.error() == why;
}

}  // namespace pirn_test
