// The coroutines of a coroutine_pool: the contents of a stack, how a job begins and ends, and the yield object.
//
//        +----------------------+ the stack's top
//        | pool_coroutine       | its variables, where its job is suspended, the stack, the sanitizers' state
//        +----------------------+ 16-byte aligned
//        | root frame           | of arch::transfer_into
//        | pool_job::enter      | holds the job and the yield object, calls the job, makes the last switch
//        | ...                  |
//
// Words; a yield and the resume after it carry none:
//   start            the coroutine's address, then the job itself, if it fits into three words, or its address
//   end (tagged)     how the job ended, then the address of its exception
//   cancel (tagged)  the address of the canceller's forced_unwind
//
// An idle coroutine is suspended nowhere: a job begins by a direct jump to its entry function, as a new coroutine does.
// With a loop that waits there and calls one job after the other, a job took 76 instructions instead of 54.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/stored_peer.hpp"
#include "pirn/context/detail/value_words.hpp"
#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/detail/coroutine_core.hpp"
#include "pirn/coro/detail/in_flight.hpp"
#include "pirn/coro/detail/locals_here.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The argument of a job, by which it suspends. It lives in the frame of the job's entry function.
class pool_yield : public coroutine_locals {
 public:
  /// Suspends the job until its next resume(). Throws std::logic_error if the job is not the running one. A suspension
  /// point: any thread may resume it, and destroying the job unwinds it from here.
  PIRN_ALWAYS_INLINE void operator()() {
    if (stack_position() - limit_ > size_) [[unlikely]] {
      refuse_yield(stack_position(), limit_, size_, false);
    }
    word words[value_words];
    leave_indeterminate(words, 0);
    forget(words);
    arch::peer resumer = resumer_.get();
    detail::transfer_back(resumer, words, sanitizer_, limit_, limit_ + size_);
    resumer_ = stored_peer(resumer);
    if (arch::is_tagged(resumer)) [[unlikely]] {
      resumer_ = stored_peer(arch::untagged(resumer));
      reinterpret_cast<forced_unwind*>(words[0])->raise();
    }
  }

  /// As `trim_callers` of the yield object of a coroutine.
  void trim_callers() noexcept { show_caller(&resumer_.sp); }

 private:
  template <class>
  friend struct pool_job;
  PIRN_ALWAYS_INLINE pool_yield(const arch::peer& resumer, locals_owner& of, word limit, word size) noexcept
      : coroutine_locals(of), resumer_(resumer), limit_(limit), size_(size) {}

  stored_peer resumer_;
  word limit_;  // of the coroutine's stack
  word size_;
  [[no_unique_address]] sanitizer_peer sanitizer_;
};

/// A coroutine of a pool. It lies at the top of its stack.
struct alignas(16) pool_coroutine : locals_owner {
  explicit pool_coroutine(const stack& on) noexcept : locals_owner(on.limit()), memory(on) {}
  /// Puts a coroutine onto a stack, and touches its first page thereby.
  [[nodiscard]] static pool_coroutine* make(const stack& memory) noexcept {
    const word top = reinterpret_cast<word>(memory.top());
    const word at = (top - sizeof(pool_coroutine)) & ~word{alignof(pool_coroutine) - 1};
    return new (reinterpret_cast<void*>(at)) pool_coroutine(memory);
  }
  [[nodiscard]] PIRN_ALWAYS_INLINE bool running() const noexcept { return at.sp == runs; }
  /// Called when its job has ended: it is idle.
  PIRN_ALWAYS_INLINE void ended() noexcept {
    sanitizer.forget();
    state.destroy();
  }
  /// Unwinds its suspended job.
  PIRN_COLD void cancel() noexcept {
    word words[value_words];
    cancel_body(at.get(), sanitizer, words, [&words](forced_unwind& unwind) {
      if (words[0] == static_cast<word>(last_word::threw)) {
        auto& thrown = *reinterpret_cast<std::exception_ptr*>(words[1]);
        if (thrown != nullptr) {
          unwind.report(dropped_exception);
          thrown = nullptr;
        }
      }
    });
    ended();
  }

  static constexpr word runs = 2;  // no address of a stack

  stored_peer at{};  ///< of the suspended job; its sp is `runs` while that is resumed
  stack memory;
  [[no_unique_address]] sanitizer_peer sanitizer{};
  [[no_unique_address]] sanitizer_state state{};
};

/// How jobs of type `What`, as `start` gets them, begin and end.
template <class What>
struct pool_job {
  using given = std::remove_reference_t<What>;
  using stored = std::decay_t<What>;
  static constexpr bool in_words = fits_in_words<stored> && word_codec<stored>::words < value_words;

  /// Begins a job on an idle coroutine. Afterwards `to` and `words` are those of its first switch.
  PIRN_ALWAYS_INLINE static void begin(pool_coroutine& on, given& what, arch::peer& to, word (&words)[value_words]) {
    on.state.create(on.memory.limit(), on.memory.size(), "coroutine");
    on.sanitizer = sanitizer_peer(on.state);
    words[0] = reinterpret_cast<word>(&on);
    if constexpr (in_words) {
      word_codec<given>::pack(what, &words[1]);
      leave_indeterminate(words, 1 + word_codec<stored>::words);
    } else {
      words[1] = reinterpret_cast<word>(std::addressof(what));
      leave_indeterminate(words, 2);
    }
    if (maybe_in_flight()) [[unlikely]] {
      with_copies(to, words, on.sanitizer,
                  [&on](auto&... copies) __attribute__((always_inline)) { begin_in_flight(&on, copies...); });
    } else {
      switch_into(&on, to, words, on.sanitizer);
    }
  }

 private:
  PIRN_ALWAYS_INLINE static void switch_into(pool_coroutine* on, arch::peer& to, word (&words)[value_words],
                                             sanitizer_peer& sanitizer) noexcept {
    sanitizer.leave();
    arch::transfer_into<&enter>(on, to, words);
    sanitizer.arrive();
  }
  PIRN_COLD static void begin_in_flight(pool_coroutine* on, arch::peer& to, word (&words)[value_words],
                                        sanitizer_peer& sanitizer) noexcept {
    const saved_exception_state kept;
    switch_into(on, to, words, sanitizer);
  }

  PIRN_NONE static void enter(void* pc, void* sp, void* fp, word self, [[maybe_unused]] word word0,
                              [[maybe_unused]] word word1, [[maybe_unused]] word word2) {
    auto& on = *reinterpret_cast<pool_coroutine*>(self);
    const word limit = reinterpret_cast<word>(on.limit);
    word last[value_words];
    leave_indeterminate(last, 0);
    std::exception_ptr thrown;
    pool_yield yield({pc, sp, fp}, on, limit, self - limit);
    yield.sanitizer_.arrive();
    const ending how = run_unwindable(
        [&] {
          if constexpr (in_words) {
            const word words[] = {word0, word1, word2};
            stored mine = word_codec<stored>::unpack(words);
            mine(yield);
          } else {
            stored mine(std::forward<What>(*reinterpret_cast<given*>(word0)));  // now on the coroutine's stack
            mine(yield);
          }
        },
        thrown);
    last[0] = static_cast<word>(last_word::returned);
    if (how != ending::returned) [[unlikely]] {
      last[0] = static_cast<word>(how == ending::threw ? last_word::threw : last_word::unwound);
      last[1] = reinterpret_cast<word>(how == ending::threw ? static_cast<void*>(&thrown) : forced_unwind::of_thread());
    }
    if (!on.plain()) [[unlikely]] {
      const arch::peer resumer = yield.resumer_.get();
      end_with_variables<false>(resumer.pc, resumer.sp, resumer.fp, on, last[0], last[1], last[2], last[3],
                                yield.sanitizer_);
    }
    yield.sanitizer_.leave_for_good();
    arch::transfer_last(yield.resumer_.get(), last);
  }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
