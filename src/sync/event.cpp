// The slow paths of an event: waking waiters, and waits.
#include "pirn/sync/event.hpp"

#include "pirn/sync/detail/local_domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class Domain>
void basic_event<Domain>::set_slow() noexcept
  requires(!Domain::is_local)
{
  const wake_policy wake = rule_.wake();  // the event may be gone when the waiters are woken
  waiter* woken = nullptr;
  waiter** tail = &woken;
  for (;;) {
    std::uint32_t word = word_.load(platform::memory_order_relaxed);
    if (word != waited) {
      // The last access: a caller that passes now may destroy the event.
      if (word_.compare_exchange_weak(word, signalled, platform::memory_order_release,
                                      platform::memory_order_relaxed)) {
        break;
      }
      continue;
    }
    waiters_.lock();
    if (word_.load(platform::memory_order_relaxed) == waited) {
      while (waiter* const w = rule_.claim_next(waiters_.list())) {
        if (reset_ == event_reset::automatic) {
          if (waiters_.empty()) {
            word_.store(clear, platform::memory_order_relaxed);
          }
          waiters_.unlock();
          schedule(*w->wake.agent(), placement_of(wake));
          return;
        }
        *tail = w;
        tail = &w->next;
      }
      word_.store(clear, platform::memory_order_relaxed);
    }
    waiters_.unlock();
  }
  *tail = nullptr;
  wait_list::schedule_all(woken, wake);
}

template <class Domain>
bool basic_event<Domain>::pass_or_mark() noexcept {
  if constexpr (Domain::is_local) {
    return try_wait();
  }
  for (std::uint32_t word = word_.load(platform::memory_order_relaxed); word != waited;) {
    if (word == clear) {
      if (word_.compare_exchange_weak(word, waited, platform::memory_order_relaxed)) {
        break;
      }
    } else if (try_wait()) {
      return true;
    } else {
      word = word_.load(platform::memory_order_relaxed);
    }
  }
  return false;
}

template <class Domain>
std::expected<void, wait_error> basic_event<Domain>::wait_slow(platform::time_point deadline) noexcept {
  if constexpr (!Domain::is_local) {  // a local event is as the caller has just seen it
    waiters_.lock();
    if (pass_or_mark()) {
      waiters_.unlock();
      return {};
    }
  }
  return wait_result(rule_.wait(waiters_.list(), waiters_.own_lock(),
                                {.deadline = deadline, .what = name_of<Domain>("local event"), .object = this}));
}

template class basic_event<shared_domain>;
template class basic_event<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
