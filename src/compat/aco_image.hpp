// A coroutine's memory in the implementation of aco.h: where its image lies, and how that is copied out and in.
//
// A coroutine and a small image of it are one allocation:
//
//      +----------------------------+
//      | aco_t                      |  112 bytes on x86-64
//      +----------------------------+
//      | room                       |  `room` bytes: the image, while it fits
//      +----------------------------+
//      | sanitizer_state            |  in programs with a sanitizer
//      +----------------------------+
//
//      an image:   kept registers, without the zeros at the low end | valid_sz bytes of frames, from save_stack.ptr
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "aco.h"
#include "compat/aco_blocks.hpp"
#include "compat/aco_line.hpp"
#include "compat/aco_sanitizer.hpp"
#include "compat/aco_switch.hpp"
#include "pirn/stack/detail/image_copy.hpp"

namespace pirn_aco {

using word = std::uintptr_t;

/// The smallest block of malloc for `bytes`, where blocks are multiples of 16, each with a word of malloc's in it.
constexpr std::size_t malloc_size(std::size_t bytes) noexcept {
  return ((bytes + sizeof(void*) + 15) & ~std::size_t{15}) - sizeof(void*);
}
/// Room for an image beside a coroutine: the word of alignment of a body without any other live data.
constexpr std::size_t room = malloc_size(sizeof(aco_t) + 8) - sizeof(aco_t);

// ---- misuse: the process ends -------------------------------------------------------------------------------------

/// `misused` is called from a function that is not inlined: the usual path has no frame.
[[noreturn, gnu::cold, gnu::noinline]] inline void misused(const char* how) noexcept {
  (line() << "pirn: " << how).die();
}

inline void* allocate(std::size_t bytes, const char* where, const char* what) noexcept {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) {
    (line() << "pirn: " << where << ": memory exhausted: no " << bytes << " bytes for " << what).die();
  }
  return memory;
}

// ---- images -------------------------------------------------------------------------------------------------------

/// Set in aco_t::kept of a coroutine whose image is in a separate buffer; the other bits are its number of registers.
constexpr unsigned char outside = 0x80;
/// Set beside it if the buffer is a block of a chunk, and not of malloc.
constexpr unsigned char in_chunk = 0x40;

PIRN_ALWAYS_INLINE word* room_of(aco_t* co) noexcept { return reinterpret_cast<word*>(co + 1); }
inline sanitizer_state& sanitizer_state_of(aco_t* co) noexcept {
  return *reinterpret_cast<sanitizer_state*>(reinterpret_cast<char*>(co + 1) + room);
}
PIRN_ALWAYS_INLINE word* sp_of(const aco_t* co) noexcept { return static_cast<word*>(co->reg[ACO_REG_IDX_SP]); }
PIRN_ALWAYS_INLINE bool is_outside(const aco_t* co) noexcept { return (co->kept & outside) != 0; }
PIRN_ALWAYS_INLINE std::size_t kept_of(const aco_t* co) noexcept { return co->kept & (in_chunk - 1U); }
/// Returns its separate buffer. The first register of an image there lies in the room beside the coroutine.
PIRN_ALWAYS_INLINE word* buffer_of(const aco_t* co) noexcept {
  const std::size_t kept = kept_of(co);
  return static_cast<word*>(co->save_stack.ptr) - (kept != 0 ? kept - 1 : 0);
}

/// Returns where its chunk is kept, if its buffer lies in one. See aco_slab.hpp.
inline chunk*& chunk_of(aco_t* co) noexcept;

/// Frees its separate buffer.
inline void free_image(aco_t* co) noexcept {
  word* const buffer = buffer_of(co);
  if ((co->kept & in_chunk) != 0) {
    give_block_back(counted(co->share_stack), *chunk_of(co), buffer);
    return;
  }
  // glibc's free reads and writes the word before the next block. That of a later block is fetched here, for coroutines
  // that are destroyed in the order in which they were first saved.
  constexpr std::uintptr_t blocks_ahead = 12;
  const auto at = reinterpret_cast<std::uintptr_t>(buffer) + blocks_ahead * (co->save_stack.sz + sizeof(word));
  __builtin_prefetch(reinterpret_cast<const void*>(at - sizeof(word)), 1);
  std::free(buffer);
}

/// Allocates a larger buffer for it, without copying the contents.
[[gnu::cold, gnu::noinline]] inline word* grow(aco_t* co, std::size_t bytes) noexcept {
  aco_save_stack_t& image = co->save_stack;
  std::size_t amortized = image.sz;
  if (is_outside(co)) {
    amortized += image.sz / 2;
    free_image(co);
  }
  co->kept = outside;
  const std::size_t min_bytes = bytes > amortized ? bytes : amortized;
  counted_stack& stack = counted(co->share_stack);
  if (min_bytes <= max_block && stack.coroutines >= many_coroutines && !watched()) {
    if (chunk* const from = chunk_for(stack, min_bytes)) {
      chunk_of(co) = from;
      co->kept = outside | in_chunk;
      image.sz = from->size;
      return static_cast<word*>(take_block(stack, *from));
    }
  }
  image.sz = malloc_size(min_bytes) > min_bytes ? malloc_size(min_bytes)
                                                : min_bytes;  // allocating a size that wraps around fails anyway
  return static_cast<word*>(allocate(image.sz, "aco_resume", "the image of a coroutine"));
}

PIRN_ALWAYS_INLINE void count_save(aco_save_stack_t& image, std::size_t size) noexcept {
  image.valid_sz = size;
  image.max_cpsz = size > image.max_cpsz ? size : image.max_cpsz;
  image.ct_save += size != 0 ? 1 : 0;
}
/// Does the remaining work after its image has been copied in.
PIRN_ALWAYS_INLINE void settle(aco_t* co) noexcept {
  aco_share_stack_t& on = *co->share_stack;
  const std::size_t size = co->save_stack.valid_sz;
  co->save_stack.ct_restore += size != 0 ? 1 : 0;
  on.align_validsz = size + sizeof(void*);
  on.owner = co;
}
/// Returns the size of its frames in bytes, while it is suspended on its stack. A function that has jumped to aco_yield
/// has none: its stack pointer is above where it began.
PIRN_ALWAYS_INLINE std::size_t live_size(const aco_t* co) noexcept {
  const auto* const sp = static_cast<const char*>(co->reg[ACO_REG_IDX_SP]);
  const auto* const end = static_cast<const char*>(co->share_stack->align_retptr);
  return sp < end ? static_cast<std::size_t>(end - sp) : 0;
}
PIRN_ALWAYS_INLINE void clear_registers(word* sp) noexcept {
  __builtin_memset(sp - kept_words, 0, kept_words * sizeof(word));
}

/// Copies out a coroutine that is suspended and owns its stack.
PIRN_ALWAYS_INLINE void save(aco_t* co) noexcept {
  const word* const sp = sp_of(co);
  const std::size_t size = live_size(co);
  if (size > co->share_stack->align_limit - kept_words * sizeof(word)) [[unlikely]] {
    misused("aco_resume: a coroutine has left its share stack");
  }
  unpoison(sp - kept_words, size + kept_words * sizeof(word));
  std::size_t kept = kept_words;
  while (kept != 0 && *(sp - kept) == 0) {
    --kept;
  }
  const word* from = sp - kept;
  std::size_t bytes = kept * sizeof(word) + size;
  word* to = room_of(co);
  unsigned char where = 0;
  if (is_outside(co) || bytes > room) {
    if (kept != 0) {
      *to = *from++;
      bytes -= sizeof(word);
    }
    to = is_outside(co) && bytes <= co->save_stack.sz ? buffer_of(co) : grow(co, bytes);
    where = co->kept & (outside | in_chunk);
  }
  pirn::detail::copy_image(to, from, bytes);
  co->kept = static_cast<unsigned char>(kept | where);
  co->save_stack.ptr = to + (sp - from);
  count_save(co->save_stack, size);
}

/// Copies it in: its stack has no frames.
PIRN_ALWAYS_INLINE void load(aco_t* co) noexcept {
  word* const sp = sp_of(co);
  const std::size_t kept = kept_of(co);
  const word* from = room_of(co);
  word* to = sp - kept;
  std::size_t bytes = kept * sizeof(word) + co->save_stack.valid_sz;
  clear_registers(sp);
  if (is_outside(co)) {
    if (kept != 0) {
      *to++ = *from;
      bytes -= sizeof(word);
    }
    from = buffer_of(co);
  }
  pirn::detail::copy_image(to, from, bytes);
  settle(co);
}

/// Returns whether it has not ended, and its image has no registers: the case to optimize for ten million coroutines.
PIRN_ALWAYS_INLINE bool is_simple(const aco_t* co) noexcept {
  static_assert(offsetof(aco_t, kept) == offsetof(aco_t, is_end) + 1);
  std::uint16_t both;
  __builtin_memcpy(&both, &co->is_end, sizeof both);
  return (both & ~((outside | in_chunk) << 8)) == 0;  // all three ISAs are little-endian
}

/// `save` and `load` of simple coroutines with small images of one size, which each has had before, without a frame and
/// without a call. Returns whether it has done so.
PIRN_ALWAYS_INLINE bool exchange_small(aco_t* owner, aco_t* co) noexcept {
  if (owner == nullptr || !is_simple(owner)) {
    return false;
  }
  aco_share_stack_t& on = *co->share_stack;
  word* const sp = sp_of(owner);
  const auto size = static_cast<std::size_t>(static_cast<char*>(on.align_retptr) - reinterpret_cast<const char*>(sp));
  if (size != owner->save_stack.valid_sz || size != co->save_stack.valid_sz || size == 0 ||
      size >= pirn::detail::small_image) {
    return false;
  }
  word any = 0;
  for (std::size_t i = 1; i <= kept_words; ++i) {
    // Volatile: a wider read would wait until the words just stored one by one are in the cache.
    any |= *const_cast<const volatile word*>(sp - i);
  }
  if (any != 0) {
    return false;
  }
  pirn::detail::fetch_ahead(owner, co);
  if (is_outside(co)) {
    pirn::detail::fetch_ahead(owner->save_stack.ptr, co->save_stack.ptr);
  }
  // The two continue at this sp; the words below it are zeros for registers.
  pirn::detail::exchange_small_images(reinterpret_cast<char*>(sp), static_cast<char*>(owner->save_stack.ptr),
                                      static_cast<const char*>(co->save_stack.ptr), size);
  owner->save_stack.ct_save += 1;
  co->save_stack.ct_restore += 1;
  on.align_validsz = size + sizeof(void*);
  on.owner = co;
  return true;
}

/// `save` and `load` of coroutines with large images of one size and as many registers, which each has had before.
/// Returns whether it has done so.
PIRN_ALWAYS_INLINE bool exchange_large(aco_t* owner, aco_t* co) noexcept {
  const std::size_t size = live_size(owner);
  if (!pirn::detail::is_exchanged(size) || size != owner->save_stack.valid_sz || size != co->save_stack.valid_sz ||
      owner->kept != co->kept || !is_outside(co) || watched()) {
    return false;
  }
  word* const sp = sp_of(owner);
  const std::size_t kept = kept_of(co);
  word zeros = 0;
  for (std::size_t i = kept + 1; i <= kept_words; ++i) {
    zeros |= *(sp - i);
  }
  if (zeros != 0 || (kept != 0 && *(sp - kept) == 0)) {
    return false;
  }
  const std::size_t more = kept != 0 ? kept - 1 : 0;
  if (kept != 0) {  // the first lies beside the coroutine
    *room_of(owner) = *(sp - kept);
    *(sp - kept) = *room_of(co);
  }
  pirn::detail::exchange_large_images(reinterpret_cast<char*>(sp - more), reinterpret_cast<char*>(buffer_of(owner)),
                                      reinterpret_cast<const char*>(buffer_of(co)), size + more * sizeof(word));
  count_save(owner->save_stack, size);
  settle(co);
  return true;
}

}  // namespace pirn_aco
