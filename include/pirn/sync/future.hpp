// Results that become ready later: a future waits for the result that its promise provides.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/sync/detail/domain.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// As std::future_status, for `future::wait_for` and `wait_until`; no future is `deferred`.
enum class future_status : std::uint8_t { ready, timeout, deferred };

/// Errors, as std::future_errc.
enum class future_errc : std::uint8_t {
  broken_promise = 1,         ///< the promise was destroyed without a result
  future_already_retrieved,   ///< get_future was called before
  promise_already_satisfied,  ///< there is a result already
  no_state,                   ///< moved from, or the result was taken
};
/// Returns the category "pirn.future".
[[nodiscard]] const std::error_category& future_category() noexcept;
/// Returns the error code of `e`, in that category.
[[nodiscard]] inline std::error_code make_error_code(future_errc e) noexcept {
  return {static_cast<int>(e), future_category()};
}

/// Thrown for misuse of the classes below.
class future_error : public std::logic_error {
 public:
  /// Makes the exception for `e`.
  explicit future_error(future_errc e);
  /// Returns the error code.
  [[nodiscard]] const std::error_code& code() const noexcept { return code_; }

 private:
  std::error_code code_;
};

namespace detail {

[[noreturn]] void throw_future_error(future_errc e);

/// The state that a promise and its futures share, without the value; counted.
template <class Domain>
class future_state {
 public:
  future_state() noexcept = default;
  future_state(const future_state&) = delete;
  future_state& operator=(const future_state&) = delete;

  /// Sets how waiters are woken, before any caller waits.
  void set_policy(wait_policy waiting) noexcept { rule_ = waiting; }
  void acquire() noexcept { references_.fetch_add(1, platform::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, platform::memory_order_acq_rel) == 1) {
      destroy();
    }
  }

  [[nodiscard]] bool ready() const noexcept {
    Domain::enter(waiters_);
    return stage_.load(platform::memory_order_acquire) == is_ready;
  }
  PIRN_ALWAYS_INLINE std::expected<void, wait_error> wait(const wait_options& options) noexcept {
    if (ready()) [[likely]] {
      return {};
    }
    return wait_slow(options);
  }
  /// Returns the exception provided instead of a value, or null. Once ready.
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return exception_; }
  /// Throws the exception provided instead of a value.
  void check() const {
    if (exception_ != nullptr) {
      std::rethrow_exception(exception_);
    }
  }

  /// Lets one caller provide: throws promise_already_satisfied for the others. If it fails, it must `withdraw`.
  PIRN_DEFINED_ONCE void begin();
  void withdraw() noexcept { stage_.store(is_empty, platform::memory_order_release); }
  /// Wakes all waiters, which see what was provided since `begin`.
  PIRN_DEFINED_ONCE void publish() noexcept;
  PIRN_DEFINED_ONCE void fail(std::exception_ptr why);
  /// Gives the promise up: provides broken_promise unless there is a result.
  PIRN_DEFINED_ONCE void abandon() noexcept;
  /// Throws future_already_retrieved, except at the first call.
  PIRN_DEFINED_ONCE void take_future();

 protected:
  virtual ~future_state() = default;
  /// Frees the state as it was allocated.
  virtual void destroy() noexcept { delete this; }

 private:
  static constexpr std::uint32_t is_empty = 0;
  static constexpr std::uint32_t is_provided = 1;  ///< one promise is writing
  static constexpr std::uint32_t is_ready = 2;     ///< set under the queue's lock

  PIRN_DEFINED_ONCE std::expected<void, wait_error> wait_slow(const wait_options& options) noexcept;

  typename Domain::template atomic<std::uint32_t> references_{1};
  typename Domain::template atomic<std::uint32_t> stage_{is_empty};
  typename Domain::template atomic<bool> retrieved_{false};
  waiting_rule rule_{{}};
  std::exception_ptr exception_;
  typename Domain::queue waiters_;
};

extern template class future_state<shared_domain>;

struct unit {};

/// A reference is kept as a pointer, and void as an empty value.
template <class T>
using kept = std::conditional_t<std::is_void_v<T>, unit,
                                std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;

template <class T, class Domain>
class future_state_of : public future_state<Domain> {
 public:
  template <class... Arguments>
  void provide(Arguments&&... arguments) {
    this->begin();
    try {
      value_.emplace(std::forward<Arguments>(arguments)...);
    } catch (...) {
      this->withdraw();
      throw;
    }
    this->publish();
  }
  /// The value, once ready.
  [[nodiscard]] kept<T>& value() noexcept { return *value_; }

 private:
  std::optional<kept<T>> value_;
};

/// A state in memory of an allocator.
template <class T, class Domain, class Allocator>
class allocated_future_state final : public future_state_of<T, Domain> {
  using traits = typename std::allocator_traits<Allocator>::template rebind_traits<allocated_future_state>;

 public:
  explicit allocated_future_state(const typename traits::allocator_type& from) : from_(from) {}
  static future_state_of<T, Domain>* make(const Allocator& given) {
    typename traits::allocator_type from(given);
    auto* const memory = traits::allocate(from, 1);
    // As std requires, making and copying an allocator does not throw.
    return ::new (static_cast<void*>(std::to_address(memory))) allocated_future_state(from);
  }

 private:
  void destroy() noexcept override {
    typename traits::allocator_type from(std::move(from_));
    const auto memory = std::pointer_traits<typename traits::pointer>::pointer_to(*this);
    this->~allocated_future_state();
    traits::deallocate(from, memory, 1);
  }

  [[no_unique_address]] typename traits::allocator_type from_;
};

/// A counted reference to a state, or null.
template <class T, class Domain>
class state_pointer {
 public:
  state_pointer() noexcept = default;
  explicit state_pointer(future_state_of<T, Domain>* owned) noexcept : state_(owned) {}
  state_pointer(const state_pointer& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) {
      state_->acquire();
    }
  }
  state_pointer(state_pointer&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  state_pointer& operator=(state_pointer other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~state_pointer() {
    if (state_ != nullptr) {
      state_->release();
    }
  }

  explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Throws no_state if it is null.
  future_state_of<T, Domain>* operator->() const {
    if (state_ == nullptr) {
      throw_future_error(future_errc::no_state);
    }
    return state_;
  }

 private:
  future_state_of<T, Domain>* state_ = nullptr;
};

// NOLINTBEGIN(bugprone-crtp-constructor-accessibility): it has no state that could be constructed wrongly
/// For a future with `wait(time_limit)`.
template <class Future>
class timed_future {
 public:
  /// As `wait` with a deadline. A stop counts as a timeout here; `wait` distinguishes them. Suspension point.
  [[nodiscard]] future_status wait_for(time_span how_long) const { return wait_until(how_long); }
  /// As `wait_for`, but until a point in time of any clock.
  [[nodiscard]] future_status wait_until(time_limit when) const {
    return static_cast<const Future&>(*this).wait(when) ? future_status::ready : future_status::timeout;
  }
};
// NOLINTEND(bugprone-crtp-constructor-accessibility)

/// The common part of both kinds of future.
template <class T, class Domain>
class future_base : public timed_future<future_base<T, Domain>> {
 public:
  /// Returns whether there is a state to wait for. If not, the other members throw future_error (no_state).
  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }
  /// Returns whether the result is ready. Never suspends.
  [[nodiscard]] bool is_ready() const { return state_->ready(); }
  /// Suspends until the result is ready, the deadline passes or the caller is asked to stop.
  [[nodiscard]] std::expected<void, wait_error> wait(time_limit deadline = platform::never) const {
    return state_->wait({.deadline = deadline, .what = "future", .object = this});
  }
  /// Suspends until the result is ready. Returns the exception provided instead, which stays there, or null. Not ended
  /// by a stop.
  [[nodiscard]] std::exception_ptr get_exception_ptr() const {
    static_cast<void>(state_->wait({.stoppable = false, .what = "future", .object = this}));
    return state_->exception();
  }

 protected:
  future_base() noexcept = default;
  explicit future_base(state_pointer<T, Domain> state) noexcept : state_(std::move(state)) {}

  /// Waits, and throws a provided exception. Not ended by a stop.
  void await() const {
    static_cast<void>(state_->wait({.stoppable = false, .what = "future", .object = this}));
    state_->check();
  }

  state_pointer<T, Domain> state_;
};

}  // namespace detail

template <class T, class Domain = detail::shared_domain>
class shared_future;

/// As std::future: takes the result out. Move-only; not itself thread-safe.
template <class T, class Domain = detail::shared_domain>
class [[nodiscard]] future : public detail::future_base<T, Domain> {
 public:
  future() noexcept = default;

  /// Suspends until the result is ready, then returns the value or throws the exception; afterwards the future is not
  /// valid. Not ended by a stop.
  T get() {
    const future taken = std::move(*this);
    taken.await();
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*taken.state_->value());
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(taken.state_->value());
    }
  }
  /// As `get`, unless the deadline passes or the caller is asked to stop first: then the future stays valid.
  [[nodiscard]] std::expected<T, wait_error> get(time_limit deadline)
    requires(!std::is_reference_v<T>)
  {
    if (const auto waited = this->wait(deadline); !waited) {
      return std::unexpected(waited.error());
    }
    if constexpr (std::is_void_v<T>) {
      get();
      return {};
    } else {
      return get();
    }
  }
  /// Returns a shared future of the result; this one is not valid afterwards.
  [[nodiscard]] shared_future<T, Domain> share() noexcept { return shared_future<T, Domain>(std::move(*this)); }

 private:
  template <class U, class D>
  friend class promise;
  friend class shared_future<T, Domain>;
  explicit future(detail::state_pointer<T, Domain> state) noexcept : detail::future_base<T, Domain>(std::move(state)) {}
};

/// As std::shared_future: copies wait for the same result. Each copy is for one fiber or thread at a time.
template <class T, class Domain>
class [[nodiscard]] shared_future : public detail::future_base<T, Domain> {
 public:
  shared_future() noexcept = default;
  shared_future(future<T, Domain>&& from) noexcept : detail::future_base<T, Domain>(std::move(from.state_)) {}

  /// Suspends until the result is ready, then returns the value or throws the exception. Not ended by a stop.
  [[nodiscard]] std::conditional_t<std::is_object_v<T>, std::add_lvalue_reference_t<const T>, T> get() const {
    this->await();
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*this->state_->value());
    } else if constexpr (!std::is_void_v<T>) {
      return this->state_->value();
    }
  }
};

/// As std::promise: provides the result. Move-only; destroying it without a result provides future_error
/// (broken_promise). Throws only future_error, what moving or copying the value throws, and std::bad_alloc.
template <class T, class Domain = detail::shared_domain>
class promise {
 public:
  promise() : state_(new detail::future_state_of<T, Domain>) {}
  explicit promise(wait_policy waiting) : promise() { state_->set_policy(waiting); }
  /// Puts the state that it shares with its futures into memory of the allocator, which must live as long as they.
  template <class Allocator>
  promise(std::allocator_arg_t /*tag*/, const Allocator& from)
      : state_(detail::allocated_future_state<T, Domain, Allocator>::make(from)) {}
  promise(promise&&) noexcept = default;
  promise& operator=(promise&& other) noexcept {
    promise(std::move(other)).swap(*this);
    return *this;
  }
  ~promise() {
    if (state_) {
      state_->abandon();
    }
  }
  void swap(promise& other) noexcept { std::swap(state_, other.state_); }

  /// Returns the future, once.
  future<T, Domain> get_future() {
    state_->take_future();
    return future<T, Domain>(state_);
  }

  /// Provides the value, and wakes all waiters. Does not suspend, unless its policy is `switch_over`. Misuse: a second
  /// result.
  template <class U = T>
    requires(std::is_object_v<T> && std::is_constructible_v<T, U>)
  void set_value(U&& value) {
    state_->provide(std::forward<U>(value));
  }
  void set_value(std::type_identity_t<std::conditional_t<std::is_reference_v<T>, T, detail::unit&>> object)
    requires std::is_reference_v<T>
  {
    state_->provide(std::addressof(object));
  }
  void set_value()
    requires std::is_void_v<T>
  {
    state_->provide();
  }
  /// Provides an exception instead of a value.
  void set_exception(std::exception_ptr why) { state_->fail(std::move(why)); }

 private:
  detail::state_pointer<T, Domain> state_;
};

template <class Signature, class Domain = detail::shared_domain>
class packaged_task;

/// As std::packaged_task: a call whose result goes to a future. Move-only, so that it can be given to `spawn`.
template <class Result, class... Parameters, class Domain>
class packaged_task<Result(Parameters...), Domain> {
 public:
  packaged_task() noexcept = default;
  /// Wraps `body`. Allocates; throws std::bad_alloc and what moving `body` throws.
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, packaged_task> &&
             std::is_invocable_r_v<Result, std::decay_t<F>&, Parameters...>)
  explicit packaged_task(F&& body)
      : body_(new body_of<std::decay_t<F>>(std::forward<F>(body))), result_(std::in_place) {}
  packaged_task(packaged_task&& other) noexcept
      : body_(std::move(other.body_)),
        result_(std::exchange(other.result_, std::nullopt)),
        called_(std::exchange(other.called_, false)) {}
  packaged_task& operator=(packaged_task&& other) noexcept {
    packaged_task(std::move(other)).swap(*this);
    return *this;
  }
  void swap(packaged_task& other) noexcept {
    std::swap(body_, other.body_);
    std::swap(result_, other.result_);
    std::swap(called_, other.called_);
  }

  /// Returns whether there is a body to call. If not, the other members throw future_error (no_state).
  [[nodiscard]] bool valid() const noexcept { return body_ != nullptr; }
  /// Returns the future, once.
  future<Result, Domain> get_future() { return promised().get_future(); }
  /// Calls the body, only once (promise_already_satisfied), and provides what it returns or throws.
  void operator()(Parameters... arguments) {
    promise<Result, Domain>& result = promised();
    if (std::exchange(called_, true)) {
      detail::throw_future_error(future_errc::promise_already_satisfied);
    }
    try {
      if constexpr (std::is_void_v<Result>) {
        body_->call(std::forward<Parameters>(arguments)...);
        result.set_value();
      } else {
        result.set_value(body_->call(std::forward<Parameters>(arguments)...));
      }
    } catch (...) {
      result.set_exception(detail::exception_of("a call for a future"));
    }
  }
  /// Makes the packaged task callable again, for another future.
  void reset() {
    promised() = promise<Result, Domain>();
    called_ = false;
  }

 private:
  struct body_base {
    virtual ~body_base() = default;
    virtual Result call(Parameters... arguments) = 0;
  };
  template <class F>
  struct body_of final : body_base {
    explicit body_of(F&& f) : body(std::move(f)) {}
    explicit body_of(const F& f) : body(f) {}
    Result call(Parameters... arguments) override {
      return std::invoke_r<Result>(body, std::forward<Parameters>(arguments)...);
    }
    F body;
  };

  promise<Result, Domain>& promised() {
    if (!result_) {
      detail::throw_future_error(future_errc::no_state);
    }
    return *result_;
  }

  std::unique_ptr<body_base> body_;
  std::optional<promise<Result, Domain>> result_;
  bool called_ = false;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn

template <>
struct std::is_error_code_enum<pirn::future_errc> : std::true_type {};
template <class T, class Domain, class Allocator>
// NOLINTNEXTLINE(bugprone-std-namespace-modification): as the standard allows for types of one's own
struct std::uses_allocator<pirn::promise<T, Domain>, Allocator> : std::true_type {};
