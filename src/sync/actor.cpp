// The mailbox of an actor, and its errors.
#include "pirn/sync/actor.hpp"

#include <system_error>

#include "pirn/fiber/detail/suspend.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

void throw_actor_closed() {
  throw std::system_error(std::make_error_code(std::errc::operation_not_permitted), "pirn: call() on a closed actor");
}
void throw_calls_itself() {
  throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                          "pirn: an actor waits for a call to itself");
}

actor_message* actor_mailbox::take() noexcept {
  for (;;) {
    const std::uintptr_t old = head_.fetch_and(closed, platform::memory_order_acquire);
    if (old > closed) {
      actor_message* oldest = nullptr;
      for (auto* each = reinterpret_cast<actor_message*>(old & ~closed); each != nullptr;) {
        actor_message* const next = each->next;
        each->next = oldest;
        oldest = each;
        each = next;
      }
      return oldest;
    }
    if (old == closed) {
      return nullptr;
    }
    direct_entry entry{[this](const waker& handle) { sleeper_ = handle; },
                       [this] {
                         const waker sleeper = sleeper_;
                         std::uintptr_t none = 0;
                         if (!head_.compare_exchange_strong(none, waiting, platform::memory_order_release,
                                                            platform::memory_order_relaxed)) {
                           static_cast<void>(sleeper.claim(wake_reason::notified));
                           schedule(*sleeper.agent(), placement::front);
                         }
                       }};
    static_cast<void>(
        suspend(current_agent(), {.stoppable = false, .what = "a call of an actor", .object = this}, entry));
  }
}

void actor_mailbox::close() noexcept {
  std::uintptr_t old = head_.load(platform::memory_order_relaxed);
  while (!head_.compare_exchange_weak(old, old == waiting ? closed : old | closed, platform::memory_order_acq_rel,
                                      platform::memory_order_relaxed)) {
  }
  if (old == waiting) {
    static_cast<void>(sleeper_.wake());
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
