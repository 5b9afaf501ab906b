// The notifications of sanitizers about aco.h's coroutines. The sanitizers are looked up when the program runs: one
// installed library serves programs with and without them, as does a library that is itself built with one.
#pragma once

#include <cstddef>

extern "C" {
void __sanitizer_print_stack_trace() __attribute__((weak));  // in all of them
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t size) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* size) __attribute__((weak));
void __asan_poison_memory_region(const volatile void* from, std::size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void* from, std::size_t size) __attribute__((weak));
void __lsan_register_root_region(const void* from, std::size_t size) __attribute__((weak));
void __lsan_unregister_root_region(const void* from, std::size_t size) __attribute__((weak));
void* __tsan_get_current_fiber() __attribute__((weak));
void* __tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void* fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void* fiber, unsigned flags) __attribute__((weak));
}

namespace pirn_aco {

inline bool has_asan() noexcept { return &__sanitizer_start_switch_fiber != nullptr; }
inline bool has_tsan() noexcept { return &__tsan_switch_to_fiber != nullptr; }
/// Whether there is a sanitizer to notify.
inline bool watched() noexcept { return &__sanitizer_print_stack_trace != nullptr; }

/// Makes frames inaccessible until they are unpoisoned.
inline void poison(const void* from, std::size_t size) noexcept {
  if (&__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(from, size);
  }
}
/// Clears the red zones of frames that are about to leave a stack: frames of other coroutines follow.
inline void unpoison(const void* from, std::size_t size) noexcept {
  if (&__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(from, size);
  }
}
/// Registers pointers that LeakSanitizer would not find: those on a stack that does not belong to a thread.
inline void add_roots(const void* from, std::size_t size) noexcept {
  if (&__lsan_register_root_region != nullptr) {
    __lsan_register_root_region(from, size);
  }
}
inline void remove_roots(const void* from, std::size_t size) noexcept {
  if (&__lsan_unregister_root_region != nullptr) {
    __lsan_unregister_root_region(from, size);
  }
}

/// The sanitizers' data of one coroutine. All zero before `create`.
struct sanitizer_state {
  const void* bottom;  // of its stack; a main coroutine's is learnt at its first switch
  std::size_t size;
  void* fake_stack;
  void* fiber;
  bool owns_fiber;
  sanitizer_state* from;  // the coroutine that switched to it last

  void create(const void* stack, std::size_t stack_size) noexcept {
    *this = {stack, stack_size, nullptr, nullptr, stack != nullptr, nullptr};
    if (has_tsan()) {
      fiber = owns_fiber ? __tsan_create_fiber(0) : __tsan_get_current_fiber();
    }
  }
  void destroy() noexcept {
    if (has_tsan() && owns_fiber) {
      __tsan_destroy_fiber(fiber);
    }
  }
  void leave(sanitizer_state& to, bool for_good) noexcept {
    to.from = this;
    if (has_asan()) {
      __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack, to.bottom, to.size);
    }
    if (has_tsan()) {
      __tsan_switch_to_fiber(to.fiber, 0);
    }
  }
  void arrive() noexcept {
    if (has_asan()) {
      const void* left = nullptr;
      std::size_t left_size = 0;
      __sanitizer_finish_switch_fiber(fake_stack, &left, &left_size);
      if (from->bottom == nullptr) {
        from->bottom = left;
        from->size = left_size;
      }
      fake_stack = nullptr;
    }
  }
};

}  // namespace pirn_aco
