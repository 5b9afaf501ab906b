// The memory in which a copy_stack keeps the images of its contexts, and the statistics of the images.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Allocates memory for images: `allocate` returns `bytes` bytes aligned for a pointer, or null; `deallocate` takes
/// them back, with the same `bytes`. Called on the stack of the caller that resumes or destroys a context.
template <class A>
concept image_allocator = requires(A& allocator, void* where, std::size_t bytes) {
  { allocator.allocate(bytes) } noexcept -> std::same_as<void*>;
  { allocator.deallocate(where, bytes) } noexcept;
};

/// An image_allocator as two functions and their first argument. It refers to the allocator, which must outlive the
/// copy_stack.
struct image_memory {
  /// Uses malloc and free.
  image_memory() noexcept = default;
  image_memory(void* (*allocate_function)(void* state, std::size_t bytes) noexcept,
               void (*deallocate_function)(void* state, void* where, std::size_t bytes) noexcept, void* of) noexcept
      : allocate(allocate_function), deallocate(deallocate_function), state(of) {}
  template <image_allocator A>
    requires(!std::same_as<A, image_memory>)
  image_memory(A& allocator) noexcept  // NOLINT(google-explicit-constructor): any allocator will do
      : allocate([](void* of, std::size_t bytes) noexcept { return static_cast<A*>(of)->allocate(bytes); }),
        deallocate(
            [](void* of, void* where, std::size_t bytes) noexcept { static_cast<A*>(of)->deallocate(where, bytes); }),
        state(&allocator) {}

  /// Returns memory for an image, as `image_allocator` says.
  void* (*allocate)(void* state, std::size_t bytes) noexcept = [](void*, std::size_t bytes) noexcept {
    return std::malloc(bytes);
  };
  /// Takes the memory of an image back.
  void (*deallocate)(void* state, void* where,
                     std::size_t bytes) noexcept = [](void*, void* where, std::size_t) noexcept { std::free(where); };
  void* state = nullptr;  ///< the first argument of both
};

/// The copies that were made of one context.
struct image_statistics {
  std::size_t largest = 0;   ///< bytes of its largest image
  std::uint64_t copies = 0;  ///< how often it was copied out
  std::uint64_t bytes = 0;   ///< in all
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
