// How bytes get from a shared stack into an image and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
/// Copies words of frames, whose red zones memcpy would report. Volatile, since the loop would otherwise become a
/// memcpy.
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) inline void copy_image(void* to,
                                                                                                const void* from,
                                                                                                std::size_t size) {
  auto* out = static_cast<std::size_t volatile*>(to);
  const auto* in = static_cast<const std::size_t volatile*>(from);
  for (std::size_t i = 0; i < size / sizeof(std::size_t); ++i) {
    out[i] = in[i];
  }
}
#else
inline void copy_image(void* to, const void* from, std::size_t size) noexcept { std::memcpy(to, from, size); }
#endif

/// Fewer bytes than this are copied without a call; from about this size on, a call of memcpy is faster.
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
inline constexpr std::size_t small_image = 0;
#else
inline constexpr std::size_t small_image = 256;
#endif

template <std::size_t bytes>
PIRN_ALWAYS_INLINE void move_if(std::size_t size, char*& to, const char*& from) noexcept {
  if ((size & bytes) != 0) {
    __builtin_memcpy(to, from, bytes);  // the widest moves that the target has
    to += bytes;
    from += bytes;
  }
}

/// Copies `size` bytes, which are whole words and less than small_image. Each byte is written once, so that a word that
/// is read next is forwarded from the store that wrote it. The next copy of as many bytes reads them in the same
/// pieces.
PIRN_ALWAYS_INLINE void copy_small_image(void* target, const void* source, std::size_t size) noexcept {
  auto* to = static_cast<char*>(target);
  const auto* from = static_cast<const char*>(source);
  move_if<128>(size, to, from);
  move_if<64>(size, to, from);
  move_if<32>(size, to, from);
  move_if<16>(size, to, from);
  move_if<8>(size, to, from);
  if constexpr (sizeof(void*) < 8) {
    move_if<4>(size, to, from);
  }
}

/// Words that are moved together. They stay in registers, unlike words that are copied by way of an array.
template <std::size_t bytes>
struct piece_of {
  typedef std::size_t type __attribute__((vector_size(bytes), aligned(sizeof(std::size_t)), may_alias));
};

/// Exchanges `bytes` bytes at `at`, if that bit of `size` is set: those of the stack go into the image `out`, and those
/// of the image `in` onto the stack.
template <std::size_t bytes>
PIRN_ALWAYS_INLINE void exchange_if(std::size_t size, std::size_t& at, char* stack, char* out,
                                    const char* in) noexcept {
  if ((size & bytes) != 0) {
    using piece = typename piece_of<(bytes < 16 ? bytes : 16)>::type;
    for (std::size_t i = 0; i < bytes; i += sizeof(piece)) {
      const piece leaves = *reinterpret_cast<const piece*>(stack + at + i);
      const piece comes = *reinterpret_cast<const piece*>(in + at + i);
      *reinterpret_cast<piece*>(out + at + i) = leaves;
      *reinterpret_cast<piece*>(stack + at + i) = comes;
    }
    at += bytes;
  }
}
/// Exchanges `size` bytes, less than small_image, in fewer instructions than two copies take.
PIRN_ALWAYS_INLINE void exchange_small_images(char* stack, char* out, const char* in, std::size_t size) noexcept {
  std::size_t at = 0;
  exchange_if<128>(size, at, stack, out, in);
  exchange_if<64>(size, at, stack, out, in);
  exchange_if<32>(size, at, stack, out, in);
  exchange_if<16>(size, at, stack, out, in);
  exchange_if<8>(size, at, stack, out, in);
  if constexpr (sizeof(void*) < 8) {
    exchange_if<4>(size, at, stack, out, in);
  }
}

/// Images from small_image bytes to less than this are exchanged line by line; calls of memcpy copy larger ones. Not
/// under sanitizers and valgrind, which would report the comparison of frames: they hold uninitialized bytes.
#if defined(PIRN_ASAN) || defined(PIRN_TSAN) || defined(PIRN_VALGRIND)
inline constexpr std::size_t large_image = 0;
#else
inline constexpr std::size_t large_image = 3072;
#endif

inline constexpr std::size_t image_line = 64;

/// Exchanges a line, in pieces of 16 bytes.
struct line_of_16 {
  static PIRN_ALWAYS_INLINE void exchange(char* stack, char* out, const char* in) noexcept {
    using piece = std::size_t __attribute__((vector_size(16)));
    struct __attribute__((packed, may_alias)) anywhere {  // as below
      piece value;
    };
    auto* const here = reinterpret_cast<anywhere*>(stack);
    auto* const old = reinterpret_cast<anywhere*>(out);
    const auto* const next = reinterpret_cast<const anywhere*>(in);
    const piece a = here[0].value;
    const piece b = here[1].value;
    const piece c = here[2].value;
    const piece d = here[3].value;
    if (any((a ^ old[0].value) | (b ^ old[1].value) | (c ^ old[2].value) | (d ^ old[3].value))) {
      old[0].value = a;
      old[1].value = b;
      old[2].value = c;
      old[3].value = d;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      here[i].value = next[i].value;
    }
  }

 private:
  static PIRN_ALWAYS_INLINE bool any(std::size_t __attribute__((vector_size(16))) bits) noexcept {
#if defined(__SSE2__)
    typedef char bytes __attribute__((vector_size(16)));
    return __builtin_ia32_pmovmskb128(reinterpret_cast<bytes>(bits) == bytes{}) != 0xffff;
#else
    std::size_t all = 0;
    for (std::size_t i = 0; i < sizeof bits / sizeof(std::size_t); ++i) {
      all |= bits[i];
    }
    return all != 0;
#endif
  }
};

/// Exchanges `size` bytes as two copies would, but does not write lines of `out` that are as they were: from one turn
/// to the next only the inner frames of a coroutine change, and what is not written need not go back to memory. `out`
/// was read a turn ago, so it is in the cache. The lines from `ahead` on are prefetched.
inline PIRN_NOINLINE void exchange_lines(char* stack, char* out, const char* in, std::size_t size,
                                         const char* ahead) noexcept {
  const std::size_t rest = size % image_line;
  for (const char* const end = in + (size - rest); in != end;) {
    __builtin_prefetch(ahead);
    line_of_16::exchange(stack, out, in);
    stack += image_line;
    out += image_line;
    in += image_line;
    ahead += image_line;
  }
  __builtin_prefetch(ahead);
  exchange_small_images(stack, out, in, rest);
}

#if defined(__x86_64__)
/// As `exchange_lines`, in pieces of 32 bytes: less than half as many instructions, so that the processor looks far
/// enough ahead to load the next image while it copies this one.
__attribute__((target("avx2"))) inline PIRN_NOINLINE void exchange_lines_avx2(char* stack, char* out, const char* in,
                                                                              std::size_t size,
                                                                              const char* ahead) noexcept {
  typedef long long piece __attribute__((vector_size(32)));
  // A member of a packed structure: gcc takes a vector type of a smaller alignment for an aligned one in expressions.
  struct __attribute__((packed, may_alias)) anywhere {
    piece value;
  };
  const std::size_t rest = size % image_line;
  for (const char* const end = in + (size - rest); in != end;) {
    __builtin_prefetch(ahead);
    auto* const here = reinterpret_cast<anywhere*>(stack);
    auto* const old = reinterpret_cast<anywhere*>(out);
    const auto* const next = reinterpret_cast<const anywhere*>(in);
    const piece a = here[0].value;
    const piece b = here[1].value;
    const piece different = (a ^ old[0].value) | (b ^ old[1].value);
    if (__builtin_ia32_ptestz256(different, different) == 0) {
      old[0].value = a;
      old[1].value = b;
    }
    here[0].value = next[0].value;
    here[1].value = next[1].value;
    stack += image_line;
    out += image_line;
    in += image_line;
    ahead += image_line;
  }
  __builtin_prefetch(ahead);
  exchange_small_images(stack, out, in, rest);
}
#endif

/// Exchanges `size` bytes, from small_image to less than large_image.
PIRN_ALWAYS_INLINE void exchange_large_images(char* stack, char* out, const char* in, std::size_t size) noexcept {
  // Images that are resumed in the order of their addresses follow each other in memory.
  constexpr std::size_t bytes_ahead = 1024;
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(in) - reinterpret_cast<std::uintptr_t>(out);
  const char* const ahead = in + (apart - size < size ? bytes_ahead : 0);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) [[likely]] {
    exchange_lines_avx2(stack, out, in, size, ahead);
    return;
  }
#endif
  exchange_lines(stack, out, in, size, ahead);
}

/// Whether images of `size` bytes are exchanged by `exchange_large_images`.
PIRN_ALWAYS_INLINE constexpr bool is_exchanged(std::size_t size) noexcept {
  return size >= small_image && size < large_image;
}
/// A copy from the stack into an image, which also copies the image `in` onto the stack.
struct exchange_with {
  const char* in;
  PIRN_ALWAYS_INLINE void operator()(char* out, char* stack, std::size_t size) const noexcept {
    exchange_large_images(stack, out, in, size);
  }
};

/// Prefetches the image some turns after `in`, for images that are resumed in the order of their addresses. The
/// processor's own prefetcher does this too, but not across pages; and it stops where only half of the lines are
/// requested.
PIRN_ALWAYS_INLINE void fetch_ahead(const void* out, const void* in) noexcept {
  constexpr std::uintptr_t line = 64;
  constexpr std::uintptr_t turns = 16;
  const std::uintptr_t distance = reinterpret_cast<std::uintptr_t>(in) - reinterpret_cast<std::uintptr_t>(out);
  if (distance - line < 4 * line) {  // no loop: compilers unroll it for many more
    const auto* const ahead = static_cast<const char*>(in) + turns * distance;
    __builtin_prefetch(ahead, 1);
    if (distance >= 2 * line) {
      __builtin_prefetch(ahead + line, 1);
      if (distance >= 3 * line) {
        __builtin_prefetch(ahead + 2 * line, 1);
        if (distance >= 4 * line) {
          __builtin_prefetch(ahead + 3 * line, 1);
        }
      }
    }
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
