#include "pirn/fiber/detail/frame_cache.hpp"

#include <new>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn::inline PIRN_ABI::detail {

frame_cache::~frame_cache() {
  for (unused* list : free_) {
    while (list != nullptr) {
      unused* const frame = list;
      list = frame->next;
      ::operator delete(frame);
    }
  }
}

frame_cache* frame_cache::here_for(std::size_t list) noexcept {
  worker* const here = current_worker();
  return here != nullptr && list < lists && std::is_empty_v<sanitizer_state> ? &here->frames : nullptr;
}

void* frame_cache::allocate(std::size_t size) {
  const std::size_t list = list_of(size);
  frame_cache* const cache = here_for(list);
  if (cache == nullptr || cache->free_[list] == nullptr) {
    return ::operator new((list + 1) * step);
  }
  unused* const frame = cache->free_[list];
  cache->free_[list] = frame->next;
  --cache->kept_[list];
  return frame;
}

void frame_cache::deallocate(void* frame, std::size_t size) noexcept {
  const std::size_t list = list_of(size);
  frame_cache* const cache = here_for(list);
  if (cache == nullptr || cache->kept_[list] == most_kept) {
    ::operator delete(frame);
    return;
  }
  cache->free_[list] = ::new (frame) unused{cache->free_[list]};
  ++cache->kept_[list];
}

}  // namespace pirn::inline PIRN_ABI::detail
