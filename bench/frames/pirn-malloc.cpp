// pirn's tasks with frames from malloc.
#include <cstdlib>
#include <new>

namespace bench {

struct malloc_frames {
  static void* allocate(std::size_t size, std::size_t /*alignment*/) {
    void* const frame = std::malloc(size);
    if (frame == nullptr) {
      throw std::bad_alloc();
    }
    return frame;
  }
  static void deallocate(void* frame, std::size_t /*size*/, std::size_t /*alignment*/) noexcept { std::free(frame); }
};

}  // namespace bench

#define BENCH_TASK_FRAMES bench::malloc_frames
#include "frames_pirn.hpp"

int main() { bench::frames_pirn_rows("pirn-malloc", "as pirn, with frames from malloc"); }
