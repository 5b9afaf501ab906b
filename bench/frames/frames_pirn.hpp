// pirn's tasks for the frames workload, with their frames from wherever PIRN_TASK_FRAMES says.
#pragma once

#include "frames.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/task.hpp"

namespace bench {

inline void frames_pirn_rows(const char* impl, const char* note) {
  pirn::runtime runtime({.workers = 1, .calling_thread = true, .stack_size = input("STACK")});
  runtime.run([&] {
    using task = pirn::task<std::uint64_t>;
    frames_rows<task>(impl, [](task what) { return pirn::await(std::move(what)); }, note);
  });
}

}  // namespace bench
