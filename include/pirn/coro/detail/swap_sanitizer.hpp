// The calls to sanitizers when swapped tasks take turns on one stack. As sanitizer.hpp, but a switch leaves and enters
// the same stack, which has the frames of another task on top each time.
#pragma once

#include <cstddef>

#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/coro/detail/native_stack.hpp"
#include "pirn/detail/abi.hpp"

// Code between two swapped tasks: it is entered on behalf of one and never returns on its behalf, so the red zones of
// its locals would stay. The red zones of an inlined function come and go with the function that it is inlined into.
// With a sanitizer, functions that are ordinarily inlined into shared code are therefore not inlined.
#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
#define PIRN_UNSANITIZED
#define PIRN_UNSANITIZED_INLINE PIRN_ALWAYS_INLINE
#elif defined(__clang__)
#define PIRN_UNSANITIZED __attribute__((disable_sanitizer_instrumentation))
#define PIRN_UNSANITIZED_INLINE PIRN_UNSANITIZED PIRN_NOINLINE
#else
#define PIRN_UNSANITIZED __attribute__((no_sanitize("address", "thread")))
#define PIRN_UNSANITIZED_INLINE PIRN_UNSANITIZED PIRN_NOINLINE
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

#if defined(PIRN_ASAN)
/// The fake stack of a swapped task: ASan puts frames there to detect uses after return. Each task has one, since ASan
/// frees its frames by comparing stack positions.
class swap_sanitizer {
 public:
  PIRN_ALWAYS_INLINE void leave(swap_sanitizer& /*to*/) noexcept {
    const native_stack& here = bounds_of_thread();
    __sanitizer_start_switch_fiber(&fake_, here.low, here.size);
    if (fake_ != nullptr) {  // its only scan by LeakSanitizer
      __lsan_register_root_region(fake_, fake_stack_size(here.size));
    }
  }
  PIRN_ALWAYS_INLINE void leave_for_good(swap_sanitizer& /*to*/) noexcept {
    const native_stack& here = bounds_of_thread();
    __sanitizer_start_switch_fiber(nullptr, here.low, here.size);
  }
  PIRN_ALWAYS_INLINE void arrive() noexcept {
    if (fake_ != nullptr) {
      __lsan_unregister_root_region(fake_, fake_stack_size(bounds_of_thread().size));
    }
    __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr);
    fake_ = nullptr;
  }
  /// Its frames are dropped while it is suspended.
  void discard() noexcept {
    if (fake_ != nullptr) {
      const native_stack& here = bounds_of_thread();
      __lsan_unregister_root_region(fake_, fake_stack_size(here.size));
      void* mine = nullptr;
      __sanitizer_start_switch_fiber(&mine, here.low, here.size);
      __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr);
      __sanitizer_start_switch_fiber(nullptr, here.low, here.size);
      __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
      fake_ = nullptr;
    }
  }
  /// The frames in [low, low + size) are gone: later frames there find no red zones of theirs.
  PIRN_ALWAYS_INLINE static void clear(const void* low, std::size_t size) noexcept {
    __asan_unpoison_memory_region(low, size);
  }

 private:
  static const native_stack& bounds_of_thread() noexcept {
    thread_local const native_stack found = native_stack::of_thread();
    return found;
  }
  void* fake_ = nullptr;  // while it is suspended
};
#elif defined(PIRN_TSAN)
/// TSan's fiber of a swapped task: it keeps the chain of calls.
class swap_sanitizer {
 public:
  PIRN_ALWAYS_INLINE void leave(swap_sanitizer& to) noexcept {
    fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.taken(), 0);
  }
  PIRN_ALWAYS_INLINE void leave_for_good(swap_sanitizer& to) noexcept {
    void* const left = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.taken(), 0);
    __tsan_destroy_fiber(left);
  }
  PIRN_ALWAYS_INLINE void arrive() noexcept {}
  void discard() noexcept {
    if (fiber_ != nullptr) {
      __tsan_destroy_fiber(fiber_);
      fiber_ = nullptr;
    }
  }
  PIRN_ALWAYS_INLINE static void clear(const void*, std::size_t) noexcept {}

 private:
  /// Takes its TSan fiber, so that it has none while it runs; a task that has not run yet gets one.
  void* taken() noexcept {
    void* const mine = fiber_ != nullptr ? fiber_ : __tsan_create_fiber(0);
    fiber_ = nullptr;
    return mine;
  }
  void* fiber_ = nullptr;
};
#else
/// The empty variant, without a sanitizer.
class swap_sanitizer {
 public:
  PIRN_ALWAYS_INLINE void leave(swap_sanitizer&) noexcept {}
  PIRN_ALWAYS_INLINE void leave_for_good(swap_sanitizer&) noexcept {}
  PIRN_ALWAYS_INLINE void arrive() noexcept {}
  PIRN_ALWAYS_INLINE void discard() noexcept {}
  PIRN_ALWAYS_INLINE static void clear(const void*, std::size_t) noexcept {}
};
#endif

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
