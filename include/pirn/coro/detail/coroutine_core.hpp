// The implementation of coroutine: the contents of its stack, how its body begins and ends, and its yield object.
//
//        +----------------------+ the stack's top
//        | coroutine_record     | the stack's limit, the variables, the sanitizers' state, the body
//        +----------------------+ 16-byte aligned
//        | root frame           | of arch::transfer_into
//        | coroutine_entry      | holds the yield object, calls the body, makes the last switch
//        | ...                  |
//
// Words, besides the plain values of a resume and of a yield:
//   first resume      the record's address, then the values, or if they need more than three words their address
//   end (tagged)     how it ended, then the result, or the address of what is to be moved from
//   cancel (tagged)  the address of the canceller's forced_unwind
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/stack_end.hpp"
#include "pirn/context/detail/value_words.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/detail/in_flight.hpp"
#include "pirn/coro/detail/locals_here.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/exiting.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

[[noreturn]] PIRN_COLD inline void coroutine_misused(const char* how) { throw std::logic_error(how); }

struct coroutine_record_base : locals_owner {
  using locals_owner::locals_owner;
  [[no_unique_address]] sanitizer_state sanitizer;
};
template <class Body>
struct alignas(alignof(Body) < 16 ? 16 : alignof(Body)) coroutine_record : coroutine_record_base {
  static_assert(alignof(Body) <= 4096);
  template <class Source>
  coroutine_record(const stack& memory, Source&& source)
      : coroutine_record_base(memory.limit()), body(std::forward<Source>(source)) {
    sanitizer.create(memory.limit(), memory.size(), "coroutine");
  }
  ~coroutine_record() {}  // NOLINT(modernize-use-equals-default): the union's is deleted
  union {
    Body body;  // destroyed by the code that knows that it has ended or will not begin
  };
};

/// The result of a body on its way out: in the three words beside the word that says how it ended, or in the frame of
/// the entry function.
template <class... Out>
class result_of {
 public:
  template <class Make>
  PIRN_ALWAYS_INLINE void make(word (&)[value_words], Make&& body) {
    body();
  }
  void destroy() noexcept {}
};
template <class Out>
  requires(std::is_reference_v<Out> || (fits_in_words<Out> && word_codec<Out>::words < value_words))
class result_of<Out> {
 public:
  template <class Make>
  PIRN_ALWAYS_INLINE void make(word (&to)[value_words], Make&& body) {
    Out value = body();
    word_codec<Out>::pack(value, &to[1]);
  }
  void destroy() noexcept {}
  PIRN_ALWAYS_INLINE static Out take(const word (&from)[value_words]) { return word_codec<Out>::unpack(&from[1]); }
};
template <class Out>
class result_of<Out> {
 public:
  PIRN_ALWAYS_INLINE result_of() noexcept {}
  PIRN_ALWAYS_INLINE ~result_of() {}
  template <class Make>
  PIRN_ALWAYS_INLINE void make(word (&to)[value_words], Make&& body) {
    new (std::addressof(value_)) Out(body());
    to[1] = reinterpret_cast<word>(std::addressof(value_));
  }
  void destroy() noexcept { std::destroy_at(std::addressof(value_)); }
  PIRN_ALWAYS_INLINE static Out take(const word (&from)[value_words]) {
    struct moved_from {
      Out* where;
      PIRN_ALWAYS_INLINE ~moved_from() { std::destroy_at(where); }
    } result{reinterpret_cast<Out*>(from[1])};
    return std::move(*result.where);
  }

 private:
  union {
    Out value_;
  };
};

template <class Outs, class Ins, class Body>
struct coroutine_entry;

/// Ends the variables of a coroutine, whose destructors must not yield, and makes its last switch. Does not return, so
/// that its caller need not keep anything in registers that calls preserve, which it would have to save first.
template <bool gone>
[[noreturn]] PIRN_COLD PIRN_NONE void end_with_variables(void* pc, void* sp, void* fp, locals_owner& self, word first,
                                                         word second, word third, word fourth,
                                                         sanitizer_peer sanitizer) noexcept {
  self.hide_caller();
  if (self.marked()) {
    stack_end::check("a coroutine", self.limit, &self + 1, stack_position());
  }
  self.end_variables();
  if constexpr (gone) {
    self.gone();
  }
  sanitizer.leave_for_good();
  word last[value_words] = {first, second, third, fourth};
  arch::transfer_last({pc, sp, fp}, last);
}

/// Refuses a yield at `position` that is not on its coroutine's stack, or after the word at the stack's end was
/// overwritten. A coroutine that has run off its stack ends the program: an unwind there would overwrite more.
[[noreturn]] PIRN_COLD inline void refuse_yield(word position, word limit, word size, bool marked) {
  if (marked) {
    const auto* const memory = reinterpret_cast<void*>(limit);
    if (stack_end::overwritten(limit) || (limit - position < near_below && !runs_on_another_stack(memory, size))) {
      ran_off_stack("a coroutine", memory, reinterpret_cast<void*>(limit + size), position);
    }
  }
  coroutine_misused(
      "pirn: coroutine: yield called outside its coroutine, which is not running (it is suspended, has ended, or waits "
      "for another coroutine that it resumed)");
}

/// The report of an exception that leaves a body in response to its unwind.
inline constexpr const char* dropped_exception = "its body threw another exception, which is dropped";

/// The yield object of a coroutine<Out(In...)>, with Out as a list of none or one. It lives in the frame of its
/// coroutine's entry function, and is the first argument of the body.
template <class Outs, class Ins>
class coroutine_yield;

template <class... Out, class... In>
class coroutine_yield<void(Out...), void(In...)> : public coroutine_locals {
 public:
  using received = typename detail::received<In...>::type;

  /// Suspends the coroutine: resume() returns `value`, and this call returns the values of the next resume(): nothing,
  /// the value, or a std::tuple of several. Throws std::logic_error if the coroutine is not the running one: when
  /// called from outside, or from within another coroutine. (If that one's stack lies inside this one's, the call
  /// suspends both.)
  /// A suspension point: any thread may resume it, and destroying the coroutine unwinds it from here.
  PIRN_ALWAYS_INLINE received operator()(Out... value) {
    if (stack_position() - limit_ > plain_) [[unlikely]] {
      // Inlined: across a call that returns, clang would not keep the peer in the registers of the switch.
      if (plain_ == size_ || stack_position() - limit_ > size_ || stack_end::overwritten(limit_)) {
        refuse_yield(stack_position(), limit_, size_, plain_ != size_);
      }
    }
    word words[value_words];
    typename value_list<Out...>::packed_args packed;
    packed.pack(words, value...);
    forget(words, value_list<Out...>::words_sent);
    arch::peer resumer = resumer_.get();
    detail::transfer_back(resumer, words, sanitizer_, limit_, limit_ + size_);
    resumer_ = stored_peer(resumer);
    if (arch::is_tagged(resumer)) [[unlikely]] {
      resumer_ = stored_peer(arch::untagged(resumer));
      cancelled_by_ = reinterpret_cast<forced_unwind*>(words[0]);
      cancelled_by_->raise();
    }
    return value_list<In...>::unpack(
        words, [](auto&&... each) -> received { return received(static_cast<decltype(each)>(each)...); });
  }

  /// Lets a runtime that trims (runtime_options::trim_after) give back what the stacks of this coroutine's callers do
  /// not use, while a fiber waits inside the coroutine. Without this call that is known only for the coroutine's stack,
  /// since the place at which the caller waits is in a register or anywhere in the body's frames. From now on this
  /// object stays in memory: nine instructions more for each yield, if it was in registers. Call it once, at the
  /// beginning of a body in which fibers wait for long. If the caller is in a coroutine too, that one must have made
  /// this call for its callers' stacks to be trimmed as well.
  void trim_callers() noexcept { this->show_caller(&resumer_.sp); }

 private:
  template <class, class, class>
  friend struct coroutine_entry;

  PIRN_ALWAYS_INLINE coroutine_yield(const arch::peer& resumer, coroutine_record_base* record) noexcept
      : coroutine_locals(*record),
        resumer_(resumer),
        limit_(reinterpret_cast<word>(record->limit)),
        size_(reinterpret_cast<word>(record) - limit_),
        plain_(record->marked() ? 0 : size_) {}

  stored_peer resumer_;
  word limit_;  // of the coroutine's stack
  word size_;
  word plain_;  // or 0: nothing is, and the word at the limit is looked at
  forced_unwind* cancelled_by_ = nullptr;
  [[no_unique_address]] sanitizer_peer sanitizer_;
};

/// How a coroutine ended, which determines its last words.
enum class last_word : word { returned, threw, unwound };

/// The function between the root frame and a body.
template <class... Out, class... In, class Body>
struct coroutine_entry<void(Out...), void(In...), Body> {
  using yield = coroutine_yield<void(Out...), void(In...)>;
  using record = coroutine_record<Body>;
  static constexpr bool first_in_registers = value_list<In...>::words < value_words;

  static_assert(std::is_invocable_v<Body&, yield&, In...>, "the body of a coroutine takes (yield&, first values...)");

  /// The words of the first resume. `spill` must outlive the switch.
  PIRN_ALWAYS_INLINE static void pack_first(record* fresh, word (&words)[value_words], word (&spill)[value_words]) {
    if constexpr (first_in_registers) {
      for (std::size_t i = value_list<In...>::words; i != 0; --i) {
        words[i] = words[i - 1];
      }
      leave_indeterminate(words, value_list<In...>::words + 1);
    } else {
      for (std::size_t i = 0; i < value_words; ++i) {
        spill[i] = words[i];
      }
      words[1] = reinterpret_cast<word>(&spill[0]);
      leave_indeterminate(words, 2);
    }
    words[0] = reinterpret_cast<word>(fresh);
  }

  PIRN_NONE static void enter(void* pc, void* sp, void* fp, word word0, word word1, word word2, word word3) {
    auto* const self = reinterpret_cast<record*>(word0);
    result_of<Out...> result;
    word last[value_words];
    leave_indeterminate(last, 0);
    arch::peer resumer;
    [[maybe_unused]] sanitizer_peer sanitizer;
    std::exception_ptr thrown;
    {
      yield y({pc, sp, fp}, self);
      y.sanitizer_.arrive();
      word first[value_words];
      if constexpr (first_in_registers) {
        first[0] = word1, first[1] = word2, first[2] = word3;
        leave_indeterminate(first, 3);
      } else {
        for (std::size_t i = 0; i < value_words; ++i) {
          first[i] = reinterpret_cast<const word*>(word1)[i];
        }
      }
      const ending how = run_unwindable(
          [&] {
            value_list<In...>::unpack(first, [&](auto&&... each) {
              result.make(last, [&]() -> decltype(auto) {
                return std::invoke(self->body, y, static_cast<In>(static_cast<decltype(each)>(each))...);
              });
            });
          },
          thrown);
      std::destroy_at(std::addressof(self->body));
      last[0] = static_cast<word>(last_word::returned);
      if (how != ending::returned || y.cancelled_by_ != nullptr) [[unlikely]] {
        if (how == ending::returned) {
          result.destroy();
        }
        word how_word = 0, address = 0;
        end_otherwise(how == ending::unwound ? forced_unwind::of_thread() : y.cancelled_by_, how_word, address, thrown);
        last[0] = how_word;
        last[1] = address;
      }
      resumer = y.resumer_.get();
      sanitizer = y.sanitizer_;
      if (!self->plain()) [[unlikely]] {
        if (!self->only_marked()) [[unlikely]] {
          end_with_variables<true>(resumer.pc, resumer.sp, resumer.fp, *self, last[0], last[1], last[2], last[3],
                                   sanitizer);
        }
        stack_end::check("a coroutine", self->limit, self + 1, stack_position());
      }
    }
    self->gone();
    sanitizer.leave_for_good();
    arch::transfer_last(resumer, last);
  }

  PIRN_COLD static void end_otherwise(forced_unwind* cancelled_by, word& how, word& address,
                                      std::exception_ptr& thrown) noexcept {
    if (cancelled_by != nullptr) {
      if (thrown != nullptr) {
        cancelled_by->report(dropped_exception);
        thrown = nullptr;
      }
      how = static_cast<word>(last_word::unwound);
      address = reinterpret_cast<word>(cancelled_by);
    } else {
      how = static_cast<word>(last_word::threw);
      address = reinterpret_cast<word>(&thrown);
    }
  }
};

// ---- the outside ------------------------------------------------------------------------------------------------

/// The requirements of a body.
template <class Body, class Yield, class... In>
concept coroutine_body = std::is_invocable_v<std::decay_t<Body>&, Yield, In...>;

/// Whether values of all these types can pass from one side to the other.
template <class Out, class... In>
inline constexpr bool values_move =
    (std::is_void_v<Out> || std::is_reference_v<Out> || std::is_move_constructible_v<Out>) &&
    ((std::is_reference_v<In> || std::is_move_constructible_v<In>) && ...);

/// Turns Out into the parameters of a yield.
template <class Out>
struct none_or_one_of {
  using type = void(Out);
};
template <>
struct none_or_one_of<void> {
  using type = void();
};
template <class Out>
using none_or_one = typename none_or_one_of<Out>::type;

/// Room for the frames of a body that does nothing.
inline constexpr std::size_t min_stack = 256;

[[noreturn]] PIRN_COLD inline void no_room_for_body() {
  throw std::length_error("pirn: coroutine: the stack has no room for the body");
}
[[noreturn]] PIRN_COLD inline void resumed_while_running() {
  throw std::logic_error("pirn: coroutine: resumed while it is running");
}
[[noreturn]] PIRN_COLD inline void resumed_after_end() {
  throw std::logic_error("pirn: coroutine: resumed after its end, or empty");
}
[[noreturn]] PIRN_COLD inline void running_coroutine(const char* what) noexcept {
  fail_contract("a coroutine was ", what, " while it is running");
}
/// Reports that a running coroutine is destroyed. Returns during exit, if its body has called that, or one that it
/// waits for.
PIRN_COLD inline void destroyed_while_running() noexcept {
  if (!platform::left_to_exit()) {
    running_coroutine("destroyed");
  }
}

/// Throws if a coroutine ended in another way than by return.
[[noreturn]] PIRN_COLD inline void ended_otherwise(word how, word address) {
  if (how == static_cast<word>(last_word::threw)) {
    rethrow_of_body(std::move(*reinterpret_cast<std::exception_ptr*>(address)));
  }
  // It was suspended together with ours, whose unwind has passed through it and continues here.
  reinterpret_cast<forced_unwind*>(address)->raise();
}

/// Unwinds a suspended body. Returns the peer of its last switch, which carried `words`; before that calls
/// `ended(unwind)`.
template <class Ended>
PIRN_COLD inline arch::peer cancel_body(arch::peer to, sanitizer_peer& sanitizer, word (&words)[value_words],
                                        Ended&& ended) noexcept {
  constexpr int max_attempts = 1000;
  forced_unwind unwind("coroutine");
  for (int attempts = 0; attempts < max_attempts; ++attempts) {
    words[0] = reinterpret_cast<word>(&unwind);
    words[1] = words[2] = words[3] = 0;
    sanitizer.leave();
    arch::transfer_tagged(to, words);
    sanitizer.arrive();
    if (arch::is_tagged(to)) {
      ended(unwind);
      sanitizer.forget();
      return to;
    }
    unwind.report("it suspended, and is unwound from there");
  }
  forced_unwind::refuse("coroutine",
                        "it keeps suspending in handlers of the exceptions that it throws in response to the unwind");
}
/// Unwinds a suspended coroutine.
PIRN_COLD inline void cancel_coroutine(arch::peer to, sanitizer_peer sanitizer) noexcept {
  word words[value_words];
  cancel_body(to, sanitizer, words, [](forced_unwind&) {});
}

/// The address of the sanitizer_state of a stack; empty without a sanitizer.
template <bool needed>
class sanitizer_ref_if {
 public:
  sanitizer_ref_if() noexcept = default;
  explicit sanitizer_ref_if(sanitizer_state&) noexcept {}
  PIRN_ALWAYS_INLINE void destroy() noexcept {}
};
template <>
class sanitizer_ref_if<true> {
 public:
  sanitizer_ref_if() noexcept = default;
  explicit sanitizer_ref_if(sanitizer_state& of) noexcept : of_(&of) {}
  void destroy() noexcept {
    if (of_ != nullptr) {
      std::exchange(of_, nullptr)->destroy();
    }
  }

 private:
  sanitizer_state* of_ = nullptr;
};
using sanitizer_ref = sanitizer_ref_if<!std::is_empty_v<sanitizer_state>>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
