// Structured groups of fibers: children that end before the block that spawned them does.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "pirn/context/expert/forced_unwind.hpp"
#include "pirn/fiber/detail/block_origin.hpp"
#include "pirn/fiber/detail/scope_parts.hpp"
#include "pirn/fiber/runtime.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How a scope ends its waits, and where its children run.
struct scope_options {
  /// When the scope expires. Of the deadlines of all scopes around a fiber the nearest one counts.
  time_limit deadline = platform::never;
  /// A stop requested through this token stops the scope.
  stop_token stop = {};
  /// Where children run that are spawned without options; as in `spawn_options`. With `any_worker` they are queued, and
  /// other workers may take them before they begin.
  int worker = spawn_options::current_worker;
  /// Children begin at once, in place of the spawning fiber, whose continuation can be stolen meanwhile: `spawn` is a
  /// suspension point then. They are migratable. The opener must be migratable too, and a fiber of the runtime that
  /// they belong to; `worker` is not used. If the spawning fiber is not migratable, or has a scope with a deadline
  /// open, they are queued instead, as with `any_worker`.
  bool migratable = false;
};

namespace detail {

struct scoped_root;

/// The result of a child of `scope::all` and others: std::monostate for void, a reference for a reference.
template <class F, class... Arguments>
using child_result = std::conditional_t<std::is_void_v<std::invoke_result_t<F, Arguments...>>, std::monostate,
                                        std::invoke_result_t<F, Arguments...>>;

template <class... Ts>
using first_type = std::tuple_element_t<0, std::tuple<Ts...>>;
template <class... Ts>
inline constexpr bool all_the_same = (std::is_same_v<first_type<Ts...>, Ts> && ...);
/// The result of one of several children: their type if they agree, else a variant with an alternative for each.
template <class... Ts>
using one_of = std::conditional_t<all_the_same<Ts...>, first_type<Ts...>, std::variant<Ts...>>;

/// Calls `f` with the arguments as passed; returns a value even for void.
template <class F, class... Arguments>
child_result<F, Arguments...> call_child(F&& f, Arguments&&... arguments) {
  if constexpr (std::is_void_v<std::invoke_result_t<F, Arguments...>>) {
    std::invoke(std::forward<F>(f), std::forward<Arguments>(arguments)...);
    return {};
  } else {
    return std::invoke(std::forward<F>(f), std::forward<Arguments>(arguments)...);
  }
}

/// Holds the result of a child, which may be a reference.
template <class T>
class result_slot {
 public:
  template <class F, class... Arguments>
  void fill(F&& f, Arguments&&... arguments) {
    if constexpr (std::is_reference_v<T>) {
      value_ = std::addressof(call_child(std::forward<F>(f), std::forward<Arguments>(arguments)...));
    } else {
      value_.emplace(call_child(std::forward<F>(f), std::forward<Arguments>(arguments)...));
    }
  }
  T take() {
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*value_);
    } else {
      return std::move(*value_);
    }
  }

 private:
  std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, std::optional<T>> value_{};
};

/// As `result_slot`, for a call made elsewhere on behalf of a waiting caller: also keeps its exception.
template <class F, class... Arguments>
class result_or_error {
 public:
  void fill(F&& f, Arguments... arguments) noexcept {
    try {
      slot_.fill(std::forward<F>(f), std::forward<Arguments>(arguments)...);
    } catch (...) {
      exception_ = exception_of("a call that is made on behalf of a fiber");
    }
  }
  std::invoke_result_t<F, Arguments...> take() {
    if (exception_) {
      std::rethrow_exception(std::move(exception_));
    }
    if constexpr (!std::is_void_v<std::invoke_result_t<F, Arguments...>>) {
      return slot_.take();
    }
  }

 private:
  result_slot<child_result<F, Arguments...>> slot_;
  std::exception_ptr exception_;
};

/// Takes the value of the slot with this number.
template <class Result, bool Same, std::size_t I = 0, class... Slots>
Result take_result(std::tuple<Slots...>& slots, std::size_t number) {
  if constexpr (I + 1 < sizeof...(Slots)) {
    if (number != I) {
      return take_result<Result, Same, I + 1>(slots, number);
    }
  }
  if constexpr (Same) {
    return std::get<I>(slots).take();
  } else {
    return Result(std::in_place_index<I>, std::get<I>(slots).take());
  }
}

/// The state of a race of children: the first winner decides.
class race_state {
 public:
  /// Tries to make this child the winner, with its exception if that is not null. True if it is the first.
  bool try_win(std::size_t index, std::exception_ptr exception = nullptr) noexcept;
  /// Keeps the exception of a child that does not end the race.
  void record_exception(std::exception_ptr exception);
  /// Returns the index of the winner; rethrows its exception, or the first one if all have failed.
  [[nodiscard]] std::size_t winner();

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  platform::spinlock lock_;
  std::size_t winner_ = none;
  std::exception_ptr winner_exception_;
  std::vector<std::exception_ptr> exceptions_;
};

}  // namespace detail

/// A group of fibers, its children, which end before it does. A fiber or a plain thread opens it as a variable of a
/// block, for the lifetime of that. A stop, its deadline or the exception of a child stops the scope: that ends the
/// stoppable waits of its children, of their scopes, and of the opener while the scope is its innermost or around that,
/// with wait_error::stopped, or wait_error::expired for a deadline. Only the opener may join it and call `all`, `any`,
/// `race` and `map`, and it closes its scopes in reverse order (aborts otherwise). The opener and the scope's fibers
/// may spawn. Any thread or fiber may request a stop.
class scope : detail::stop_link {
 public:
  /// Opens a scope on a fiber: children belong to its runtime. Throws std::system_error (operation_not_permitted) on a
  /// plain thread, and for a migratable scope on a fiber that is not.
  explicit scope(const scope_options& options = {});
  /// Opens a scope on a plain thread, or on a fiber of any runtime: children belong to `where`, which outlives the
  /// scope. On a plain thread a scope with a deadline spawns a fiber for it; throws std::system_error if that fails.
  explicit scope(runtime& where, const scope_options& options = {});
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  /// Stops the children that still run, and suspends until all have ended. Failures since the last `join` go to the
  /// handler of unhandled exceptions, as with a `fiber`.
  ~scope();

  /// Spawns `body` as a child. The first child that ends by an exception stops the scope. Throws as `pirn::spawn`.
  template <class F>
  void spawn(F&& body) {
    detail::worker* const here = detail::current_worker();
    if (here != nullptr && &here->owner == runtime_ && worker_ == spawn_options::current_worker) [[likely]] {
      detail::launch_plain(here, std::forward<F>(body), child_policy{this});
    } else if (migratable_) {
      spawn_eager(std::forward<F>(body));
    } else {
      spawn(std::forward<F>(body), {.worker = worker_});
    }
  }
  template <class F>
  void spawn(F&& body, const spawn_options& options) {
    std::error_code error;
    if (detail::launch(*runtime_, std::forward<F>(body), options, error, child_policy{this}) == nullptr) {
      detail::throw_no_fiber(error);
    }
  }

  /// Suspends until all children have ended, then rethrows the first exception; `attached_exceptions` has the others. A
  /// stop does not end this wait: it ends the children, and `join` waits for them. More may be spawned afterwards.
  void join();

  /// Stops the scope, which stays stopped.
  void request_stop() noexcept { stop(wake_reason::stopped); }
  /// Returns success until the scope is stopped, then why its waits end. A deadline counts from the moment when it has
  /// passed, even if its worker has not looked at its timers.
  [[nodiscard]] std::expected<void, wait_error> check_stop() const noexcept {
    return detail::unless_stopped(stops_.why(), deadline());
  }
  /// Returns the nearest deadline of this scope and the scopes around it.
  [[nodiscard]] platform::time_point deadline() const noexcept {
    return deadline_.load(platform::memory_order_relaxed);
  }

  /// Calls each function as a child, in a separate scope, and returns their results: a tuple, for instance for
  /// `auto [a, b] = s.all(f, g)`, with std::monostate for void. The first that fails stops the others; its exception is
  /// rethrown once all have ended.
  template <class... Fs>
    requires(sizeof...(Fs) > 0)
  std::tuple<detail::child_result<Fs>...> all(Fs&&... fs) {
    std::tuple<detail::result_slot<detail::child_result<Fs>>...> slots;
    scope inner(*this, 0);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (inner.spawn_into(std::get<I>(slots), std::forward<Fs>(fs)), ...);
    }(std::index_sequence_for<Fs...>{});
    inner.join();
    return std::apply([](auto&... slot) { return std::tuple<detail::child_result<Fs>...>(slot.take()...); }, slots);
  }

  /// Calls each as a child. The first child that ends decides: the others are stopped, and once they have ended its
  /// result is returned (of their common type, or a variant with an alternative for each) or its exception rethrown.
  /// Results and exceptions of the others are dropped.
  template <class... Fs>
    requires(sizeof...(Fs) > 0)
  detail::one_of<detail::child_result<Fs>...> race(Fs&&... fs) {
    return first_of<decided_by::end>(std::forward<Fs>(fs)...);
  }

  /// As `race`, but the first child that returns decides. Rethrows, with the others attached, only if all fail.
  template <class... Fs>
    requires(sizeof...(Fs) > 0)
  detail::one_of<detail::child_result<Fs>...> any(Fs&&... fs) {
    return first_of<decided_by::success>(std::forward<Fs>(fs)...);
  }

  /// Calls `f` with each element of `range`, in at most `limit` (at least one) children at a time, and returns the
  /// results in the order of the range, as values: what a reference refers to is copied. The first call that fails
  /// stops the rest, and its exception is rethrown. The error says why the scope was stopped before the last call
  /// began; then no more are begun, and the results are dropped.
  template <std::ranges::forward_range Range, class F>
  auto map(Range&& range, std::size_t limit, F&& f) {
    using element = std::ranges::range_reference_t<Range>;
    using value = std::remove_cvref_t<detail::child_result<F&, element>>;
    using results = std::conditional_t<std::is_void_v<std::invoke_result_t<F&, element>>, void, std::vector<value>>;
    std::vector<detail::result_slot<value>> slots(static_cast<std::size_t>(std::ranges::distance(range)));
    scope inner(*this, limit > 0 ? limit - 1 : 0);
    std::size_t begun = 0;
    for (auto&& each : range) {
      inner.wait_for(inner.children_.wake_at());
      if (!inner.check_stop()) {
        break;
      }
      inner.spawn([&f, &slot = slots[begun], given = std::tuple<element>(std::forward<element>(each))]() mutable {
        slot.fill(f, std::forward<element>(std::get<0>(given)));
      });
      ++begun;
    }
    inner.join();
    if (begun < slots.size()) {
      return std::expected<results, wait_error>(std::unexpect, inner.check_stop().error());
    }
    if constexpr (std::is_void_v<results>) {
      return std::expected<void, wait_error>();
    } else {
      std::vector<value> values;
      values.reserve(slots.size());
      for (auto& slot : slots) {
        values.push_back(slot.take());
      }
      return std::expected<results, wait_error>(std::move(values));
    }
  }

 private:
  friend detail::child_control;
  friend struct detail::scoped_root;
  friend detail::stolen_continuation;
  friend detail::body_scopes;
  enum class decided_by : bool { end, success };

  /// How the fibers of a scope are made.
  struct child_policy {
    using control = detail::child_control;
    static constexpr bool eager = false;
    scope* to;
    void adopt(control* child) const noexcept { to->adopt(*child); }
  };
  struct eager_child_policy : child_policy {
    using control = detail::eager_child_control;
    static constexpr bool eager = true;
  };
  struct stopper {
    scope* target;
    void operator()() const noexcept { target->request_stop(); }
  };
  struct expiry : call_timer {
    scope* target = nullptr;
  };

  /// Opens a scope in `outer`, for the same opener; wakes that also when as few as `wake_at` children are left.
  scope(scope& outer, std::size_t wake_at);

  void open(const scope_options& options);
  /// Makes a stop of the outer scope, if that has the same opener, or else of the opener stop this scope too.
  void follow_outer() noexcept;
  /// Computes its deadline from its own and the outer one.
  void inherit_deadline() noexcept;
  /// Sets whether it is taken off its opener; its stop does not interrupt the opener then.
  void set_away(bool away) noexcept { interruption_.set_away(away); }
  void close() noexcept;
  void adopt(detail::child_control& child) noexcept;
  /// Called when the body of a child has failed.
  void fail(const std::exception_ptr& what) noexcept;
  void stop(wake_reason why) noexcept;
  /// As `stop`, but without the children: returns their list if the caller must walk it.
  detail::stop_list* begin_to_stop(wake_reason why) noexcept;
  /// Suspends until at most `left` children are left.
  void wait_for(std::size_t left) noexcept { children_.wait_for(left, stops_); }
  void check_opener() const noexcept;

  template <class F>
  void spawn_eager(F&& body) {
    const spawn_options options{.worker = spawn_options::any_worker, .migratable = true};
    const detail::worker* const here = detail::current_worker();
    if (here == nullptr || &here->owner != runtime_ || !detail::may_begin_eager_child(here)) {
      spawn(std::forward<F>(body), options);
      return;
    }
    std::error_code error;
    if (detail::launch(*runtime_, std::forward<F>(body), options, error, eager_child_policy{{this}}) == nullptr) {
      detail::throw_no_fiber(error);
    }
  }
  template <class Slot, class F>
  void spawn_into(Slot& slot, F&& f) {
    spawn([&slot, given = std::addressof(f)] { slot.fill(std::forward<F>(*given)); });
  }
  template <decided_by Rule, class Slot, class F>
  void spawn_racer(detail::race_state& state, std::size_t index, Slot& slot, F&& f) {
    spawn([this, &state, index, &slot, given = std::addressof(f)] {
      bool won = false;
      try {
        slot.fill(std::forward<F>(*given));
        won = state.try_win(index);
      } catch (...) {
        if constexpr (Rule == decided_by::end) {
          won = state.try_win(index, detail::exception_of("a child of a scope"));
        } else {
          state.record_exception(detail::exception_of("a child of a scope"));
        }
      }
      if (won) {
        request_stop();
      }
    });
  }
  template <decided_by Rule, class... Fs>
  detail::one_of<detail::child_result<Fs>...> first_of(Fs&&... fs) {
    std::tuple<detail::result_slot<detail::child_result<Fs>>...> slots;
    detail::race_state state;
    scope inner(*this, 0);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (inner.template spawn_racer<Rule>(state, I, std::get<I>(slots), std::forward<Fs>(fs)), ...);
    }(std::index_sequence_for<Fs...>{});
    inner.join();
    return detail::take_result<detail::one_of<detail::child_result<Fs>...>,
                               detail::all_the_same<detail::child_result<Fs>...>>(slots, state.winner());
  }

  detail::agent& opener_;
  detail::runtime_state* runtime_;
  scope* outer_ = nullptr;
  bool nested_ = false;  ///< the opener has opened the outer one too
  int worker_;
  bool migratable_;
  platform::time_point own_deadline_ = platform::never;
  platform::atomic<platform::time_point> deadline_{platform::never};  ///< written by the opener
  detail::block_origin origin_;
  detail::stop_list stops_;
  detail::scope_children children_;
  detail::scope_exceptions exceptions_;
  std::optional<stop_callback<stopper>> token_;
  detail::opener_interruption interruption_;
  expiry expiry_;
  bool migration_disabled_ = false;  ///< this scope keeps its opener on the worker that has the timer
  fiber watch_;                      ///< waits for the deadline of a scope that a plain thread opened
};

/// In a handler of an exception rethrown by `scope::join` and others: returns those of the other children, in order of
/// time. Empty in any other handler, and once the same fiber has met a later exception of a scope.
std::vector<std::exception_ptr> attached_exceptions();

namespace this_fiber {
/// Returns the nearest deadline of the scopes around the caller, or `never`.
[[nodiscard]] platform::time_point deadline() noexcept;
}  // namespace this_fiber

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
