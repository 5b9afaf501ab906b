// The record on the stack of a continuation, and how its body begins and ends. The picture is in continuation.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/frame_bodies.hpp"
#include "pirn/context/detail/outermost_frame.hpp"
#include "pirn/context/detail/stack_end.hpp"
#include "pirn/context/detail/value_words.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/detail/contract.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class... Ts>
struct type_list {};

/// How many bytes to ask an allocator for where the caller gives no size: all of a buffer, 64 KiB of others.
template <class Allocator>
inline constexpr std::size_t usual_stack_size = std::size_t{64} << 10;
template <template <std::size_t> class Buffer, std::size_t size>
inline constexpr std::size_t usual_stack_size<Buffer<size>> = size;

/// Memory with bounds, such as pirn::stack.
template <class T>
concept stack_memory = requires(const T& memory) {
  { memory.top() } -> std::convertible_to<void*>;
  { memory.limit() } -> std::convertible_to<void*>;
};
/// Hands out such memory, as pirn::guarded_pool does.
template <class T>
concept hands_out_stacks = requires(T& allocator, std::size_t size) {
  { allocator.allocate(size).value } -> stack_memory;
  allocator.deallocate(allocator.allocate(size).value);
};

/// A record lies at one of the next multiples above the frame of the entry function; optimized code has it at the
/// first.
inline constexpr std::size_t record_alignment = 256;
/// A record never begins a page: an address that may be a record's can be read, since it is in the page of the frame
/// below.
inline constexpr std::size_t smallest_page = 4096;

/// Returns the place of a record whose end is at most `top`.
constexpr std::uintptr_t place_of_record(std::uintptr_t top, std::size_t size) noexcept {
  const std::uintptr_t at = (top - size) & ~(record_alignment - 1);
  return at % smallest_page == 0 ? at - record_alignment : at;
}
/// Returns the place of the record above a frame of the root or of the entry function.
constexpr std::uintptr_t record_above(std::uintptr_t frame) noexcept {
  return (frame + record_alignment - 1) & ~(record_alignment - 1);
}

/// The record at the top of every stack of a continuation.
struct continuation_record {
  static constexpr std::uintptr_t mark_of_all = 0x7069726e;  // "pirn"

  continuation_record() noexcept : mark(reinterpret_cast<std::uintptr_t>(this) ^ mark_of_all) {}
  /// Returns the record of the stack that the caller runs on; null if it is not a continuation's.
  PIRN_COLD static const continuation_record* of_this_stack() noexcept {
    const std::uintptr_t outermost = find_outermost_frame().sp;
    const std::uintptr_t at = record_above(outermost);
    if (outermost == 0 || at % smallest_page == 0) {
      return nullptr;
    }
    return is_at(at) ? reinterpret_cast<const continuation_record*>(at) : nullptr;
  }
  PIRN_ALWAYS_INLINE static bool is_at(std::uintptr_t address) noexcept {
    return reinterpret_cast<const continuation_record*>(address)->mark == (address ^ mark_of_all);
  }

  std::uintptr_t mark;
  sanitizer_state sanitizer;
  void (*release)(continuation_record& self) noexcept;
};
template <class Body, class Stack, class Allocator>
struct continuation_record_of : continuation_record {
  using body_type = Body;
  continuation_record_of(Body&& what, const Stack& where, Allocator* owner)
      : body(std::move(what)), stack(where), allocator(owner) {
    sanitizer.create(stack.limit(), size_of(stack), "continuation");
    release = &give_back;
  }
  ~continuation_record_of() {}  // NOLINT(modernize-use-equals-default): the union's is deleted

  static std::size_t size_of(const Stack& memory) noexcept {
    return static_cast<std::size_t>(static_cast<char*>(memory.top()) - static_cast<char*>(memory.limit()));
  }
  static void give_back(continuation_record& base) noexcept {
    auto& self = static_cast<continuation_record_of&>(base);
    const Stack stack = self.stack;
    Allocator* const allocator = self.allocator;
    if constexpr (marks_end<Allocator>) {
      stack_end::check("a continuation", stack.limit(), stack.top());
    }
    self.sanitizer.destroy();
    self.mark = 0;  // the next user of this memory is no continuation
    if constexpr (!std::is_void_v<Allocator> && !maps_stacks<Allocator>) {
      frame_bodies::gone(stack.limit(), stack.top());
    }
    if constexpr (!std::is_void_v<Allocator>) {
      allocator->deallocate(stack);
    }
  }

  union {
    Body body;  // destroyed by `run`
  };
  Stack stack;
  Allocator* allocator;
};

/// The end of a context, on its stack.
struct context_end {
  continuation_record* record = nullptr;
  void (*destroy_values)(context_end& self) noexcept = nullptr;
  std::exception_ptr exception;
  bool threw = false;  ///< also where `exception` is null: rethrow_of_body

  /// Gives the stack back, and this with it; returns the exception to be thrown.
  std::exception_ptr release() noexcept {
    std::exception_ptr thrown = std::move(exception);
    if (destroy_values != nullptr) {
      destroy_values(*this);
    }
    record->release(*record);
    return thrown;
  }
};
/// One dropping of a suspended continuation, in the frame of the function that drops it.
struct dropping {
  const char* name;
  forced_unwind cancel{name};
  const void* victim = nullptr;  // its sp
  arch::peer back{};
  [[no_unique_address]] sanitizer_peer back_sanitizer{};
  dropping* outer = nullptr;

  /// Resumes `to` tagged, and returns when it has ended and its stack is released.
  PIRN_COLD static void drop(void* pc, void* sp, void* fp, sanitizer_peer sanitizer) noexcept {
    arch::peer to{pc, sp, fp};
    dropping self{std::uncaught_exceptions() == 0
                      ? "a dropped continuation"
                      : "a continuation dropped by an exception that is leaving the body of another"};
    self.victim = to.sp;
    self.outer = std::exchange(unwinds_here(slot_access::write).innermost_dropping, &self);
    word words[value_words] = {reinterpret_cast<word>(&self), 0, 0, 0};
    sanitizer.leave();
    arch::transfer_tagged(to, words);
    sanitizer.arrive();
    sanitizer.forget();
    reinterpret_cast<context_end*>(words[0])->release();
    unwinds_here(slot_access::write).innermost_dropping = self.outer;
  }
  /// Unwinds the dropped continuation, which calls this.
  [[noreturn]] PIRN_COLD static void obey(word address, const arch::peer& dropper, const sanitizer_peer& sanitizer) {
    auto& self = *reinterpret_cast<dropping*>(address);
    self.back = arch::untagged(dropper);
    self.back_sanitizer = sanitizer;
    if (continuation_record::of_this_stack() == nullptr) {
      forced_unwind::refuse(self.name,
                            "it stands for a stack on which no continuation runs, such as that of a thread, or of a "
                            "generator whose yield was called on the stack of a continuation");
    }
    self.cancel.raise();
  }
};

[[noreturn]] PIRN_COLD inline void resumed_empty() {
  throw std::logic_error(
      "pirn: continuation::resume: the continuation is empty: it was already resumed or moved from, or the body that "
      "it stood for has ended");
}
[[noreturn]] PIRN_COLD inline void finished_empty() {
  throw std::logic_error(
      "pirn: continuation::finish: the continuation to switch to is empty: it was already resumed or moved from, or "
      "the body that it stood for has ended");
}
[[noreturn]] PIRN_COLD inline void finished_into_a_fresh_one() noexcept {
  fail_contract(
      "continuation: the last switch of a body went to a continuation that has not begun, and has no resume to return "
      "from: resume that one, and finish into one that is suspended");
}
[[noreturn]] PIRN_COLD inline void end_without_heir(const std::exception_ptr& thrown) noexcept {
  std::fputs(
      "pirn: an exception left the body of a continuation, and there is no continuation to throw it to. It is thrown "
      "to the continuation in the parameter that the body takes by reference (continuation<...>& back): keep a "
      "continuation there, or catch inside the body\n",
      stderr);
  if (thrown == nullptr) {
    forced_unwind::refuse("the body of a continuation", "its thread ends, by pthread_exit or pthread_cancel");
  }
  std::rethrow_exception(thrown);  // terminates, which names the exception too
}

template <class... Ts>
struct context_end_of;

/// The result of `finish`: the target of a body's last switch, and the values that it carries. If no body returns it,
/// its destructor drops the target.
template <class... Ts>
class finished {
 public:
  finished(finished&& other) noexcept(std::is_nothrow_move_constructible_v<std::tuple<Ts...>>)
      : values_(std::move(other.values_)), to_(other.take()), sanitizer_(other.sanitizer_) {}
  finished& operator=(finished&&) = delete;
  PIRN_ALWAYS_INLINE ~finished() {
    if (to_.pc != nullptr) [[unlikely]] {
      dropping::drop(to_.pc, to_.sp, to_.fp, sanitizer_);
    }
  }

 private:
  template <class, class, class, class>
  friend class continuation_base;
  friend struct continuation_runner;
  friend context_end_of<Ts...>;
  using end_type = context_end_of<Ts...>;

  /// Takes `from` after the values: an exception of moving them leaves `from` where it was.
  template <class... Us>
  PIRN_ALWAYS_INLINE finished(arch::peer& from, const sanitizer_peer& sanitizer, Us&&... what)
      : values_(std::forward<Us>(what)...), to_(std::exchange(from, {})), sanitizer_(sanitizer) {}

  PIRN_ALWAYS_INLINE arch::peer take() noexcept { return std::exchange(to_, {}); }

  std::tuple<Ts...> values_;
  arch::peer to_;
  [[no_unique_address]] sanitizer_peer sanitizer_;
};
/// The end of a body that returned.
template <class... Ts>
struct context_end_of : context_end {
  word words[value_words];  // as a resume would have sent them
  typename value_list<Ts...>::packed_args packed;
  finished<Ts...> last;

  /// `body` returns the value that becomes `last`, in its place: no context would be left to receive an exception of
  /// its move.
  template <class Body>
  PIRN_ALWAYS_INLINE context_end_of(std::in_place_t /*unused*/, Body&& body) : last(std::forward<Body>(body)()) {
    std::apply([this](auto&... each) { packed.pack(words, each...); }, last.values_);
    destroy_values = [](context_end& self) noexcept { std::destroy_at(&static_cast<context_end_of&>(self).last); };
  }
};

template <class T>
inline constexpr bool is_finished = false;
template <class... Ts>
inline constexpr bool is_finished<finished<Ts...>> = true;

/// The code between the root frame and a body.
struct continuation_runner {
  template <class Back, class... First, class Record>
  [[noreturn]] PIRN_NONE PIRN_NOINLINE static void run(void* pc, void* sp, void* fp, word value0, word value1,
                                                       word value2, word value3, type_list<First...>, Record* record) {
    using body_type = typename Record::body_type;
    constexpr bool by_reference = std::is_invocable_v<body_type&, Back&, First...>;
    static_assert(by_reference || std::is_invocable_v<body_type&, Back, First...>,
                  "the body of a continuation takes (continuation back, first...) or (continuation& back, first...), "
                  "where `back` is of the dual type");
    using result = std::invoke_result_t<body_type&, std::conditional_t<by_reference, Back&, Back>, First...>;
    static_assert(is_finished<result>, "the body of a continuation ends by `return std::move(k).finish(values...)`");
    using end_type = typename result::end_type;

    union storage {
      storage() {}
      ~storage() {}
      context_end none;
      end_type some;
    } end;
    arch::peer to{pc, sp, fp};
    sanitizer_peer sanitizer;
    sanitizer.arrive();
    const word words[value_words] = {value0, value1, value2, value3};
    {
      Back back;
      std::exception_ptr thrown;
      ending how = ending::unwound;
      if (!arch::is_tagged(to)) [[likely]] {
        how = run_unwindable(
            [&] {
              value_list<First...>::unpack(words, [&](auto&&... first) {
                const auto call = [&](auto&& who) {
                  new (&end.some) end_type(std::in_place, [&]() -> result {
                    return std::invoke(record->body, std::forward<decltype(who)>(who),
                                       static_cast<First>(std::forward<decltype(first)>(first))...);
                  });
                  to = end.some.last.take();
                  sanitizer = end.some.last.sanitizer_;
                };
                if constexpr (by_reference) {
                  back = Back::make(to, sanitizer);
                  call(back);
                } else {
                  call(Back::make(to, sanitizer));
                }
              });
            },
            thrown);
      } else {
        if (to.pc == nullptr) {
          finished_into_a_fresh_one();
        }
        unwinds_here(slot_access::read).innermost_dropping->back = arch::untagged(to);
        unwinds_here(slot_access::read).innermost_dropping->back_sanitizer = sanitizer;
      }
      std::destroy_at(&record->body);
      if (how != ending::returned) [[unlikely]] {
        const bool threw = leave_otherwise(how, *record, to, sanitizer, back, thrown);
        new (&end.none) context_end;
        end.none.exception = std::move(thrown);
        end.none.threw = threw;
      }
    }
    end.none.record = record;
    word last[value_words];
    last[0] = reinterpret_cast<word>(&end.none);
    leave_indeterminate(last, 1);
    sanitizer.leave_for_good();
    arch::transfer_last(to, last);
  }

  /// Sets the target of the last switch of a body that did not return. Returns whether its exception goes there too.
  template <class Record, class Back>
  PIRN_COLD static bool leave_otherwise(ending how, const Record& record, arch::peer& to, sanitizer_peer& sanitizer,
                                        Back& back, std::exception_ptr& thrown) noexcept {
    const dropping* const drop = unwinds_here(slot_access::read).innermost_dropping;
    if (drop != nullptr && drop->victim >= record.stack.limit() && drop->victim < &record) {
      to = drop->back;  // also when the body answered the unwind by another exception
      sanitizer = drop->back_sanitizer;
      thrown = nullptr;
      return false;
    }
    if (how != ending::threw || !back) {
      end_without_heir(thrown);
    }
    to = std::exchange(back.to_, {});
    sanitizer = back.sanitizer_;
    return true;
  }
};

/// The function that a continuation's context begins in.
template <class Back, class First, class Record>
PIRN_NONE void continuation_entry(void* pc, void* sp, void* fp, word value0, word value1, word value2, word value3) {
  std::uintptr_t at = record_above(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  while (!continuation_record::is_at(at)) [[unlikely]] {  // frames are large without optimization
    at += record_alignment;
  }
  auto* const record = reinterpret_cast<Record*>(at);
  continuation_runner::run<Back>(pc, sp, fp, value0, value1, value2, value3, First{}, record);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
