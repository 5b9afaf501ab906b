// Finds fibers that suspend while they hold a pthread mutex, std::mutex included: the next caller of lock blocks a
// whole worker, perhaps the one that would have resumed the fiber. Only in builds without NDEBUG, on glibc and without
// sanitizers, which have their own functions for this.
//
// The functions below replace the C library's in the whole program, and call those. A worker whose fiber has taken a
// mutex has `force_slow_path`: then its next suspension takes the slow paths, which check here. No other suspension
// does.
#include <cerrno>
#include <utility>

#include "fiber/runtime_state.hpp"
#include "stack/backtrace.hpp"

#if !defined(NDEBUG) && defined(__GLIBC__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
#include <dlfcn.h>
#include <pthread.h>
#define PIRN_SEES_MUTEXES 1
#else
#define PIRN_SEES_MUTEXES 0
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

void worker::hold_mutexes(unsigned count) noexcept {
  mutexes_held = count;
  update_slow_masks();
}

unsigned worker::leave_mutexes(const fiber_control& self) noexcept {
  const unsigned held = mutexes_held;
  if (held == 0) {
    return 0;
  }
  hold_mutexes(0);
  if (std::exchange(last_told_, self.number()) != self.number()) {
    static platform::spinlock lock;
    static backtrace trace;  // too large for a fiber's stack
    const platform::spin_guard guard(lock);
    message out(2);
    out.text("pirn: fiber ").number(self.number()).text(" \"").text(self.name());
    out.text("\" suspends while it holds a pthread mutex\n");
    trace.collect(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
    trace.resolve();
    trace.print(out, trace.first_of_caller());
    out.flush();
  }
  return held;
}

#if PIRN_SEES_MUTEXES

namespace {

using operation = int(pthread_mutex_t*);

/// Returns the C library's function of that name: `linked` in a statically linked program, else the next one in the
/// loader's search order.
operation* original(platform::signal_atomic<operation*>& known, operation* linked, const char* name) noexcept {
  operation* found = known.load(platform::memory_order_acquire);
  if (found == nullptr) {
    found = linked != nullptr ? linked : reinterpret_cast<operation*>(dlsym(RTLD_NEXT, name));
    known.store(found, platform::memory_order_release);
  }
  return found;
}

int locked(int result) noexcept {
  if (worker* const w = current_worker(); w != nullptr && (result == 0 || result == EOWNERDEAD)) {
    w->hold_mutexes(w->mutexes_held + 1);
  }
  return result;
}

void unlocked() noexcept {
  if (worker* const w = current_worker(); w != nullptr && w->mutexes_held != 0) {
    w->hold_mutexes(w->mutexes_held - 1);
  }
}

constinit platform::signal_atomic<operation*> known_lock{nullptr};
constinit platform::signal_atomic<operation*> known_try_lock{nullptr};
constinit platform::signal_atomic<operation*> known_unlock{nullptr};

}  // namespace

#endif

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#if PIRN_SEES_MUTEXES

extern "C" {

// These functions by their names in a static C library.
[[gnu::weak]] int __pthread_mutex_lock(pthread_mutex_t* mutex) noexcept;
[[gnu::weak]] int __pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept;
[[gnu::weak]] int __pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept;

// Weak, since a static C library may bring its own.
[[gnu::weak]] int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using namespace pirn::detail;
  return locked(original(known_lock, &__pthread_mutex_lock, "pthread_mutex_lock")(mutex));
}
[[gnu::weak]] int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  using namespace pirn::detail;
  return locked(original(known_try_lock, &__pthread_mutex_trylock, "pthread_mutex_trylock")(mutex));
}
[[gnu::weak]] int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  using namespace pirn::detail;
  unlocked();
  return original(known_unlock, &__pthread_mutex_unlock, "pthread_mutex_unlock")(mutex);
}
}

#endif
