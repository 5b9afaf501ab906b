// Typed one-shot continuations: a context that can be resumed is a value, and a switch exchanges it for another one.
//
//   auto [k2, x, y] = std::move(k).resume(a, b);     a, b, x, y and both peers stay in registers
//
// The environment of a body, and the data that are needed to end it, lie on its own stack, above its frames:
//
//        +----------------------+ the stack's top
//        | colour, alignment    |
//        | record: the body, the stack, its allocator, the state of sanitizers
//        +----------------------+ a multiple of record_alignment, with a mark
//        | root frame           | of arch::prepare or arch::transfer_into
//        | continuation_entry   | finds the record above its own frame
//        | run                  | calls the body; makes the last switch
//        | ...                  |
//
// A peer is found tagged (arch::is_tagged) in two cases, and only they leave the hot path:
//   pc is null     the peer has ended; word 0 is the address of its `context_end`, on its stack, which we release
//   pc is not null the peer drops us, and waits until our stack is unwound; word 0 is the address of its `dropping`
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/continuation_body.hpp"
#include "pirn/context/detail/stack_end.hpp"
#include "pirn/context/detail/value_words.hpp"
#include "pirn/context/expert/sanitizer.hpp"

#define PIRN_INLINE_LAMBDA __attribute__((always_inline))

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

template <class... Values>
class continuation;

namespace detail {

/// The values of a return type: none of void, several of a tuple.
template <class T>
struct values_of {
  using type = type_list<T>;
};
template <>
struct values_of<void> {
  using type = type_list<>;
};
template <class... Ts>
struct values_of<std::tuple<Ts...>> {
  using type = type_list<Ts...>;
};
template <class Out, class List>
struct signature_of;
template <class Out, class... In>
struct signature_of<Out, type_list<In...>> {
  using type = Out(In...);
};

template <class Own, class Dual, class Sent, class Received>
class continuation_base;

template <class Own, class Dual, class... Sent, class... Received>
class continuation_base<Own, Dual, type_list<Sent...>, type_list<Received...>> {
  static_assert((std::is_move_constructible_v<Sent> && ...) && (std::is_move_constructible_v<Received> && ...),
                "values move from one side to the other");

 public:
  /// The type by which the other side holds this one.
  using dual = Dual;
  /// The return type of a body that ends by `finish` on a continuation of this type.
  using finished = detail::finished<Sent...>;
  /// The return type of `resume`: a continuation alone, or a tuple of it and the received values.
  using resumed = std::conditional_t<sizeof...(Received) == 0, Own, std::tuple<Own, Received...>>;

  /// Makes an empty continuation.
  continuation_base() noexcept = default;
  /// Makes a context that has not begun. Its first resume calls `body(back, sent...)`, on a stack of `size` bytes out
  /// of `allocator`. The allocator must outlive the context, and gets the stack back, on any thread, when the body has
  /// ended. Throws std::system_error (the allocator's error) or std::length_error (no room for the body object).
  template <hands_out_stacks Allocator, class Body>
  continuation_base(Allocator& allocator, Body body, std::size_t size = usual_stack_size<Allocator>)
      : continuation_base(prepared(allocate(allocator, body, size))) {}
  /// As with an allocator, but in the caller's memory, which must stay until the context has ended or is dropped.
  template <stack_memory Stack, class Body>
  continuation_base(const Stack& memory, Body body)
      : continuation_base(prepared(construct(memory, body, static_cast<void*>(nullptr)))) {}

  PIRN_ALWAYS_INLINE continuation_base(continuation_base&& other) noexcept
      : to_(other.to_), sanitizer_(other.sanitizer_) {
    other.to_ = {};
  }
  /// Takes the other's place, and then drops the context that this one stood for, as the destructor does.
  PIRN_ALWAYS_INLINE continuation_base& operator=(continuation_base&& other) noexcept {
    const arch::peer next = other.to_;
    const sanitizer_peer next_sanitizer = other.sanitizer_;
    other.to_ = {};  // before ours is looked at: it may be the same
    void *const old_pc = to_.pc, *const old_sp = to_.sp, *const old_fp = to_.fp;
    const sanitizer_peer old_sanitizer = sanitizer_;
    to_ = next;
    sanitizer_ = next_sanitizer;
    if (old_pc != nullptr) [[unlikely]] {
      dropping::drop(old_pc, old_sp, old_fp, old_sanitizer);
    }
    return *this;
  }
  /// Unwinds the stack of the suspended context: destructors run, innermost first, on it and on this OS thread. A body
  /// that has not begun is destroyed. The continuation of a thread's own stack cannot be unwound: that ends the
  /// program.
  PIRN_ALWAYS_INLINE ~continuation_base() {
    if (to_.pc != nullptr) [[unlikely]] {
      dropping::drop(to_.pc, to_.sp, to_.fp, sanitizer_);
    }
  }

  /// Whether there is something to resume.
  explicit operator bool() const noexcept { return to_.pc != nullptr; }

  /// Suspends the caller and resumes the context that this one stands for, which receives the values and a continuation
  /// of the caller. Returns when the caller is resumed, with a continuation of its resumer and the values that it sent;
  /// after the end of a context by `finish`, with an empty continuation and its last values. Throws std::logic_error
  /// when this one is empty, and the exception that left the body of a context whose last switch went to the caller. A
  /// suspension point: the caller may be unwound here, and another thread may resume it.
  PIRN_ALWAYS_INLINE resumed resume(Sent... values) && {
    word words[value_words];
    typename value_list<Sent...>::packed_args packed;
    packed.pack(words, values...);
    forget(words, value_list<Sent...>::words_sent);
    arch::peer to = take();
    sanitizer_peer sanitizer = sanitizer_;
    switch_to(to, sanitizer, words);
    return arrived(to, sanitizer, words);
  }

  /// Resumes as `resume`, and then stands for the resumer of the caller. Returns nothing, the received value, or a
  /// tuple.
  PIRN_ALWAYS_INLINE typename received<Received...>::type exchange(Sent... values) {
    using result = typename received<Received...>::type;
    if constexpr (value_list<Received...>::self_contained) {
      word words[value_words];
      typename value_list<Sent...>::packed_args packed;
      packed.pack(words, values...);
      forget(words, value_list<Sent...>::words_sent);
      arch::peer to = take();
      sanitizer_peer sanitizer = sanitizer_;
      switch_to(to, sanitizer, words);
      settle(to, sanitizer, words);
      to_ = to;
      sanitizer_ = sanitizer;
      return value_list<Received...>::unpack(
          words, [](auto&&... each) PIRN_INLINE_LAMBDA -> result { return result(static_cast<Received&&>(each)...); });
    } else {
      resumed all = std::move(*this).resume(std::forward<Sent>(values)...);
      *this = std::move(std::get<0>(all));
      return std::apply([](Own&&, Received&&... each) -> result { return result(std::forward<Received>(each)...); },
                        std::move(all));
    }
  }

  /// Returns the value by which a body ends: the last switch goes to the context that this one stands for. Throws
  /// std::logic_error when it is empty, and the exceptions of moving a value, which leave it as it was. If the body
  /// does not return that value, the context is dropped, as by ~continuation.
  [[nodiscard]] PIRN_ALWAYS_INLINE finished finish(Sent... values) && {
    if (to_.pc == nullptr) [[unlikely]] {
      finished_empty();
    }
    return finished(to_, sanitizer_, std::forward<Sent>(values)...);
  }

  /// As `Own(allocator, body)` and a `resume(values...)`, by a direct jump into the body's entry function.
  template <hands_out_stacks Allocator, class Body>
  PIRN_ALWAYS_INLINE static resumed start(Allocator& allocator, Body body, Sent... values) {
    return entered(allocate(allocator, body, usual_stack_size<Allocator>), std::forward<Sent>(values)...);
  }
  template <stack_memory Stack, class Body>
  PIRN_ALWAYS_INLINE static resumed start(const Stack& memory, Body body, Sent... values) {
    return entered(construct(memory, body, static_cast<void*>(nullptr)), std::forward<Sent>(values)...);
  }

 private:
  friend struct continuation_runner;
  template <class, class, class, class>
  friend class continuation_base;

  continuation_base(const arch::peer& to, const sanitizer_peer& sanitizer) noexcept : to_(to), sanitizer_(sanitizer) {}
  PIRN_ALWAYS_INLINE static Own make(const arch::peer& to, const sanitizer_peer& sanitizer) noexcept {
    return Own(continuation_base(to, sanitizer));
  }

  template <class Record>
  PIRN_ALWAYS_INLINE static resumed entered(Record* fresh, Sent... values) {
    arch::peer to;
    word words[value_words];
    typename value_list<Sent...>::packed_args packed;
    packed.pack(words, values...);
    sanitizer_peer sanitizer(fresh->sanitizer);
    if (bodies_have_blocks()) [[unlikely]] {
      away back;
      back.sanitizer = sanitizer;
      enter_without_blocks(fresh, words[0], words[1], words[2], words[3], back);
      return_from(back, to, sanitizer, words);
    } else {
      sanitizer.leave();
      arch::transfer_into<&continuation_entry<Dual, type_list<Sent...>, Record>>(fresh, to, words);
      sanitizer.arrive();
    }
    return arrived(to, sanitizer, words);
  }

  /// Throws std::logic_error if `to` is empty.
  PIRN_ALWAYS_INLINE static void switch_to(arch::peer& to, sanitizer_peer& sanitizer, word (&words)[value_words]) {
    if (bodies_have_blocks_or_null(to.pc)) [[unlikely]] {
      away back;
      back.sanitizer = sanitizer;
      switch_without_blocks(to.pc, to.sp, to.fp, words[0], words[1], words[2], words[3], back);
      return_from(back, to, sanitizer, words);
    } else {
      sanitizer.leave();
      arch::transfer(to, words);
      sanitizer.arrive();
    }
  }
  /// The results of a switch, in separate memory: the originals may live in registers whatever cold code does.
  struct away {
    arch::peer to;
    [[no_unique_address]] sanitizer_peer sanitizer;
    word words[value_words];
  };
  PIRN_ALWAYS_INLINE static void return_from(const away& back, arch::peer& to, sanitizer_peer& sanitizer,
                                             word (&words)[value_words]) noexcept {
    static_assert(value_words == 4);
    void *pc = back.to.pc, *sp = back.to.sp, *fp = back.to.fp;
    word word0 = back.words[0], word1 = back.words[1], word2 = back.words[2], word3 = back.words[3];
    // Each alone: gcc would read two at once into a vector register, and have them in one on the hot path too. An
    // instruction set may have too few registers for all.
    asm("" : "+r"(pc), "+r"(sp), "+r"(fp));
    asm("" : "+r"(word0), "+r"(word1));
    asm("" : "+r"(word2), "+r"(word3));
    to.pc = pc;
    to.sp = sp;
    to.fp = fp;
    sanitizer = back.sanitizer;
    words[0] = word0;
    words[1] = word1;
    words[2] = word2;
    words[3] = word3;
  }
  /// As `switch_to`, but where bodies may have blocks open, which stay here. PIRN_NONE: by the registers in which a
  /// switch has its words, or clang would have them in others on the hot path too.
  PIRN_COLD PIRN_NONE static void switch_without_blocks(void* pc, void* sp, void* fp, word word0, word word1,
                                                        word word2, word word3, away& back) {
    if (pc == nullptr) {
      resumed_empty();
    }
    const blocks_elsewhere kept(nullptr, stack_position());
    arch::peer to = {pc, sp, fp};
    word words[value_words] = {word0, word1, word2, word3};
    back.sanitizer.leave();
    arch::transfer(to, words);
    back.sanitizer.arrive();
    fill(back, to, words);
  }
  template <class Record>
  PIRN_COLD static void enter_without_blocks(Record* fresh, word word0, word word1, word word2, word word3,
                                             away& back) {
    const blocks_elsewhere kept(nullptr, stack_position());
    arch::peer to;
    word words[value_words] = {word0, word1, word2, word3};
    back.sanitizer.leave();
    arch::transfer_into<&continuation_entry<Dual, type_list<Sent...>, Record>>(fresh, to, words);
    back.sanitizer.arrive();
    fill(back, to, words);
  }
  static void fill(away& back, const arch::peer& to, const word (&words)[value_words]) noexcept {
    back.to = to;
    for (std::size_t i = 0; i < value_words; ++i) {
      back.words[i] = words[i];
    }
  }

  template <class Stack, class Body, class Allocator>
  static continuation_record_of<Body, Stack, Allocator>* construct(const Stack& memory, Body& body, Allocator* owner) {
    using record = continuation_record_of<Body, Stack, Allocator>;
    static_assert(alignof(record) <= record_alignment);
    const auto top = reinterpret_cast<std::uintptr_t>(memory.top());
    const auto limit = reinterpret_cast<std::uintptr_t>(memory.limit());
    const std::uintptr_t at = place_of_record(top, sizeof(record));
    if (top - limit < sizeof(record) || at - limit < record_alignment || at < limit) {
      throw std::length_error("pirn: continuation: the stack has no room for the body");
    }
    auto* const made = new (reinterpret_cast<void*>(at)) record(std::move(body), memory, owner);
    if constexpr (std::is_void_v<Allocator>) {
      frame_bodies::made_anywhere();
    } else if constexpr (!maps_stacks<Allocator>) {
      frame_bodies::made(memory.limit(), memory.top());
    }
    if constexpr (marks_end<Allocator>) {
      stack_end::put(memory.limit());
    }
    return made;
  }
  template <class Allocator, class Body>
  static auto allocate(Allocator& allocator, Body& body, std::size_t size) {
    const auto got = allocator.allocate(size);
    if (!got) {
      throw std::system_error(make_error_code(got.error), "pirn: continuation");
    }
    try {
      return construct(got.value, body, std::addressof(allocator));
    } catch (...) {
      allocator.deallocate(got.value);
      throw;
    }
  }
  template <class Record>
  static continuation_base prepared(Record* fresh) noexcept {
    return {arch::prepare(fresh, &continuation_entry<Dual, type_list<Sent...>, Record>),
            sanitizer_peer(fresh->sanitizer)};
  }

  /// Returns the context that this one stands for, and leaves this one empty.
  PIRN_ALWAYS_INLINE arch::peer take() noexcept {
    const arch::peer to = to_;
    to_ = {};
    return to;
  }
  /// Turns the end of a peer into an empty one and the words that it left.
  PIRN_ALWAYS_INLINE static void settle(arch::peer& from, const sanitizer_peer& sanitizer, word (&words)[value_words]) {
    if (arch::is_tagged(from)) [[unlikely]] {
      // A copy: variables whose address is given away could not live in registers.
      const end_words last = copy_end_words(from.pc, from.sp, from.fp, sanitizer, words[0]);
      from = {};
      for (std::size_t i = 0; i < value_words; ++i) {
        words[i] = last.words[i];
      }
    } else {
      assume_not_null(from.pc);
    }
  }
  PIRN_ALWAYS_INLINE static resumed arrived(arch::peer from, const sanitizer_peer& sanitizer,
                                            word (&words)[value_words]) {
    if constexpr (value_list<Received...>::self_contained) {
      settle(from, sanitizer, words);
    } else if (arch::is_tagged(from)) [[unlikely]] {
      return last_values(from.pc, from.sp, from.fp, sanitizer, words[0]);
    }
    return value_list<Received...>::unpack(words, [&](auto&&... each) PIRN_INLINE_LAMBDA {
      return resumed(make(from, sanitizer), static_cast<Received&&>(each)...);
    });
  }

  // Cold functions take a peer as three words: gcc would keep one in memory that it somewhere passes whole.

  /// Releases the stack of a peer that has ended, when this is destroyed.
  class ended_peer {
   public:
    /// Does not return if the peer has not ended but drops this context, or if it left an exception.
    ended_peer(const arch::peer& from, sanitizer_peer sanitizer, word address)
        : last_(*reinterpret_cast<context_end_of<Received...>*>(address)) {
      if (from.pc != nullptr) {
        dropping::obey(address, from, sanitizer);
      }
      sanitizer.forget();
      if (last_.threw) {
        rethrow_of_body(last_.release());
      }
    }
    ~ended_peer() { last_.release(); }
    ended_peer(const ended_peer&) = delete;
    ended_peer& operator=(const ended_peer&) = delete;
    const word (&words() const noexcept)[value_words] { return last_.words; }

   private:
    context_end_of<Received...>& last_;
  };
  struct end_words {
    word words[value_words];
  };
  PIRN_COLD static end_words copy_end_words(void* pc, void* sp, void* fp, sanitizer_peer sanitizer, word address) {
    const ended_peer open({pc, sp, fp}, sanitizer, address);
    return {{open.words()[0], open.words()[1], open.words()[2], open.words()[3]}};
  }
  PIRN_COLD static resumed last_values(void* pc, void* sp, void* fp, sanitizer_peer sanitizer, word address) {
    const ended_peer open({pc, sp, fp}, sanitizer, address);
    return value_list<Received...>::unpack(
        open.words(), [](auto&&... each) { return resumed(Own(), static_cast<Received&&>(each)...); });
  }

  /// Tells the compiler that the next resume need not test for null.
  PIRN_ALWAYS_INLINE static void assume_not_null(const void* pc) noexcept {
#if defined(__clang__)
    __builtin_assume(pc != nullptr);
#else
    if (pc == nullptr) {
      __builtin_unreachable();
    }
#endif
  }

  arch::peer to_ = {};
  [[no_unique_address]] sanitizer_peer sanitizer_;
};

template <class Out, class... In>
using dual_of = typename signature_of<
    std::conditional_t<sizeof...(In) == 1 && (std::is_same_v<typename values_of<In>::type, type_list<In>> && ...),
                       typename received<In...>::type, std::conditional_t<sizeof...(In) == 0, void, std::tuple<In...>>>,
    typename values_of<Out>::type>::type;

template <class T>
struct base_of;
template <class... Values>
struct base_of<continuation<Values...>> {
  using type =
      continuation_base<continuation<Values...>, continuation<Values...>, type_list<Values...>, type_list<Values...>>;
};
template <class Out, class... In>
struct base_of<continuation<Out(In...)>> {
  using type = continuation_base<continuation<Out(In...)>, continuation<dual_of<Out, In...>>, type_list<In...>,
                                 typename values_of<Out>::type>;
};

}  // namespace detail

/// A suspended computation, to be resumed once, with typed values both ways: move-only, and empty after it was resumed.
/// `continuation<int, char*>` carries the same types both ways; `continuation<Out(In...)>` sends In... and receives
/// Out, which is void, a type, or a std::tuple of several, and the other side holds its dual. Any movable types,
/// references included. Trivially copyable ones travel in registers, up to four words each way; the rest in the
/// sender's frame.
///
/// A body is any callable that takes (continuation back, first...) and ends by `return std::move(k).finish(last...)`,
/// where k, of any type, is the context to be resumed next. It may also take `continuation& back`, and then an
/// exception that leaves the body is thrown out of the `resume` of the context that is in `back` at that time.
///
/// Exceptions in flight are the OS thread's, not the continuation's (a switch ignores them; coroutine keeps them
/// apart). So a catch block, or a destructor that an exception runs, may switch only on two conditions: it continues on
/// the same thread, and every context that is resumed before it continues leaves the handlers that it enters. Dropping
/// a continuation that is suspended in a catch block leaves its caught exception as the thread's current exception,
/// never destroyed.
///
/// Not thread-safe: one OS thread at a time may use an object. Any thread may resume the context that it stands for.
template <class... Values>
class continuation : public detail::base_of<continuation<Values...>>::type {
  using base = typename detail::base_of<continuation>::type;
  friend base;
  explicit continuation(base&& other) noexcept : base(std::move(other)) {}

 public:
  using base::base;
  // Declared one by one: gcc calls functions that it may leave out of line in cold code, and then keeps the object in
  // memory.
  PIRN_ALWAYS_INLINE continuation() noexcept = default;
  PIRN_ALWAYS_INLINE continuation(continuation&&) noexcept = default;
  PIRN_ALWAYS_INLINE continuation& operator=(continuation&&) noexcept = default;
  PIRN_ALWAYS_INLINE ~continuation() = default;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
