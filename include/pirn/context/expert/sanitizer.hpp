// The hooks by which AddressSanitizer, LeakSanitizer, ThreadSanitizer and valgrind learn of a switch, as one type with
// an empty twin: a switch calls the hooks unconditionally, and without a sanitizer they do nothing and take no space.
//
// Order of calls, for a switch from A to B:   A.leave(B)   [the switch]   B.arrive()
// and for the last switch of A, which will never be resumed:  A.leave_for_good(B)   [the switch]   B.arrive()
// Before all of them comes create or adopt_thread, and after all of them destroy, from another context or, for an
// adopted one, from its thread. A context may be destroyed while suspended and before it ever ran.
//
// sanitizer_peer does the same where a context does not know its own state, but only its peer:
//   peer.leave()   [the switch]   peer.arrive()     peer now stands for the context that resumed us
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pirn/detail/abi.hpp"

#if defined(PIRN_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#elif defined(PIRN_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(PIRN_VALGRIND)
#include <valgrind/valgrind.h>
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

#if defined(PIRN_ASAN)
namespace detail {
/// How much ASan maps as fake stack for a stack of this size: a page, two flag bytes per 64-byte frame, and the stack's
/// size, between 64 KiB and 1 MiB, once for each of its eleven classes of frames.
constexpr std::size_t fake_stack_size(std::size_t stack_size) noexcept {
  std::size_t frames = std::size_t{1} << 16;
  while (frames < stack_size && frames < std::size_t{1} << 20) {
    frames *= 2;
  }
  return 4096 + frames / 32 + frames * 11;
}
}  // namespace detail

/// One per context: its stack's bounds and its fake stack (where detect_stack_use_after_return puts frames). They are
/// registered with LeakSanitizer, which otherwise scans only the stack that a thread is running on.
class sanitizer_state {
 public:
  /// For a context on a separate stack: before its first resume.
  void create(void* limit, std::size_t size, const char* /*name*/) noexcept {
    adopted_ = false;
    set_bounds(limit, size);
  }
  /// For the context that an OS thread runs anyway.
  void adopt_thread() noexcept {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* limit = nullptr;
      std::size_t size = 0;
      pthread_attr_getstack(&attributes, &limit, &size);
      pthread_attr_destroy(&attributes);
      adopted_ = true;
      set_bounds(limit, size);
    }
  }
  void destroy() noexcept {
    forget_fake_stack();
    if (size_ == 0) {
      return;
    }
    __lsan_unregister_root_region(limit_, size_);
    if (!adopted_) {
      free_fake_stack();
      __asan_unpoison_memory_region(limit_, size_);  // abandoned frames leave red zones behind
    }
    size_ = 0;
  }
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state& to) noexcept {
    note_left(this);
    __sanitizer_start_switch_fiber(&fake_stack_, to.left_limit_, to.left_size_);
    if (fake_stack_ != scanned_fake_stack_) {
      forget_fake_stack();
      scanned_fake_stack_ = fake_stack_;
      __lsan_register_root_region(scanned_fake_stack_, fake_stack_size());
    }
  }
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state& to) noexcept {
    note_left(nullptr);
    forget_fake_stack();
    __sanitizer_start_switch_fiber(nullptr, to.left_limit_, to.left_size_);
  }
  PIRN_ALWAYS_INLINE void arrive() noexcept {
    void* mine = fake_stack_;
    fake_stack_ = nullptr;
    const void* limit = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(mine, &limit, &size);
    if (sanitizer_state* const left = last_left()) {  // its bounds are known only now
      left->left_limit_ = limit;
      left->left_size_ = size;
    }
  }

 private:
  // Not inlined and not treated as a constant: the thread is another one after a switch.
  PIRN_NOINLINE __attribute__((no_sanitize("address"))) static void note_left(sanitizer_state* state) noexcept {
    left_ = state;
    asm volatile("" ::: "memory");
  }
  PIRN_NOINLINE __attribute__((no_sanitize("address"))) static sanitizer_state* last_left() noexcept {
    asm volatile("" ::: "memory");
    return std::exchange(left_, nullptr);
  }
  void set_bounds(void* limit, std::size_t size) noexcept {
    left_limit_ = limit_ = limit;
    left_size_ = size_ = size;
    fake_stack_ = nullptr;
    __lsan_register_root_region(limit_, size_);
  }
  __attribute__((no_sanitize_address)) void forget_fake_stack() noexcept {
    if (scanned_fake_stack_ != nullptr) {
      __lsan_unregister_root_region(scanned_fake_stack_, fake_stack_size());
      scanned_fake_stack_ = nullptr;
    }
  }
  /// Simulates a switch to this context and its last switch back, by which ASan frees its fake stack.
  __attribute__((no_sanitize_address)) void free_fake_stack() noexcept {
    if (fake_stack_ != nullptr) {
      void* mine = nullptr;
      const void* limit = nullptr;
      std::size_t size = 0;
      __sanitizer_start_switch_fiber(&mine, limit_, size_);
      __sanitizer_finish_switch_fiber(fake_stack_, &limit, &size);
      __sanitizer_start_switch_fiber(nullptr, limit, size);
      __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
      fake_stack_ = nullptr;
    }
  }
  __attribute__((no_sanitize_address)) std::size_t fake_stack_size() const noexcept {
    return detail::fake_stack_size(size_);
  }

  friend class sanitizer_peer;
  static inline thread_local sanitizer_state* left_ = nullptr;
  void* fake_stack_ = nullptr;
  void* scanned_fake_stack_ = nullptr;
  void* limit_ = nullptr;
  std::size_t size_ = 0;
  const void* left_limit_ = nullptr;  // those above, or those of a coroutine's stack on which it was left
  std::size_t left_size_ = 0;
  bool adopted_ = false;
};

/// Travels with a peer: the bounds of its stack, and its fake stack. ASan reports the bounds of a stack when it is
/// left, so no earlier registration is needed. LeakSanitizer scans the two while the peer is suspended.
class sanitizer_peer {
 public:
  sanitizer_peer() noexcept = default;
  /// For a context that has not run yet.
  explicit sanitizer_peer(const sanitizer_state& fresh) noexcept : limit_(fresh.limit_), size_(fresh.size_) {}
  PIRN_ALWAYS_INLINE void leave() noexcept {
    forget();
    __sanitizer_start_switch_fiber(&fake_stack_, limit_, size_);
    note_left(fake_stack_);
  }
  PIRN_ALWAYS_INLINE void leave_for_good() noexcept {
    forget();
    note_left(nullptr);
    __sanitizer_start_switch_fiber(nullptr, limit_, size_);
  }
  PIRN_ALWAYS_INLINE void arrive() noexcept {
    __sanitizer_finish_switch_fiber(fake_stack_, &limit_, &size_);
    fake_stack_ = nullptr;
    scanned_ = true;
    __lsan_register_root_region(limit_, size_);
    peer_fake_stack_ = last_left();
    if (peer_fake_stack_ != nullptr) {
      __lsan_register_root_region(peer_fake_stack_, detail::fake_stack_size(size_));
    }
  }
  /// The peer has ended, or will be left: it need not be scanned as a suspended one.
  PIRN_ALWAYS_INLINE void forget() noexcept {
    if (scanned_) {
      __lsan_unregister_root_region(limit_, size_);
      if (peer_fake_stack_ != nullptr) {
        __lsan_unregister_root_region(peer_fake_stack_, detail::fake_stack_size(size_));
      }
      scanned_ = false;
    }
  }

 private:
  // As the functions of sanitizer_state with these names.
  PIRN_NOINLINE __attribute__((no_sanitize("address"))) static void note_left(void* fake_stack) noexcept {
    left_ = fake_stack;
    asm volatile("" ::: "memory");
  }
  PIRN_NOINLINE __attribute__((no_sanitize("address"))) static void* last_left() noexcept {
    asm volatile("" ::: "memory");
    return std::exchange(left_, nullptr);
  }

  static inline thread_local void* left_ = nullptr;  // the fake stack of the context that leaves
  void* fake_stack_ = nullptr;                       // ours, while we are away
  void* peer_fake_stack_ = nullptr;
  const void* limit_ = nullptr;
  std::size_t size_ = 0;
  bool scanned_ = false;
};
#elif defined(PIRN_TSAN)
/// One per context: TSan's own notion of a fiber.
class sanitizer_state {
 public:
  void create(void* /*limit*/, std::size_t /*size*/, const char* name) noexcept {
    adopted_ = false;
    left_in_ = fiber_ = __tsan_create_fiber(0);
    if (name != nullptr) {
      __tsan_set_fiber_name(fiber_, name);
    }
  }
  void adopt_thread() noexcept {
    adopted_ = true;
    left_in_ = fiber_ = __tsan_get_current_fiber();
  }
  void destroy() noexcept {
    if (fiber_ != nullptr && !adopted_) {
      __tsan_destroy_fiber(fiber_);
    }
    fiber_ = nullptr;
  }
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state& to) noexcept {
    left_in_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.left_in_, 0);
  }
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state& to) noexcept { leave(to); }
  PIRN_ALWAYS_INLINE void arrive() noexcept {}

 private:
  friend class sanitizer_peer;
  void* fiber_ = nullptr;
  void* left_in_ = nullptr;  // fiber_, or that of a coroutine in which it was left
  bool adopted_ = false;
};

/// Travels with a peer: its fiber. The thread records the fiber that is left, for the context that arrives.
class sanitizer_peer {
 public:
  sanitizer_peer() noexcept = default;
  explicit sanitizer_peer(const sanitizer_state& fresh) noexcept : fiber_(fresh.fiber_) {}
  PIRN_ALWAYS_INLINE void leave() noexcept {
    note_left(__tsan_get_current_fiber());
    __tsan_switch_to_fiber(fiber_, 0);
  }
  PIRN_ALWAYS_INLINE void leave_for_good() noexcept { leave(); }
  PIRN_ALWAYS_INLINE void arrive() noexcept { fiber_ = last_left(); }
  PIRN_ALWAYS_INLINE void forget() noexcept {}

 private:
  // Not inlined and not treated as a constant: the thread is another one after a switch.
  PIRN_NOINLINE __attribute__((no_sanitize("thread"))) static void note_left(void* fiber) noexcept {
    left_ = fiber;
    asm volatile("" ::: "memory");
  }
  PIRN_NOINLINE __attribute__((no_sanitize("thread"))) static void* last_left() noexcept {
    asm volatile("" ::: "memory");
    return left_;
  }
  static inline thread_local void* left_ = nullptr;
  void* fiber_ = nullptr;
};
#elif defined(PIRN_VALGRIND)
/// One per context: valgrind's registration of its stack.
class sanitizer_state {
 public:
  void create(void* limit, std::size_t size, const char* /*name*/) noexcept {
    stack_ = VALGRIND_STACK_REGISTER(limit, static_cast<char*>(limit) + size);
    created_ = true;
  }
  void adopt_thread() noexcept {}
  void destroy() noexcept {
    if (created_) {
      VALGRIND_STACK_DEREGISTER(stack_);
      created_ = false;
    }
  }
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state&) noexcept {}
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state&) noexcept {}
  PIRN_ALWAYS_INLINE void arrive() noexcept {}

 private:
  unsigned stack_ = 0;
  bool created_ = false;
};
#else
/// One per context: what a sanitizer or valgrind must know of it. Empty without them, as here.
class sanitizer_state {
 public:
  /// Begins a context on a separate stack, before its first resume. Reports name it by the last argument.
  PIRN_ALWAYS_INLINE void create(void*, std::size_t, const char*) noexcept {}
  /// Begins the context that an OS thread runs anyway.
  PIRN_ALWAYS_INLINE void adopt_thread() noexcept {}
  /// Ends the context.
  PIRN_ALWAYS_INLINE void destroy() noexcept {}
  /// Announces a switch from this context to the given one, directly before it.
  PIRN_ALWAYS_INLINE void leave(const sanitizer_state&) noexcept {}
  /// As `leave`, but this context is never resumed again.
  PIRN_ALWAYS_INLINE void leave_for_good(const sanitizer_state&) noexcept {}
  /// Announces that this context runs, directly after the switch to it.
  PIRN_ALWAYS_INLINE void arrive() noexcept {}
};
#endif

#if !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
/// Travels with a peer: what a sanitizer must know of that. Empty without one, as here; valgrind sees a switch by the
/// change of sp.
class sanitizer_peer {
 public:
  sanitizer_peer() noexcept = default;
  explicit sanitizer_peer(const sanitizer_state&) noexcept {}
  /// Announces a switch to the peer, directly before it.
  PIRN_ALWAYS_INLINE void leave() noexcept {}
  /// As `leave`, but the calling context is never resumed again.
  PIRN_ALWAYS_INLINE void leave_for_good() noexcept {}
  /// Announces the arrival of the calling context. The peer is then the context that was left.
  PIRN_ALWAYS_INLINE void arrive() noexcept {}
  /// Forgets the peer, which has ended or will be left: it need not be scanned as a suspended one.
  PIRN_ALWAYS_INLINE void forget() noexcept {}
};
#endif

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
