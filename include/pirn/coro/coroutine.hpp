// Asymmetric coroutines without a scheduler: the resumer gets control back when the coroutine yields or ends.
//
//   pirn::coroutine<int(int)> sum([](auto& yield, int first) {
//     int total = first;
//     while (total < 100) total += yield(total);
//     return total;
//   });
//   sum.resume(1);  // 1
//   sum.resume(5);  // 6
//
// A coroutine object holds its peer while it is suspended, and the stack holds no pointer to the object. So it may be
// moved then, and a local one lives in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/detail/coroutine_core.hpp"
#include "pirn/coro/detail/stack_source.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

template <class Signature>
class coroutine;

/// A function that can suspend half-way. `Out(In...)`: resume sends In... and returns Out, from a yield or from the
/// body's return. A body is any callable `Out body(coroutine<Out(In...)>::yield& yield, In... first)`. The types may be
/// any movable types, references and void; trivially copyable values travel in registers, up to four words each way.
///
/// Move-only. Not thread-safe: one thread at a time may use an object, but any thread may resume it. Destroying a
/// suspended coroutine unwinds its stack: destructors run, on the calling thread. Destroying or moving a running one
/// ends the program with a message.
template <class Out, class... In>
class coroutine<Out(In...)> {
  static_assert(detail::values_move<Out, In...>, "values move from one side to the other");
  using outs = detail::none_or_one<Out>;
  using ins = void(In...);

 public:
  /// The first argument of a body, by which it suspends.
  using yield = detail::coroutine_yield<outs, ins>;

  /// Makes an empty coroutine, which counts as done.
  coroutine() noexcept = default;
  /// Makes a coroutine suspended before its first statement, on a stack of default_stack_pool(). Throws
  /// std::system_error if there is no stack, std::length_error if the stack has no room for the body object, and any
  /// exception from moving the body.
  template <class Body>
    requires detail::coroutine_body<Body, yield&, In...>
  PIRN_ALWAYS_INLINE explicit coroutine(Body&& body)
      : origin_(default_stack_pool(), default_stack_size, "pirn: coroutine") {
    construct(std::forward<Body>(body));
  }
  /// Makes a coroutine on a stack of `allocator`: a pool, a cache of one, a frame_buffer or any other stack_allocator.
  /// It must outlive the coroutine, and gets the stack back when the coroutine is destroyed, on the destroying thread.
  /// Throws as the constructor on a stack of default_stack_pool().
  template <detail::gives_stacks Allocator, class Body>
    requires detail::coroutine_body<Body, yield&, In...>
  PIRN_ALWAYS_INLINE coroutine(Allocator& allocator, Body&& body)
      : origin_(allocator, detail::usual_size<Allocator>, "pirn: coroutine") {
    construct(std::forward<Body>(body));
  }
  template <stack_allocator Allocator, class Body>
    requires detail::coroutine_body<Body, yield&, In...>
  PIRN_ALWAYS_INLINE coroutine(Allocator& allocator, std::size_t stack_size, Body&& body)
      : origin_(allocator, stack_size, "pirn: coroutine") {
    construct(std::forward<Body>(body));
  }
  /// Makes a coroutine in the caller's memory, which must outlive it. Throws std::length_error.
  template <class Body>
    requires detail::coroutine_body<Body, yield&, In...>
  PIRN_ALWAYS_INLINE coroutine(const stack& memory, Body&& body) : origin_(memory) {
    construct(std::forward<Body>(body));
  }

  PIRN_ALWAYS_INLINE coroutine(coroutine&& other) noexcept
      : to_(other.to_), origin_(other.origin_), sanitizer_(other.sanitizer_), hooks_(other.hooks_) {
    if (to_.sp == runs) [[unlikely]] {
      detail::running_coroutine("moved");
    }
    other.to_ = {};
    other.origin_ = {};
    other.hooks_ = {};
  }
  coroutine& operator=(coroutine&& other) noexcept {
    coroutine taken(std::move(other));  // first, since the body that ends now may own it
    std::destroy_at(this);
    new (this) coroutine(std::move(taken));
    return *this;
  }
  PIRN_ALWAYS_INLINE ~coroutine() {
    clear();
    hooks_.destroy();
    origin_.give_back();
  }

  /// Runs the coroutine until it yields or ends, and returns the value that it yielded or returned. Rethrows an
  /// exception that leaves the body, after which the coroutine is done. Throws std::logic_error if it is already done,
  /// empty or running.
  PIRN_ALWAYS_INLINE Out resume(In... in) {
    arch::peer to = to_.get();
    arch::word words[arch::value_words];
    typename detail::value_list<In...>::packed_args packed;
    packed.pack(words, in...);
    if (to.pc == nullptr) [[unlikely]] {
      if (to_.sp <= runs) {
        to_.sp == runs ? detail::resumed_while_running() : detail::resumed_after_end();
      }
      to_.sp = runs;
      begin(to, words);
    } else {
      to_.pc = nullptr;
      to_.sp = runs;
      detail::forget(words, detail::value_list<In...>::words_sent);
      detail::transfer(to, words, sanitizer_);
    }
    if (arch::is_tagged(to)) [[unlikely]] {
      to_ = detail::stored_peer(to);
      sanitizer_.forget();
      if (words[0] != static_cast<arch::word>(detail::last_word::returned)) [[unlikely]] {
        detail::ended_otherwise(words[0], words[1]);
      }
      if constexpr (std::is_void_v<Out>) {
        return;
      } else {
        return detail::result_of<Out>::take(words);
      }
    }
    if (to.pc == nullptr) {
      __builtin_unreachable();  // the next resume need not test for this
    }
    to_ = detail::stored_peer(to);
    if constexpr (!std::is_void_v<Out>) {
      return detail::value_list<Out>::unpack(words,
                                             [](auto&& value) -> Out { return static_cast<decltype(value)>(value); });
    }
  }

  /// Returns whether there is nothing to resume: the body has ended, by return, exception or reset(), or there never
  /// was one.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool done() const noexcept { return to_.sp <= arch::peer_tag; }

  /// Returns whether the coroutine is running, or waiting for another one that it resumed.
  [[nodiscard]] bool running() const noexcept { return to_.sp == runs; }

  /// Ends the body now, by unwinding it if it is suspended, and keeps the stack. Throws std::logic_error if it is
  /// running.
  void reset() {
    if (to_.sp == runs) {
      detail::coroutine_misused("pirn: coroutine: reset while it is running");
    }
    clear();
  }
  /// Ends the body as `reset()` does, then begins anew with another body on the same stack. Throws std::logic_error if
  /// the coroutine has no stack, and std::length_error or any exception from moving the body; after these two it is
  /// done and keeps its stack.
  template <class Body>
    requires detail::coroutine_body<Body, yield&, In...>
  PIRN_ALWAYS_INLINE void reset(Body&& body) {
    if (!done()) [[unlikely]] {
      reset();
    }
    if (!origin_.memory) [[unlikely]] {
      detail::coroutine_misused("pirn: coroutine: reset() called on a coroutine that has no stack");
    }
    hooks_.destroy();
    construct<on_failure::keep_stack>(std::forward<Body>(body));
  }

 private:
  // When pc is null, sp says why the coroutine is not suspended: null if it is empty, `ended_peer` if it has ended,
  // `runs` if it is running. If it has not begun, sp is its record and fp its `ways`.
  static constexpr arch::word runs = 2;  // the largest value that is not an address

  /// The functions that depend on the body's type before the body has begun.
  struct ways {
    void (*begin)(arch::peer& to, arch::word (&words)[arch::value_words], sanitizer_peer& sanitizer) noexcept;
    void (*destroy)(void* record) noexcept;
  };
  template <class Body>
  struct ways_of {
    using entry = detail::coroutine_entry<outs, ins, Body>;
    using record = typename entry::record;

    static void begin(arch::peer& to, arch::word (&words)[arch::value_words], sanitizer_peer& sanitizer) noexcept {
      auto* const fresh = static_cast<record*>(to.sp);
      arch::word spill[arch::value_words];
      entry::pack_first(fresh, words, spill);
      sanitizer.leave();
      arch::transfer_into<&entry::enter>(fresh, to, words);
      sanitizer.arrive();
    }
    static void destroy(void* fresh) noexcept {
      auto& self = *static_cast<record*>(fresh);
      std::destroy_at(std::addressof(self.body));
      self.gone();
    }
    static constexpr ways all{&begin, &destroy};
  };

  enum class on_failure : std::uint8_t { give_stack_back, keep_stack };

  template <on_failure OnFailure = on_failure::give_stack_back, class Body>
  PIRN_ALWAYS_INLINE void construct(Body&& body) {
    using stored = std::decay_t<Body>;
    using record = detail::coroutine_record<stored>;
    const auto top = reinterpret_cast<std::uintptr_t>(origin_.memory.top());
    const std::uintptr_t at = (top - sizeof(record)) & ~(std::uintptr_t{alignof(record)} - 1);
    if (origin_.memory.size() < sizeof(record) + alignof(record) + detail::min_stack) [[unlikely]] {
      if constexpr (OnFailure == on_failure::give_stack_back) {
        origin_.give_back_unused();
      }
      detail::no_room_for_body();
    }
    auto* const fresh = reinterpret_cast<record*>(at);
    if constexpr (std::is_nothrow_constructible_v<stored, Body&&>) {
      new (fresh) record(origin_.memory, std::forward<Body>(body));
    } else {
      try {
        new (fresh) record(origin_.memory, std::forward<Body>(body));
      } catch (...) {
        if constexpr (OnFailure == on_failure::give_stack_back) {
          origin_.give_back_unused();
        }
        throw;
      }
    }
    if (origin_.marked()) [[unlikely]] {
      fresh->mark();
      detail::stack_end::put(origin_.memory.limit());
    }
    hooks_ = detail::sanitizer_ref(fresh->sanitizer);
    sanitizer_ = sanitizer_peer(fresh->sanitizer);
    to_ = {nullptr, reinterpret_cast<arch::word>(fresh), const_cast<ways*>(&ways_of<stored>::all)};
  }

  PIRN_ALWAYS_INLINE void begin(arch::peer& to, arch::word (&words)[arch::value_words]) {
    const auto* const how = static_cast<const ways*>(to.fp);
#if defined(__clang__)
    constexpr std::size_t sent = detail::value_list<In...>::words_sent;  // the others may be those of the last switch
#else
    constexpr std::size_t sent = arch::value_words;  // gcc would not find the others in their registers
#endif
    if (detail::maybe_in_flight()) [[unlikely]] {
      detail::with_copies<sent>(to, words, sanitizer_, [how](auto&... copies) __attribute__((always_inline)) {
        begin_in_flight(*how, copies...);
      });
    } else {
      detail::with_copies<sent>(to, words, sanitizer_,
                                [how](auto&... copies) __attribute__((always_inline)) { how->begin(copies...); });
    }
  }
  PIRN_COLD static void begin_in_flight(const ways& how, arch::peer& to, arch::word (&words)[arch::value_words],
                                        sanitizer_peer& sanitizer) {
    const detail::saved_exception_state kept;
    how.begin(to, words, sanitizer);
  }

  /// Ends a body that has not ended.
  PIRN_ALWAYS_INLINE void clear() noexcept {
    if (!done()) [[unlikely]] {
      const arch::peer last = to_.get();
      to_ = detail::stored_peer(arch::ended_peer());
      if (last.pc != nullptr) {
        detail::cancel_coroutine(last, sanitizer_);
      } else if (last.sp == reinterpret_cast<void*>(runs)) {
        detail::destroyed_while_running();
        to_ = detail::stored_peer(last);
        origin_ = {};
        hooks_ = {};
      } else {
        static_cast<const ways*>(last.fp)->destroy(last.sp);
      }
    }
  }

  detail::stored_peer to_;
  detail::stack_source origin_;
  [[no_unique_address]] sanitizer_peer sanitizer_;
  [[no_unique_address]] detail::sanitizer_ref hooks_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
