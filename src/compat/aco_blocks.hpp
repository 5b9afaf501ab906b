// Where images lie that are not beside their coroutine, once a share stack has many coroutines: in blocks of one size,
// up to 64 in a chunk. A block is taken and given back without an access to its memory, which is out of the cache when
// a coroutine among a hundred thousand is destroyed. Chunks follow each other in memory as images do that are allocated
// one by one, so that the next image can be fetched ahead.
//
// A chunk that is empty is freed, unless it is the only one of its size with a free block. That one stays until the
// share stack is destroyed: were it freed with the last of a hundred thousand coroutines, malloc would give the memory
// of all back to the system at that moment, which takes ten times as long as their destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "compat/aco_counted_stack.hpp"

namespace pirn_aco {

constexpr std::size_t max_block = 3072;
constexpr std::size_t max_chunk = std::size_t{100} << 10;  // larger allocations are mappings
constexpr std::size_t many_coroutines = 64;

struct chunk {
  chunk* next;  // both of the chunks of its size with a free block
  chunk* previous;
  char* blocks;
  std::uint64_t free;  // a bit for each block
  std::uint32_t size;  // of a block
  std::uint32_t used;
};

/// Sizes are multiples of 16 up to 256 bytes, and of 64 then.
constexpr std::size_t class_of(std::size_t bytes) noexcept {
  return bytes <= 256 ? (bytes + 15) / 16 : 16 + (bytes - 256 + 63) / 64;
}
constexpr std::size_t size_of_class(std::size_t which) noexcept {
  return which <= 16 ? 16 * which : 256 + 64 * (which - 16);
}
static_assert(class_of(max_block) + 1 == counted_stack::block_sizes && size_of_class(class_of(max_block)) == max_block);

inline void open_chunk(counted_stack& stack, chunk& of) noexcept {
  chunk*& open = stack.chunks[class_of(of.size)];
  of.next = open;
  of.previous = nullptr;
  if (open != nullptr) {
    open->previous = &of;
  }
  open = &of;
}
inline void close_chunk(counted_stack& stack, chunk& of) noexcept {
  (of.previous != nullptr ? of.previous->next : stack.chunks[class_of(of.size)]) = of.next;
  if (of.next != nullptr) {
    of.next->previous = of.previous;
  }
}

/// Returns a chunk of blocks of that size; null without memory.
[[gnu::cold, gnu::noinline]] inline chunk* add_chunk(counted_stack& stack, std::size_t size) noexcept {
  const std::size_t blocks = 64 * size <= max_chunk ? 64 : max_chunk / size;
  auto* const made = static_cast<chunk*>(std::malloc(sizeof(chunk)));
  auto* const memory = static_cast<char*>(std::malloc(blocks * size));
  if (made == nullptr || memory == nullptr) {
    std::free(made);
    std::free(memory);
    return nullptr;
  }
  *made = chunk{};
  made->blocks = memory;
  made->free = ~std::uint64_t{0} >> (64 - blocks);
  made->size = static_cast<std::uint32_t>(size);
  open_chunk(stack, *made);
  return made;
}
inline void free_chunk(counted_stack& stack, chunk& of) noexcept {
  close_chunk(stack, of);
  std::free(of.blocks);
  std::free(&of);
}

/// Returns a chunk with a free block of `bytes` bytes or more, which are at most max_block; null without memory.
inline chunk* chunk_for(counted_stack& stack, std::size_t bytes) noexcept {
  chunk* const open = stack.chunks[class_of(bytes)];
  return open != nullptr ? open : add_chunk(stack, size_of_class(class_of(bytes)));
}

inline void* take_block(counted_stack& stack, chunk& from) noexcept {
  const auto index = static_cast<std::size_t>(__builtin_ctzll(from.free));
  from.free &= from.free - 1;
  ++from.used;
  if (from.free == 0) {
    close_chunk(stack, from);
  }
  return from.blocks + index * from.size;
}

inline void give_block_back(counted_stack& stack, chunk& of, void* block) noexcept {
  const auto index = static_cast<std::uint32_t>(static_cast<char*>(block) - of.blocks) / of.size;
  if (of.free == 0) {
    open_chunk(stack, of);
  }
  of.free |= std::uint64_t{1} << index;
  if (--of.used == 0 && (of.next != nullptr || of.previous != nullptr)) [[unlikely]] {
    free_chunk(stack, of);
  }
}

/// Frees the chunks of a share stack without coroutines.
inline void free_chunks(counted_stack& stack) noexcept {
  for (chunk* open : stack.chunks) {
    if (open != nullptr) {
      free_chunk(stack, *open);
    }
  }
}

}  // namespace pirn_aco
