// What AddressSanitizer, ThreadSanitizer and valgrind must be told about a switch, as one type with an empty twin:
// a switch calls the hooks unconditionally, and without a sanitizer they are nothing and take no space.
//
// Order of calls, for a switch from A to B:   A.leave(B)   [the switch]   B.arrive()
// and for the last switch of A, which will never be resumed:  A.leave_for_good(B)   [the switch]   B.arrive()
#pragma once

#include <pthread.h>

#include <cstddef>

#include "pirn/detail/abi.hpp"

#if defined(PIRN_ASAN)
#include <sanitizer/common_interface_defs.h>
#elif defined(PIRN_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(PIRN_VALGRIND)
#include <valgrind/valgrind.h>
#endif

namespace pirn::inline PIRN_ABI {

#if defined(PIRN_ASAN)
/// One per context: its stack's bounds and its fake stack (the frames of detect_stack_use_after_return).
class sanitizer_state {
 public:
  /// For a context on a stack of its own: before its first resume.
  void create(void* limit, std::size_t size, const char* /*name*/) noexcept {
    limit_ = limit;
    size_ = size;
    fake_stack_ = nullptr;
  }
  /// For the context that an OS thread runs anyway.
  void adopt_thread() noexcept {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* limit = nullptr;
      std::size_t size = 0;
      pthread_attr_getstack(&attributes, &limit, &size);
      pthread_attr_destroy(&attributes);
      create(limit, size, nullptr);
    }
  }
  void destroy() noexcept {}
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state& to) noexcept {
    __sanitizer_start_switch_fiber(&fake_stack_, to.limit_, to.size_);
  }
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state& to) noexcept {
    __sanitizer_start_switch_fiber(nullptr, to.limit_, to.size_);
  }
  PIRN_ALWAYS_INLINE void arrive() noexcept { __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr); }

 private:
  void* fake_stack_ = nullptr;
  const void* limit_ = nullptr;
  std::size_t size_ = 0;
};
#elif defined(PIRN_TSAN)
/// One per context: TSan's own notion of a fiber.
class sanitizer_state {
 public:
  void create(void* /*limit*/, std::size_t /*size*/, const char* name) noexcept {
    fiber_ = __tsan_create_fiber(0);
    if (name != nullptr) {
      __tsan_set_fiber_name(fiber_, name);
    }
  }
  void adopt_thread() noexcept { fiber_ = __tsan_get_current_fiber(); }
  void destroy() noexcept { __tsan_destroy_fiber(fiber_); }
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state& to) noexcept { __tsan_switch_to_fiber(to.fiber_, 0); }
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state& to) noexcept { leave(to); }
  PIRN_ALWAYS_INLINE void arrive() noexcept {}

 private:
  void* fiber_ = nullptr;
};
#elif defined(PIRN_VALGRIND)
/// One per context: valgrind's registration of its stack.
class sanitizer_state {
 public:
  void create(void* limit, std::size_t size, const char* /*name*/) noexcept {
    stack_ = VALGRIND_STACK_REGISTER(limit, static_cast<char*>(limit) + size);
  }
  void adopt_thread() noexcept {}
  void destroy() noexcept { VALGRIND_STACK_DEREGISTER(stack_); }
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state&) noexcept {}
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state&) noexcept {}
  PIRN_ALWAYS_INLINE void arrive() noexcept {}

 private:
  unsigned stack_ = 0;
};
#else
/// The empty twin.
class sanitizer_state {
 public:
  PIRN_ALWAYS_INLINE void create(void*, std::size_t, const char*) noexcept {}
  PIRN_ALWAYS_INLINE void adopt_thread() noexcept {}
  PIRN_ALWAYS_INLINE void destroy() noexcept {}
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state&) noexcept {}
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state&) noexcept {}
  PIRN_ALWAYS_INLINE void arrive() noexcept {}
};
#endif

}  // namespace pirn::inline PIRN_ABI
