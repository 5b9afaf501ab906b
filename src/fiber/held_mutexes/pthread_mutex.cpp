// Counts the pthread mutexes, std::mutex included, that a fiber holds. Only in programs that ask for it, by linking
// pirn::held_mutexes: the functions below replace the C library's in the whole program, and call those. Empty without
// glibc and under sanitizers, which have their own functions for this.
#include <cerrno>

#include "fiber/runtime_state.hpp"

#if defined(__GLIBC__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
#include <dlfcn.h>
#include <pthread.h>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

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

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

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
