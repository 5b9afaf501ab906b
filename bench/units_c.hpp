// For libraries with a C interface: units that get a pointer.
#pragma once

#include <vector>

#include "harness.hpp"

namespace bench {

/// Runs `body(i)` for each i below `count` in a unit that `start(begin, argument)` makes, until `join` has returned for
/// all.
template <typename Body, typename Start, typename Join>
void together_in_c(std::uint64_t count, Body body, Start start, Join join) {
  struct unit {
    Body* body;
    std::uint64_t index;
  };
  void* (*const begin)(void*) = [](void* argument) -> void* {
    const unit& self = *static_cast<unit*>(argument);
    (*self.body)(self.index);
    return nullptr;
  };
  std::vector<unit> all(count);
  std::vector<decltype(start(begin, nullptr))> handles;
  for (std::uint64_t i = 0; i < count; ++i) {
    all[i] = {&body, i};
    handles.push_back(start(begin, &all[i]));
  }
  for (const auto each : handles) {
    join(each);
  }
}

/// Runs `other()` in a unit that `start` makes and `mine()` here, until `join` has returned.
template <typename Other, typename Mine, typename Start, typename Join>
void both_in_c(Other& other, Mine& mine, Start start, Join join) {
  void* (*const begin)(void*) = [](void* argument) -> void* {
    (*static_cast<Other*>(argument))();
    return nullptr;
  };
  const auto unit = start(begin, &other);
  mine();
  join(unit);
}

}  // namespace bench
