// Variables of which each thread of usched.h has its own value.
#include "compat/usched_locals.hpp"

#include <pthread.h>

#include "compat/values_by_owner.hpp"
#include "usched.h"

namespace pirn_usched {

constinit pirn::platform::atomic<unsigned> threads_with_values{0};

namespace {

// A thread may be blocked on one OS thread and end on another, with the fiber in which its dispatcher runs.
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit pirn_compat::values_by_owner all;

struct locked {
  locked() noexcept { pthread_mutex_lock(&lock); }
  ~locked() { pthread_mutex_unlock(&lock); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
};

}  // namespace

void end_values(const void* thread) {
  pirn_c::locals* values = nullptr;
  {
    const locked here;
    values = all.find(thread);
  }
  if (values != nullptr) {
    values->end();
    const locked here;
    all.remove(thread);
    threads_with_values.fetch_sub(1, pirn::platform::memory_order_relaxed);
  }
}

}  // namespace pirn_usched

extern "C" {

ustack_local ustack_local_create(void (*end)(void* value)) { return pirn_c::local_keys::make(end); }

void* ustack_local_get(ustack_local variable) {
  const ustack* const self = ustack_self();
  const pirn_usched::locked here;
  const pirn_c::locals* const values = pirn_usched::all.find(self);
  return values != nullptr ? values->get(variable) : nullptr;
}

int ustack_local_set(ustack_local variable, void* value) {
  const ustack* const self = ustack_self();
  if (!pirn_c::local_keys::has(variable)) {
    return -EINVAL;
  }
  const pirn_usched::locked here;
  const bool had_some = pirn_usched::all.find(self) != nullptr;
  pirn_c::locals* const values = pirn_usched::all.find_or_add(self);
  if (values == nullptr) {
    return -ENOMEM;
  }
  if (!had_some) {
    pirn_usched::threads_with_values.fetch_add(1, pirn::platform::memory_order_relaxed);
  }
  return values->set(variable, value);
}

}  // extern "C"
