// pirn's tasks for the frames workload, with their frames from BENCH_TASK_FRAMES if that is defined.
#pragma once

#include "frames.hpp"
#include "pirn/fiber/detail/frame_cache.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/scope.hpp"

// What names frame_cache besides task.hpp has been included above, so the name stands for another class in task.hpp
// only.
#if defined(BENCH_TASK_FRAMES)
#include "pirn/fiber/detail/coroutine_wait.hpp"
#define frame_cache ::BENCH_TASK_FRAMES
#endif
#include "pirn/fiber/task.hpp"
#undef frame_cache

namespace bench {

inline void frames_pirn_rows(const char* impl, const char* note) {
  pirn::runtime runtime({.workers = 1, .calling_thread = true, .stack_size = input("STACK")});
  runtime.run([&] {
    using task = pirn::task<std::uint64_t>;
    frames_rows<task>(impl, [](task what) { return pirn::await(std::move(what)); }, note);
  });
}

}  // namespace bench
