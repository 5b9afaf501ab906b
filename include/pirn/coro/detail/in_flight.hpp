// Exceptions in flight belong to the context that threw them, but the C++ runtime keeps one list per OS thread. Before
// a switch, each side of a coroutine checks whether any are in flight on this thread, and if so takes them out of that
// list meanwhile. This check also covers the open blocks of bodies (body_blocks.hpp), which a yield takes along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/stored_peer.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A sentinel that looks like exceptions in flight, so that a thread's first check takes the slow path.
inline exception_globals not_looked_up{nullptr, 1};
/// The exception globals of this OS thread.
__attribute__((used)) inline constinit thread_local exception_globals* in_flight_here asm(
    "pirn_in_flight_" PIRN_ABI_NAME) __attribute__((tls_model("initial-exec"))) = &not_looked_up;

/// Makes every switch of a coroutine take the slow path for as long as bodies have open blocks on this OS thread.
PIRN_COLD inline void watch_blocks_of_bodies() noexcept {
  asm volatile("");
  in_flight_here = &not_looked_up;
}

PIRN_COLD inline exception_globals* in_flight_out_of_line() noexcept {
  asm volatile("");
  return in_flight_here;
}

/// Returns whether exceptions may be in flight on this OS thread. Read by an asm, so that no compiler caches the value
/// across a switch, after which the thread may be another one.
PIRN_ALWAYS_INLINE bool maybe_in_flight() noexcept {
#if defined(__x86_64__) && !defined(__ILP32__)
  const exception_globals* here;
#if !defined(__PIC__) || defined(__PIE__)
  asm volatile("movq %%fs:pirn_in_flight_" PIRN_ABI_NAME "@tpoff, %0" : "=r"(here));
#else
  asm volatile("movq pirn_in_flight_" PIRN_ABI_NAME
               "@gottpoff(%%rip), %0\n\t"
               "movq %%fs:(%0), %0"
               : "=r"(here));
#endif
  return here->bits() != 0;
#else
  return in_flight_out_of_line()->bits() != 0;
#endif
}

/// Removes the exceptions in flight from the thread while it lives. Another thread may destroy it.
class saved_exception_state {
 public:
  PIRN_COLD saved_exception_state() noexcept {
    exception_globals& here = exception_globals::of_thread();
    in_flight_here = bodies_have_blocks() ? &not_looked_up : &here;
    kept_ = std::exchange(here, {});
  }
  PIRN_COLD ~saved_exception_state() { exception_globals::of_thread() = kept_; }
  saved_exception_state(const saved_exception_state&) = delete;
  saved_exception_state& operator=(const saved_exception_state&) = delete;

 private:
  exception_globals kept_;
};

/// Calls `step` with copies, so that the originals may stay in registers. It reads the first `sent` words only.
template <std::size_t sent = arch::value_words, class Step>
PIRN_ALWAYS_INLINE void with_copies(arch::peer& to, arch::word (&words)[arch::value_words], sanitizer_peer& sanitizer,
                                    Step&& step) {
  arch::peer to_copy = to;
  arch::word word_copies[arch::value_words];
  for (std::size_t i = 0; i < sent; ++i) {
    word_copies[i] = words[i];
  }
  sanitizer_peer sanitizer_copy = sanitizer;
  step(to_copy, word_copies, sanitizer_copy);
  to = to_copy;
  for (std::size_t i = 0; i < arch::value_words; ++i) {
    words[i] = word_copies[i];
  }
  sanitizer = sanitizer_copy;
}

PIRN_COLD inline void transfer_in_flight(arch::peer& to, arch::word (&words)[arch::value_words],
                                         sanitizer_peer& sanitizer) noexcept {
  const saved_exception_state kept;
  sanitizer.leave();
  arch::transfer(to, words);
  sanitizer.arrive();
}
/// The `transfer_in_flight` of a coroutine that yields, on the stack `mine`. Throws as take_blocks, before any change.
PIRN_COLD inline void yield_in_flight(arch::peer& to, arch::word (&words)[arch::value_words], sanitizer_peer& sanitizer,
                                      const body_stack& mine) {
  if (bodies_have_blocks()) {
    const blocks_elsewhere kept(&mine, stack_position());
    transfer_in_flight(to, words, sanitizer);
  } else {
    transfer_in_flight(to, words, sanitizer);
  }
}
/// Resumes `to`, which becomes our resumer's peer, and exchanges the words; exceptions in flight stay with this side.
PIRN_ALWAYS_INLINE void transfer(arch::peer& to, arch::word (&words)[arch::value_words],
                                 sanitizer_peer& sanitizer) noexcept {
  if (maybe_in_flight()) [[unlikely]] {
    with_copies(to, words, sanitizer,
                [](auto&... copies) __attribute__((always_inline)) { transfer_in_flight(copies...); });
  } else {
    sanitizer.leave();
    arch::transfer(to, words);
    sanitizer.arrive();
  }
}
/// The `transfer` of a yield from the stack [limit, top), which also takes the open blocks of that stack along.
PIRN_ALWAYS_INLINE void transfer_back(arch::peer& to, arch::word (&words)[arch::value_words], sanitizer_peer& sanitizer,
                                      arch::word limit, arch::word top) {
  if (maybe_in_flight()) [[unlikely]] {
    with_copies(to, words, sanitizer, [=](auto&... copies) __attribute__((always_inline)) {
      yield_in_flight(copies..., body_stack{limit, top});
    });
  } else {
    sanitizer.leave();
    arch::transfer(to, words);
    sanitizer.arrive();
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
