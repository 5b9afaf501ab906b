// Where the coroutines of a share stack lie: in slabs, so that making and destroying one is no call of malloc.
//
//      +------+---------------------+---------------------+-----+--------+--------+-----
//      | slab | aco_t, room, slab*  | aco_t, room, slab*  | ... | chunk* | chunk* | ...    of the images
//      +------+---------------------+---------------------+-----+--------+--------+-----
//
// A slab that is empty is freed, unless it is the only one with a free place.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "aco.h"
#include "compat/aco_counted_stack.hpp"
#include "compat/aco_image.hpp"

namespace pirn_aco {

/// A coroutine, and the room for its image.
struct place {
  aco_t co;
  char image[room];
  union {
    slab* of;     // while it is used
    place* next;  // free
  };
};
static_assert(sizeof(place) % 16 == 0);

struct alignas(16) slab {
  slab* next;  // both of the slabs with a free place
  slab* previous;
  place* free;     // given back
  unsigned fresh;  // places at its end that were never used
  unsigned used;
  unsigned places;
};

inline place* places_of(slab& of) noexcept { return reinterpret_cast<place*>(&of + 1); }

inline void open_slab(counted_stack& stack, slab& of) noexcept {
  of.next = stack.open;
  of.previous = nullptr;
  if (stack.open != nullptr) {
    stack.open->previous = &of;
  }
  stack.open = &of;
}
inline void close_slab(counted_stack& stack, slab& of) noexcept {
  (of.previous != nullptr ? of.previous->next : stack.open) = of.next;
  if (of.next != nullptr) {
    of.next->previous = of.previous;
  }
}

[[gnu::cold, gnu::noinline]] inline void add_slab(counted_stack& stack) noexcept {
  constexpr unsigned first = 4;
  constexpr unsigned max = 256;
  stack.places = stack.places == 0 ? first : stack.places < max ? 2 * stack.places : max;
  auto* const made = static_cast<slab*>(
      allocate(sizeof(slab) + stack.places * (sizeof(place) + sizeof(chunk*)), "aco_create", "a coroutine"));
  *made = slab{};
  made->fresh = made->places = stack.places;
  open_slab(stack, *made);
}

inline chunk*& chunk_of(aco_t* co) noexcept {
  auto* const mine = reinterpret_cast<place*>(co);
  slab& of = *mine->of;
  return reinterpret_cast<chunk**>(places_of(of) + of.places)[mine - places_of(of)];
}

/// Returns a place for a coroutine of this share stack.
inline aco_t* take_place(counted_stack& stack) noexcept {
  if (stack.open == nullptr) [[unlikely]] {
    add_slab(stack);
  }
  slab& from = *stack.open;
  place* taken = from.free;
  if (taken != nullptr) {
    from.free = taken->next;
  } else {
    taken = places_of(from) + (from.places - from.fresh);
    --from.fresh;
  }
  taken->of = &from;
  if (++from.used == from.places) {
    close_slab(stack, from);
  }
  return &taken->co;
}

inline void give_place_back(counted_stack& stack, aco_t* co) noexcept {
  static_assert(offsetof(place, co) == 0);
  auto* const given = reinterpret_cast<place*>(co);
  slab& of = *given->of;
  given->next = of.free;
  of.free = given;
  if (of.used-- == of.places) {
    open_slab(stack, of);
  }
  if (of.used == 0 && (of.next != nullptr || of.previous != nullptr)) [[unlikely]] {
    close_slab(stack, of);
    std::free(&of);
  }
}

/// Frees a share stack's data, when it has no coroutine.
inline void free_counted(aco_share_stack_t* stack) noexcept {
  std::free(counted(stack).open);
  free_chunks(counted(stack));
  std::free(stack);
}

}  // namespace pirn_aco
