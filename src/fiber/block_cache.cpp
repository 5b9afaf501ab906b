// Memory for control blocks: the chunks of the whole process, and the cache of each worker.
#include "pirn/fiber/detail/block_cache.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#if defined(PIRN_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

// Has a plain name for debuggers, which cannot go by mangled names in a stripped program.
extern platform::atomic<block_chunk*> newest_chunk asm("pirn_fibers_" PIRN_ABI_NAME);
constinit platform::atomic<block_chunk*> newest_chunk{nullptr};

namespace {

platform::spinlock lock;
void* free_blocks = nullptr;
std::uint32_t untouched = 0;  // blocks at the end of the newest chunk that were never taken

// A listing of the fibers reads the home of every block. That is the last word of this part, which stays as it is.
constexpr std::size_t readable = sizeof(run_node) + sizeof(agent) + sizeof(worker*);

void*& link_of(void* block) noexcept { return *reinterpret_cast<void**>(static_cast<char*>(block) + readable); }

void mark_used(void* block) noexcept {
#if defined(PIRN_ASAN)
  __asan_unpoison_memory_region(static_cast<char*>(block) + readable, block_chunk::block_bytes - readable);
#else
  static_cast<void>(block);
#endif
}
void mark_free(void* block) noexcept {
#if defined(PIRN_ASAN)
  __asan_poison_memory_region(static_cast<char*>(block) + readable, block_chunk::block_bytes - readable);
#else
  static_cast<void>(block);
#endif
}

void* take_one() noexcept {
  if (free_blocks != nullptr) {
    void* const block = free_blocks;
    mark_used(block);
    free_blocks = link_of(block);
    return block;
  }
  block_chunk* chunk = newest_chunk.load(platform::memory_order_relaxed);
  if (untouched == 0) {
    void* const memory = ::operator new(sizeof(block_chunk), std::align_val_t{alignof(block_chunk)}, std::nothrow);
    if (memory == nullptr) {
      return nullptr;
    }
    auto* const made = static_cast<block_chunk*>(std::memset(memory, 0, sizeof(block_chunk)));
    made->next = chunk;
    newest_chunk.store(made, platform::memory_order_release);
    untouched = block_chunk::blocks_in_one;
    chunk = made;
  }
  return chunk->blocks[block_chunk::blocks_in_one - untouched--];
}

}  // namespace

block_chunk* block_chunk::newest() noexcept { return newest_chunk.load(platform::memory_order_acquire); }

std::uint32_t block_chunk::take(void** out, std::uint32_t wanted) noexcept {
  const platform::quiet one_step;  // the result depends on what earlier programs have left
  const platform::spin_guard held(lock);
  std::uint32_t taken = 0;
  while (taken != wanted && (out[taken] = take_one()) != nullptr) {
    ++taken;
  }
  return taken;
}

void block_chunk::give(void* const* blocks, std::uint32_t number) noexcept {
  const platform::quiet one_step;  // the result depends on what earlier programs have left
  const platform::spin_guard held(lock);
  for (std::uint32_t i = 0; i < number; ++i) {
    link_of(blocks[i]) = free_blocks;
    free_blocks = blocks[i];
    mark_free(blocks[i]);
  }
}

bool block_cache::refill() noexcept {
  constexpr std::uint32_t at_a_time = 32;
  count_ = block_chunk::take(blocks_.get(), std::min(at_a_time, capacity));
  return count_ != 0;
}

void block_cache::spill() noexcept {
  // The older half goes back; the blocks that were used last stay.
  constexpr std::uint32_t half = capacity - capacity / 2;
  block_chunk::give(blocks_.get(), half);
  std::copy(blocks_.get() + half, blocks_.get() + capacity, blocks_.get());
  count_ -= half;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
