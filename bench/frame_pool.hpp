// Memory for the frames of C++20 coroutines that is kept and reused, as an expert would write it for frequent frames:
// malloc would be a third of the time. With BENCH_FRAMES_FROM_MALLOC it is malloc, for every frame: neither is one put
// into that of its awaiter.
#pragma once

#include <cstddef>
#include <new>

namespace bench {

#if defined(BENCH_FRAMES_FROM_MALLOC)
class frame_pool {};
#else
/// A base of promise types. A list of unused frames for each size, for one thread.
class frame_pool {
 public:
  static void* operator new(std::size_t size) {
    const std::size_t list = size / step;
    if (list >= lists) {
      return ::operator new(size);
    }
    if (unused* frame = free_[list]) {
      free_[list] = frame->next;
      return frame;
    }
    return ::operator new((list + 1) * step);
  }

  static void operator delete(void* frame, std::size_t size) {
    const std::size_t list = size / step;
    if (list >= lists) {
      ::operator delete(frame);
      return;
    }
    free_[list] = new (frame) unused{free_[list]};
  }

 private:
  struct unused {
    unused* next;
  };

  static constexpr std::size_t step = 32;
  static constexpr std::size_t lists = 16;
  static inline unused* free_[lists] = {};
};
#endif

}  // namespace bench
