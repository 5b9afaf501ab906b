#include "pirn/sync/select.hpp"

namespace pirn::inline PIRN_ABI::detail {

namespace {

/// Not inlined: the address of a thread-local variable must not be kept across a suspension.
[[gnu::noinline]] std::size_t random_below(std::size_t count) noexcept {
  thread_local platform::random numbers(platform::random_seed());
  return static_cast<std::size_t>(numbers.next() % count);
}

void make_runnable_after_unlocking(waiter* woken) noexcept {
  if (woken != nullptr && woken->next == nullptr) {
    make_runnable(woken->wake.who());
  } else {
    wait_list::make_all_runnable(woken);
  }
}

/// What a select needs from its first look to its end.
class selecting {
 public:
  explicit selecting(std::span<select_case* const> cases) noexcept : cases_(cases), timer_(cases.size()) {
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (cases_[i]->place.lock != nullptr) {
        places_.add(cases_[i]->place);
      } else if (timer_ == cases_.size() || cases_[i]->deadline < cases_[timer_]->deadline) {
        timer_ = i;
      }
    }
  }

  selection run(select_how how) {
    for (;;) {
      places_.lock();
      if (const std::optional<selection> fired = fire_ready()) {
        return *fired;
      }
      if (how == select_how::only_try) {
        places_.unlock();
        const bool come = deadline() != platform::never && deadline() <= platform::now();
        return come ? selection{timer_, {}} : none(wake_reason::timed_out);
      }
      switch (const wake_reason reason = places_.wait({.deadline = deadline(), .what = "select"})) {
        case wake_reason::notified:
          for (std::size_t i = 0; i < cases_.size(); ++i) {
            if (cases_[i]->place.node.claimed && cases_[i]->settled()) {
              return {i, {}};
            }
          }
          break;  // a channel was closed, or a value could not be moved
        case wake_reason::timed_out:
          return {timer_, {}};
        default:
          return none(reason);
      }
    }
  }

 private:
  [[nodiscard]] platform::time_point deadline() const noexcept {
    return timer_ < cases_.size() ? cases_[timer_]->deadline : platform::never;
  }
  [[nodiscard]] selection none(wake_reason why) const noexcept {
    return {cases_.size(), std::unexpected(error_of(why))};
  }

  /// With the locks held, which it releases if a case was ready.
  std::optional<selection> fire_ready() {
    const std::size_t first = random_below(cases_.size());
    for (std::size_t k = 0; k < cases_.size(); ++k) {
      const std::size_t i = (first + k) % cases_.size();
      waiter* woken = nullptr;
      select_case::state state;
      try {
        state = cases_[i]->attempt(woken);
      } catch (...) {
        places_.unlock();
        make_runnable_after_unlocking(woken);
        throw;
      }
      if (state != select_case::state::must_wait) {
        places_.unlock();
        make_runnable_after_unlocking(woken);
        return state == select_case::state::done ? selection{i, {}} : selection{i, std::unexpected(wait_error::closed)};
      }
    }
    return std::nullopt;
  }

  std::span<select_case* const> cases_;
  wait_places places_;
  std::size_t timer_;  ///< the `until` that comes first; the number of cases if there is none
};

}  // namespace

selection select_among(std::span<select_case* const> cases, select_how how) { return selecting(cases).run(how); }

}  // namespace pirn::inline PIRN_ABI::detail
