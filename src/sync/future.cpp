// The errors of futures, and the state that promises and futures share.
#include "pirn/sync/future.hpp"

#include <string>

#include "pirn/sync/detail/local_domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pirn.future"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<future_errc>(code)) {
      case future_errc::broken_promise:
        return "the promise was destroyed without a result";
      case future_errc::future_already_retrieved:
        return "the future was already retrieved";
      case future_errc::promise_already_satisfied:
        return "the promise already has a result";
      case future_errc::no_state:
        return "there is no result to share: it was moved from, or taken";
    }
    return "unknown future error";
  }
};

}  // namespace

const std::error_category& future_category() noexcept {
  static const category instance;
  return instance;
}

future_error::future_error(future_errc e)
    : std::logic_error("pirn: " + future_category().message(static_cast<int>(e))), code_(make_error_code(e)) {}

namespace detail {

void throw_future_error(future_errc e) { throw future_error(e); }

template <class Domain>
void future_state<Domain>::begin() {
  Domain::enter(waiters_);
  std::uint32_t expected = is_empty;
  if (!stage_.compare_exchange_strong(expected, is_provided, platform::memory_order_acquire)) {
    throw_future_error(future_errc::promise_already_satisfied);
  }
}

template <class Domain>
void future_state<Domain>::publish() noexcept {
  acquire();  // a caller that gets the result may destroy the promise
  waiters_.lock();
  stage_.store(is_ready, platform::memory_order_release);
  waiter* const woken = waiters_.claim_all();
  waiters_.unlock();
  wait_list::schedule_all(woken, rule_.wake());
  release();
}

template <class Domain>
void future_state<Domain>::fail(std::exception_ptr why) {
  begin();
  exception_ = std::move(why);
  publish();
}

template <class Domain>
void future_state<Domain>::abandon() noexcept {
  // No other caller provides: this was the only promise.
  if (stage_.load(platform::memory_order_relaxed) == is_empty && retrieved_.load(platform::memory_order_relaxed)) {
    fail(std::make_exception_ptr(future_error(future_errc::broken_promise)));
  }
}

template <class Domain>
void future_state<Domain>::take_future() {
  if (retrieved_.exchange(true, platform::memory_order_relaxed)) {
    throw_future_error(future_errc::future_already_retrieved);
  }
}

template <class Domain>
std::expected<void, wait_error> future_state<Domain>::wait_slow(const wait_options& options) noexcept {
  waiters_.lock();
  if (ready()) {
    waiters_.unlock();
    return {};
  }
  return wait_result(rule_.wait(waiters_.list(), waiters_.own_lock(), options));
}

template class future_state<shared_domain>;
template class future_state<local_domain>;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
