// Futures for the fibers of one worker: see pirn/sync/expert/local.hpp.
#pragma once

#include <exception>

#include "pirn/sync/detail/local_queue.hpp"
#include "pirn/sync/future.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// As `future_state`.
class local_future_state {
 public:
  local_future_state() noexcept = default;
  local_future_state(const local_future_state&) = delete;
  local_future_state& operator=(const local_future_state&) = delete;

  void acquire() noexcept { ++references_; }
  void release() noexcept {
    if (--references_ == 0) {
      destroy();
    }
  }

  [[nodiscard]] bool ready() const noexcept {
    waiters_.enter();
    return stage_ == stage::ready;
  }
  std::expected<void, wait_error> wait(const wait_options& options) noexcept;
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  void check() const {
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

  void begin();
  void withdraw() noexcept { stage_ = stage::empty; }
  void publish() noexcept;
  void fail(std::exception_ptr why);
  void abandon() noexcept;
  void take_future();

 protected:
  virtual ~local_future_state() = default;
  virtual void destroy() noexcept { delete this; }

 private:
  enum class stage : std::uint8_t { empty, provided, ready };

  std::uint32_t references_ = 1;
  stage stage_ = stage::empty;
  bool retrieved_ = false;
  std::exception_ptr failure_;
  local_queue waiters_;
};

}  // namespace detail

namespace local {

/// As those of `pirn`. Objects that share a result are copied, moved and destroyed on one thread at a time.
template <class T>
using future = pirn::future<T, detail::local_future_state>;
/// As `pirn::shared_future`.
template <class T>
using shared_future = pirn::shared_future<T, detail::local_future_state>;
/// As `pirn::promise`.
template <class T>
using promise = pirn::promise<T, detail::local_future_state>;
/// As `pirn::packaged_task`.
template <class Signature>
using packaged_task = pirn::packaged_task<Signature, detail::local_future_state>;

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
