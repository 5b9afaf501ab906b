// Frames from memory that grows and shrinks with a chain of awaits, as a stack does: what they could gain at best.
// There is one such stack in the program, at an address that the linker knows. A library would need one for each chain
// that waits, would have to find the one of the running chain, and would hold a segment for each instead of a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace bench {

class linear_frames {
 public:
  [[gnu::always_inline]] static void* allocate(std::size_t size, std::size_t /*alignment*/) {
    block* const made = top;
    char* const after = reinterpret_cast<char*>(made + 1) + rounded(size);
    if (after > memory + sizeof memory - sizeof(block)) [[unlikely]] {
      throw std::bad_alloc();
    }
    top = ::new (after) block{made, false};
    return made + 1;
  }
  [[gnu::always_inline]] static void deallocate(void* frame, std::size_t size, std::size_t /*alignment*/) noexcept {
    block* const mine = static_cast<block*>(frame) - 1;
    if (static_cast<void*>(top) != static_cast<char*>(frame) + rounded(size)) [[unlikely]] {
      mine->freed = true;
      return;
    }
    top = mine;
    while (top->below != nullptr && top->below->freed) [[unlikely]] {
      top = top->below;
    }
  }

 private:
  /// Before each frame.
  struct alignas(16) block {
    block* below;  ///< the block of the frame below
    bool freed;    ///< out of order: taken back with the one above
  };
  static std::size_t rounded(std::size_t size) { return (size + 15) & ~std::size_t{15}; }

  alignas(64) static inline char memory[1 << 20];
  static inline block* top = ::new (memory) block{nullptr, false};
};

}  // namespace bench
