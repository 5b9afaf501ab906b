// Memory for the frames of coroutines, cached by each worker.
#include "pirn/fiber/detail/frame_cache.hpp"

#include <algorithm>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

frame_cache::~frame_cache() {
  const auto empty = [](list(&lists)[sizes], std::size_t alignment) {
    for (list& each : lists) {
      while (each.first != nullptr) {
        unused* const frame = each.first;
        each.first = frame->next;
        to_heap(frame, alignment);
      }
    }
  };
  empty(usual_, usual_alignment);
  empty(wide_, wide_alignment);
}

void* frame_cache::from_heap(std::size_t size, std::size_t alignment) {
  return alignment <= usual_alignment
             ? ::operator new(rounded(size))
             : ::operator new(rounded(size), std::align_val_t{std::max(alignment, wide_alignment)});
}

void frame_cache::to_heap(void* frame, std::size_t alignment) noexcept {
  // With `?:`, clang 19 and 22 would call both.
  if (alignment <= usual_alignment) {
    ::operator delete(frame);
  } else {
    ::operator delete(frame, std::align_val_t{std::max(alignment, wide_alignment)});
  }
}

frame_cache::list* frame_cache::here_for(std::size_t size, std::size_t alignment) noexcept {
  worker* const here = current_worker();
  const std::size_t number = (size - 1) / step;
  if (here == nullptr || number >= sizes || alignment > wide_alignment || !std::is_empty_v<sanitizer_state>) {
    return nullptr;
  }
  return &(alignment <= usual_alignment ? here->frames.usual_ : here->frames.wide_)[number];
}

void* frame_cache::allocate(std::size_t size, std::size_t alignment) {
  list* const mine = here_for(size, alignment);
  if (mine == nullptr || mine->first == nullptr) {
    return from_heap(size, alignment);
  }
  unused* const frame = mine->first;
  mine->first = frame->next;
  --mine->kept;
  return frame;
}

void frame_cache::deallocate(void* frame, std::size_t size, std::size_t alignment) noexcept {
  list* const mine = here_for(size, alignment);
  if (mine == nullptr || mine->kept == max_kept) {
    to_heap(frame, alignment);
    return;
  }
  mine->first = ::new (frame) unused{mine->first};
  ++mine->kept;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
