// Cooperative cancellation, with the interface of std::stop_token. A request reaches every blocking call of a fiber
// that was spawned with the token.
#pragma once

#include <type_traits>
#include <utility>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/fiber/detail/agent.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class stop_token;

namespace detail {

struct fiber_control;
void follow_token(fiber_control* f, const stop_token& token) noexcept;
class stop_list;

/// A callback for a stop; a link of a `stop_list`.
class stop_link {
 public:
  /// Returns a list that is to be walked next, for which `begin` has returned true, or null. That list must last until
  /// `detach` has returned.
  using action = stop_list* (*)(stop_link&) noexcept;

  stop_link() noexcept = default;
  stop_link(const stop_link&) = delete;
  stop_link& operator=(const stop_link&) = delete;

  /// Registers `call` with a list that outlives the registration; it runs at once if a stop was requested already.
  void attach(stop_list& list, action call) noexcept;
  /// Unregisters the call. On return it has finished or will never start, unless the call itself detaches.
  void detach() noexcept;
  [[nodiscard]] bool attached() const noexcept { return list_ != nullptr; }
  /// Returns why its list was stopped: `notified` if it was not.
  [[nodiscard]] wake_reason why() const noexcept;
  /// Returns the list that it is attached to, or null.
  [[nodiscard]] const stop_list* list() const noexcept { return list_; }

 private:
  friend class stop_list;
  friend class intrusive_list<stop_link>;
  list_links<stop_link> links;
  stop_list* list_ = nullptr;
  action call_ = nullptr;
  bool linked_ = false;
};

/// The receivers of a stop: callbacks and fibers of a source, children and inner scopes of a scope, scopes of a fiber.
class stop_list {
 public:
  /// Calls all attached links, the newest first; no lock is held during a call. True for the first request.
  bool request(wake_reason why) noexcept {
    const bool first = begin(why);
    if (first) {
      walk();
    }
    return first;
  }
  /// The two halves of `request`: `begin` records the request and returns true for the first one; `walk` makes the
  /// calls of this list, and of the lists that they return.
  bool begin(wake_reason why) noexcept;
  void walk() noexcept;
  [[nodiscard]] bool requested() const noexcept { return why() != wake_reason::notified; }
  /// Returns `stopped` or `expired` once a stop was requested, else `notified`.
  [[nodiscard]] wake_reason why() const noexcept { return why_.load(platform::memory_order_acquire); }

 private:
  friend class stop_link;
  platform::spinlock lock_;
  platform::atomic<wake_reason> why_{wake_reason::notified};  ///< written under the lock
  intrusive_list<stop_link> links_;
  platform::atomic<stop_link*> calling_{nullptr};  ///< the link whose call runs now; written under the lock
  int caller_ = 0;                                 ///< the OS thread that runs it; written under the lock
  stop_list* above_ = nullptr;                     ///< the list whose call has led here, for `walk`
};
inline wake_reason stop_link::why() const noexcept { return list_->why(); }

/// State shared by the sources and tokens of one stop; reference-counted.
class stop_state : public stop_list {
 public:
  void acquire() noexcept { references_.fetch_add(1, platform::memory_order_relaxed); }
  void release() noexcept;
  bool request() noexcept;

 private:
  platform::atomic<int> references_{1};
};

}  // namespace detail

/// Says whether a stop was requested. Copyable; any thread or fiber may use it.
class stop_token {
 public:
  stop_token() noexcept = default;
  stop_token(const stop_token& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) {
      state_->acquire();
    }
  }
  stop_token(stop_token&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  stop_token& operator=(stop_token other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~stop_token() {
    if (state_ != nullptr) {
      state_->release();
    }
  }

  /// Whether a stop was requested.
  [[nodiscard]] bool stop_requested() const noexcept { return state_ != nullptr && state_->requested(); }
  /// Whether it belongs to a source, which may be gone by now: std::stop_token then says no.
  [[nodiscard]] bool stop_possible() const noexcept { return state_ != nullptr; }

 private:
  friend class stop_source;
  template <class F>
  friend class stop_callback;
  friend void detail::follow_token(detail::fiber_control* f, const stop_token& token) noexcept;
  explicit stop_token(detail::stop_state* state) noexcept : state_(state) { state_->acquire(); }
  detail::stop_state* state_ = nullptr;
};

/// Requests a stop. Copies share one state. Any thread or fiber may use it.
class stop_source {
 public:
  /// Allocates the shared state; throws std::bad_alloc.
  stop_source() : state_(new detail::stop_state) {}
  stop_source(const stop_source& other) noexcept : state_(other.state_) { state_->acquire(); }
  stop_source& operator=(const stop_source& other) noexcept {
    other.state_->acquire();
    state_->release();
    state_ = other.state_;
    return *this;
  }
  ~stop_source() { state_->release(); }

  /// Runs the registered callbacks on the calling thread, in the reverse order of their registration, and ends the
  /// stoppable waits of the fibers that carry a token of this source. True for the first request. Does not suspend.
  bool request_stop() noexcept { return state_->request(); }
  /// Whether a stop was requested.
  [[nodiscard]] bool stop_requested() const noexcept { return state_->requested(); }
  /// Returns a token of this source.
  [[nodiscard]] stop_token get_token() const noexcept { return stop_token(state_); }

 private:
  detail::stop_state* state_;
};

/// Calls `F` once when a stop is requested, or at once if it was already. `F` must not throw and must not suspend.
template <class F>
class stop_callback : detail::stop_link {
 public:
  /// Registers `call`. If a stop was requested already, calls it at once, on the calling thread.
  template <class G>
  stop_callback(const stop_token& token, G&& call) noexcept(std::is_nothrow_constructible_v<F, G>)
      : call_(std::forward<G>(call)), token_(token) {
    if (token_.state_ != nullptr) {
      attach(*token_.state_, [](detail::stop_link& link) noexcept -> detail::stop_list* {
        static_cast<stop_callback&>(link).call_();
        return nullptr;
      });
    }
  }
  ~stop_callback() { detach(); }

 private:
  F call_;
  stop_token token_;
};
template <class F>
stop_callback(stop_token, F) -> stop_callback<F>;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
