// The slow paths of call_once: waits for another caller's attempt, and its end.
#include "pirn/sync/once.hpp"

#include "pirn/sync/detail/local_domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

template <class Domain>
std::expected<bool, wait_error> basic_once_flag<Domain>::enter(const wait_options& options) noexcept {
  for (;;) {
    std::uint32_t word = fresh;
    // Acquire: the next attempt sees what a failed one has left behind.
    if (word_.compare_exchange_strong(word, running, platform::memory_order_acquire)) {
      return true;
    }
    if (word == done) {
      return false;
    }
    waiters_.lock();
    word = running;
    if (!word_.compare_exchange_strong(word, waited, platform::memory_order_acquire) && word != waited) {
      waiters_.unlock();  // it has just ended
      continue;
    }
    if (const wake_reason reason = waiters_.wait(options); reason != wake_reason::notified) {
      return std::unexpected(error_of(reason));
    }
  }
}

template <class Domain>
void basic_once_flag<Domain>::leave(std::uint32_t outcome) noexcept {
  waiter* woken = nullptr;
  waiter** tail = &woken;
  std::uint32_t expected = running;
  // Changing the word is the last access: a caller that sees that it is done may destroy the flag.
  while (
      !word_.compare_exchange_weak(expected, outcome, platform::memory_order_release, platform::memory_order_relaxed)) {
    if (expected == waited) {
      waiters_.lock();
      *tail = waiters_.claim_all();
      word_.store(running, platform::memory_order_relaxed);
      waiters_.unlock();
      while (*tail != nullptr) {
        tail = &(*tail)->next;
      }
    }
    expected = running;
  }
  wait_list::schedule_all(woken);  // they check the word: after a failure one of them tries
}

template class basic_once_flag<shared_domain>;
template class basic_once_flag<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
