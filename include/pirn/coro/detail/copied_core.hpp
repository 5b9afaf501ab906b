// The implementation of copied_coroutine: how its body begins and ends on the copy_stack, and its yield object.
//
//   buffer of the context      before the first resume: ways, body
//   copy_stack                 afterwards: entry function's frame (body, yield object, result), the body's frames
//
// The words of the first resume are the context's address and the values, or the address of the values if they need
// more than two words. Everything else is as in coroutine_core.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/outermost_frame.hpp"
#include "pirn/context/detail/value_words.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/detail/coroutine_core.hpp"
#include "pirn/coro/detail/in_flight.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/stack/expert/copy_stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

PIRN_COLD inline bool run_in_flight(copied_context& context, word (&words)[value_words]) noexcept {
  const saved_exception_state kept;
  return context.run(words);
}
/// The words travel in registers and come back in the copy_stack: none of them lies in the caller's frame, and so none
/// in its image.
PIRN_COLD inline bool suspend_in_flight(copy_stack& on, word word0, word word1, word word2, word word3) {
  word words[value_words] = {word0, word1, word2, word3};
  taken_blocks blocks;
  if (bodies_have_blocks()) {
    const body_stack mine{reinterpret_cast<word>(on.memory().limit()), reinterpret_cast<word>(on.memory().top()),
                          nullptr, true};
    blocks = take_blocks(&mine, stack_position());
  }
  const saved_exception_state kept;
  const bool interrupted = on.suspend(words);
  for (std::size_t i = 0; i < value_words; ++i) {
    on.received[i] = words[i];
  }
  put_blocks(blocks);
  return interrupted;
}
/// Suspends and exchanges the words; exceptions in flight stay with this side.
PIRN_ALWAYS_INLINE bool suspend_keeping_exceptions(copy_stack& on, word (&words)[value_words]) {
  if (!maybe_in_flight()) [[likely]] {
    return on.suspend(words);
  }
  const bool interrupted = suspend_in_flight(on, words[0], words[1], words[2], words[3]);
  for (std::size_t i = 0; i < value_words; ++i) {
    words[i] = on.received[i];
  }
  return interrupted;
}

/// Throws unless the caller's `position` is on the stack, and not on another stack inside a frame there. The position
/// of the root frame where a walk ends shows the difference; a walk that ends elsewhere, for lack of tables, shows
/// nothing.
PIRN_COLD inline void check_yield_stack(const copy_stack& on, word position) {
  on.check_end(position);
  if (!on.memory().contains(reinterpret_cast<const void*>(position))) {
    coroutine_misused("pirn: copied_coroutine: yield called outside its coroutine, on another stack");
  }
  if (!on.protects()) {
    return;
  }
  const outermost_frame last = find_outermost_frame();
  constexpr std::size_t largest_root = 64;
  if (last.is_root() && last.sp < reinterpret_cast<word>(on.memory().top()) - largest_root) {
    coroutine_misused(
        "pirn: copied_coroutine: yield called outside its coroutine, on a stack inside one of the coroutine's frames");
  }
}

PIRN_ALWAYS_INLINE copied_locals::~copied_locals() {
  // The stack's address is in the frame anyway; that of this object would make it a part of every image.
  if (values_by_body& all = on_.variables(); all.any()) [[unlikely]] {
    all.end(all.running());
  }
}
inline locals_place copied_locals::place() const noexcept { return locals_place(on_.variables()); }

/// The yield object of a copied_coroutine<Out(In...)>, with Out as a list of none or one. It lives in the frame of its
/// coroutine's entry function, and is the first argument of the body.
template <class Outs, class Ins>
class copied_yield;

template <class... Out, class... In>
class copied_yield<void(Out...), void(In...)> : public copied_locals {
 public:
  using received = typename detail::received<In...>::type;

  explicit copied_yield(copy_stack& on) noexcept : copied_locals(on) {}

  /// Suspends the coroutine: resume() returns `value`, and this call returns the values of the next resume(): nothing,
  /// the value, or a std::tuple of several. Throws std::logic_error when called on another stack. A stack inside a
  /// frame of this coroutine (a frame_buffer) is another stack too: the frames below it would be lost. Only
  /// copy_stack_check::protect detects that case.
  /// A suspension point: any thread may resume it, and destroying the coroutine unwinds it from here.
  PIRN_ALWAYS_INLINE received operator()(Out... value) {
    if (const word position = stack_position(); !on_.plainly_contains(position)) [[unlikely]] {
      check_yield_stack(on_, position);
    }
    word words[value_words];
    forget(words);
    typename value_list<Out...>::packed_args packed;
    packed.pack(words, value...);
    const bool interrupted = suspend_keeping_exceptions(on_, words);
    if (interrupted) [[unlikely]] {
      reinterpret_cast<forced_unwind*>(words[0])->raise();
    }
    return value_list<In...>::unpack(
        words, [](auto&&... each) -> received { return received(static_cast<decltype(each)>(each)...); });
  }
};

/// The content of the buffer before the coroutine begins, unless its body is stateless.
struct kept_body_base {
  void (*destroy)(kept_body_base* self) noexcept;
  void* body;
};
template <class Body>
struct kept_body : kept_body_base {
  /// Size in bytes of a buffer that can hold one, wherever the buffer begins.
  static constexpr std::size_t size =
      sizeof(kept_body_base) + sizeof(Body) + (alignof(Body) > alignof(void*) ? alignof(Body) - alignof(void*) : 0);

  template <class Source>
  static void make_in(void* buffer, Source&& source) {
    auto* const kept = new (buffer) kept_body;
    const auto behind = reinterpret_cast<std::uintptr_t>(kept + 1);
    kept->body = reinterpret_cast<void*>((behind + alignof(Body) - 1) & ~(std::uintptr_t{alignof(Body)} - 1));
    kept->destroy = [](kept_body_base* self) noexcept { std::destroy_at(static_cast<Body*>(self->body)); };
    new (kept->body) Body(std::forward<Source>(source));
  }
};

/// The function between the root frame and a body.
template <class Outs, class Ins, class Body>
struct copied_entry;

/// Whether the values of a first resume fit beside the context's address.
template <class... In>
inline constexpr bool first_beside = value_list<In...>::words <= 2;

/// Turns the words of a resume into those of the first one. `spill` must outlive the switch.
template <class... In>
PIRN_ALWAYS_INLINE void pack_first_copied(copied_context& context, word (&words)[value_words],
                                          word (&spill)[value_words]) noexcept {
  if constexpr (first_beside<In...>) {
    words[2] = words[1];
    words[1] = words[0];
  } else {
    for (std::size_t i = 0; i < value_words; ++i) {
      spill[i] = words[i];
    }
    words[1] = reinterpret_cast<word>(&spill[0]);
  }
  words[0] = reinterpret_cast<word>(&context);
}

template <class... Out, class... In, class Body>
struct copied_entry<void(Out...), void(In...), Body> {
  using yield = copied_yield<void(Out...), void(In...)>;
  /// Whether the body need not be kept or destroyed.
  static constexpr bool stateless = std::is_empty_v<Body> && std::is_trivially_copyable_v<Body>;

  PIRN_NONE static void enter(void* pc, void* sp, void* fp, word word0, word word1, word word2, word /*not kept*/) {
    auto& context = *reinterpret_cast<copied_context*>(word0);
    copy_stack& on = *context.on();
    on.entered(pc, sp, fp);
    result_of<Out...> result;
    word last[value_words];
    leave_indeterminate(last, 0);
    word first[value_words];
    if constexpr (first_beside<In...>) {
      first[0] = word1, first[1] = word2;
      leave_indeterminate(first, 2);
    } else {
      for (std::size_t i = 0; i < value_words; ++i) {
        first[i] = reinterpret_cast<const word*>(word1)[i];
      }
    }
    void* const buffer = context.buffer();
    const ending how = run_unwindable([&] { run(on, buffer, first, last, result); },
                                      [&]() -> auto& { return *new (on.received) thrown; });
    on.check_end(stack_position());
    if (how != ending::returned) [[unlikely]] {
      finish_otherwise(on, how);
    }
    last[0] = static_cast<word>(last_word::returned);
    on.finish(last);
  }

 private:
  /// An exception that left the body. It lies in the copy_stack, since otherwise every image would have a word for it.
  using thrown = std::exception_ptr;
  static_assert(sizeof(thrown) <= sizeof(copy_stack::received));

  [[noreturn]] PIRN_COLD static void finish_otherwise(copy_stack& on, ending how) noexcept {
    const bool threw = how == ending::threw;
    word last[value_words];
    leave_indeterminate(last, 2);
    last[0] = static_cast<word>(threw ? last_word::threw : last_word::unwound);
    last[1] = reinterpret_cast<word>(threw ? static_cast<void*>(on.received) : forced_unwind::of_thread());
    on.finish(last);
  }
  PIRN_ALWAYS_INLINE static void run(copy_stack& on, [[maybe_unused]] void* buffer, const word (&first)[value_words],
                                     word (&last)[value_words], result_of<Out...>& result) {
    const auto call = [&](Body& body) {
      yield y(on);
      value_list<In...>::unpack(first, [&](auto&&... each) {
        result.make(last, [&]() -> decltype(auto) {
          return std::invoke(body, y, static_cast<In>(static_cast<decltype(each)>(each))...);
        });
      });
    };
    if constexpr (stateless) {
      union unmade {
        PIRN_ALWAYS_INLINE unmade() noexcept {}  // the type need not have a default constructor
        Body body;
      } made;
      call(made.body);
    } else {
      // Moved to the stack, before the buffer becomes the image's.
      struct moved_from {
        Body& body;
        ~moved_from() { std::destroy_at(std::addressof(body)); }
      };
      Body body = [&] {
        const moved_from kept{*static_cast<Body*>(static_cast<kept_body_base*>(buffer)->body)};
        return Body(std::move(kept.body));
      }();
      call(body);
    }
  }
};

[[noreturn]] PIRN_COLD inline void copied_not_resumable(const char* why) {
  throw std::logic_error(std::string("pirn: copied_coroutine: ") + why);
}
[[noreturn]] PIRN_COLD inline void copied_failed(stack_error error, const char* what) {
  throw std::system_error(make_error_code(error), what);
}
/// Reports a suspended coroutine that is destroyed and cannot be brought in. Returns during exit, if another body on
/// its stack has called that.
PIRN_COLD inline void copied_refused(stack_error error) noexcept {
  if (error == stack_error::stack_in_use && platform::left_to_exit()) {
    return;
  }
  fail_contract("a suspended copied_coroutine that cannot be unwound was destroyed: ", to_string(error));
}

/// Unwinds a suspended coroutine that has been brought in. `drop` takes the result of a body that returns nevertheless.
template <class Drop>
PIRN_COLD void cancel_copied(copied_context& context, Drop&& drop) noexcept {
  constexpr int max_attempts = 1000;
  forced_unwind unwind("copied_coroutine");
  for (int attempts = 0; attempts < max_attempts; ++attempts) {
    word words[value_words] = {reinterpret_cast<word>(&unwind)};
    if (!context.interrupt(words)) {
      if (words[0] == static_cast<word>(last_word::returned)) {
        drop(words);
      } else if (words[0] == static_cast<word>(last_word::threw)) {
        unwind.report("its body threw another exception, which is dropped");
        *reinterpret_cast<std::exception_ptr*>(words[1]) = nullptr;
      }
      context.settle();
      return;
    }
    unwind.report("it suspended, and is unwound from there");
  }
  forced_unwind::refuse("copied_coroutine",
                        "it keeps suspending in handlers of the exceptions that it throws in response to the unwind");
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
