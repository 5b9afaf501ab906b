// The steps of a select: its look at the cases, its wait, and the outcome.
#include "pirn/sync/detail/selecting.hpp"

#include "detail/chance.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

void schedule_after_unlocking(waiter* woken) noexcept {
  if (woken != nullptr && woken->next == nullptr) {
    schedule(*woken->wake.agent(), placement::front);
  } else {
    wait_list::schedule_all(woken);
  }
}

}  // namespace

selecting::selecting(std::span<select_case* const> cases, platform::time_point deadline) noexcept
    : cases_(cases), timer_(cases.size()), deadline_(deadline) {
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    if (cases_[i]->entry.list != nullptr) {
      entries_.add(cases_[i]->entry);
    } else if (cases_[i]->deadline < deadline_) {
      timer_ = i;
      deadline_ = cases_[i]->deadline;
    }
  }
}

std::optional<selection> selecting::look() {
  entries_.lock();
  const std::size_t first = cases_.size() == 1 ? 0 : platform::chance(cases_.size());
  for (std::size_t k = 0; k < cases_.size(); ++k) {
    const std::size_t i = (first + k) % cases_.size();
    waiter* woken = nullptr;
    select_case::state state;
    try {
      state = cases_[i]->attempt(woken);
    } catch (...) {
      entries_.unlock();
      schedule_after_unlocking(woken);
      throw;
    }
    if (state != select_case::state::must_wait) {
      entries_.unlock();
      schedule_after_unlocking(woken);
      return state == select_case::state::done ? selection{i, {}} : selection{i, std::unexpected(wait_error::closed)};
    }
  }
  return std::nullopt;
}

std::optional<selection> selecting::after_wait(wake_reason reason) const noexcept {
  if (reason == wake_reason::timed_out) {
    return timer_ < cases_.size() ? selection{timer_, {}} : none(reason);
  }
  if (reason != wake_reason::notified) {
    return none(reason);
  }
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    if (cases_[i]->entry.node.claimed && cases_[i]->settled()) {
      return selection{i, {}};
    }
  }
  return std::nullopt;  // a channel was closed, or a value could not be moved
}

selection selecting::nothing_ready() const noexcept {
  const bool come = timer_ < cases_.size() && deadline_ <= platform::now();
  return come ? selection{timer_, {}} : none(wake_reason::timed_out);
}

selection selecting::run(select_mode mode) {
  for (;;) {
    if (const std::optional<selection> fired = look()) {
      return *fired;
    }
    if (mode == select_mode::only_try) {
      entries_.unlock();
      return nothing_ready();
    }
    if (const std::optional<selection> fired = after_wait(entries_.wait(options()))) {
      return *fired;
    }
  }
}

selection select_among(std::span<select_case* const> cases, select_mode mode) { return selecting(cases).run(mode); }

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
