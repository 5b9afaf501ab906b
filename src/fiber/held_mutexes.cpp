// A fiber that suspends while it holds a pthread mutex: the next caller of lock blocks a whole worker, perhaps the one
// that would have resumed the fiber. A worker whose fiber has taken a mutex has `force_slow_path`: then its next
// suspension takes the slow paths, which check here. No other suspension does. Programs that link pirn::held_mutexes
// count the mutexes (src/fiber/held_mutexes/pthread_mutex.cpp).
#include <utility>

#include "fiber/runtime_state.hpp"
#include "stack/backtrace.hpp"

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

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
