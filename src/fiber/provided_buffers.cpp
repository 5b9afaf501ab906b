// Hands buffers to the kernel and takes over those that it has filled.
#include "fiber/provided_buffers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#if defined(PIRN_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

// A buffer that the kernel owns is not for anyone else: a view that is kept for too long is found out.
void poison([[maybe_unused]] std::byte* memory, [[maybe_unused]] std::size_t size) noexcept {
#if defined(PIRN_ASAN)
  __asan_poison_memory_region(memory, size);
#endif
}
void unpoison([[maybe_unused]] std::byte* memory, [[maybe_unused]] std::size_t size) noexcept {
#if defined(PIRN_ASAN)
  __asan_unpoison_memory_region(memory, size);
#endif
}

constexpr std::size_t array_bytes = provided_buffers::max_count * sizeof(uring::provided_buffer);
constexpr std::size_t memory_bytes = std::size_t{provided_buffers::max_count} * provided_buffers::size;

}  // namespace

std::shared_ptr<provided_buffers> provided_buffers::make() noexcept {
  constexpr int protection = PROT_READ | PROT_WRITE;
  void* const all = ::mmap(nullptr, array_bytes + memory_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) {
    return nullptr;
  }
  std::shared_ptr<provided_buffers> made;
  try {
    made.reset(new provided_buffers);
  } catch (const std::bad_alloc&) {
    ::munmap(all, array_bytes + memory_bytes);
    return nullptr;
  }
  made->array_ = static_cast<uring::provided_buffer*>(all);
  made->memory_ = static_cast<std::byte*>(all) + array_bytes;
  made->grow();
  return made;
}

void provided_buffers::grow() noexcept {
  for (const std::uint32_t wanted = std::min(count_ + step, max_count); count_ < wanted; ++count_) {
    all_[count_].home = this;
    give_back(all_[count_]);
  }
}

provided_buffers::~provided_buffers() {
  if (array_ != nullptr) {
    unpoison(memory_, memory_bytes);
    ::munmap(array_, array_bytes + memory_bytes);
  }
}

std::byte* provided_buffers::memory_of(std::uint32_t number) const noexcept {
  return memory_ + std::size_t{number} * size;
}

arrived_bytes& provided_buffers::filled(std::uint32_t number, std::uint32_t bytes) noexcept {
  arrived_bytes& made = all_[number];
  made.first = memory_of(number);
  made.left = bytes;
  unpoison(made.first, bytes);
  return made;
}

void provided_buffers::give_back(arrived_bytes& of) noexcept {
  const auto number = static_cast<std::uint32_t>(&of - all_);
  poison(memory_of(number), size);
  const platform::spin_guard guard(lock_);
  uring::provided_buffer& place = array_[tail_ & (max_count - 1)];
  place.address = reinterpret_cast<std::uintptr_t>(memory_of(number));
  place.length = size;
  place.number = static_cast<std::uint16_t>(number);
  ++tail_;
  reinterpret_cast<platform::atomic<std::uint16_t>&>(array_->tail).store(tail_, platform::memory_order_release);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
