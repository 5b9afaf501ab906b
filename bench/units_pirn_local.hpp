// As units_pirn.hpp, with locks that only the fibers of one worker can use.
#pragma once

#include "pirn/sync/expert/local.hpp"
#include "units_pirn.hpp"

namespace bench {

struct local_units : units {
  static constexpr const char* name = "pirn-local";
  static constexpr const char* note = "pirn::local";
  using mutex = pirn::local::mutex;
  using condition = condition_of<pirn::local::condition_variable>;
};

}  // namespace bench
