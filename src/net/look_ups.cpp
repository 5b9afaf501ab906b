// Implements the sharing of look-ups: the queries, the caller that drives them, and the cache.
#include "net/look_ups.hpp"

#include <algorithm>
#include <utility>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

look_ups::look_ups(std::unique_ptr<name_driver> driver, const limits& limited)
    : driver_(std::move(driver)), limits_(limited) {}

look_ups::~look_ups() { driver_->cancel_all(); }

resolver::counts look_ups::counted() {
  const platform::spin_guard guard(lock_);
  return counts_;
}

look_up_call::look_up_call(look_ups& in, question wanted) : in_(in) {
  const platform::spin_guard guard(in.lock_);
  known_ = in.find(wanted);
  if (known_ != nullptr) {
    ++in.counts_.cached;
    return;
  }
  const auto found = in.under_way_.find(wanted);
  if (found == in.under_way_.end() && in.under_way_.size() >= in.limits_.under_way) {
    answer refused;
    refused.error = std::make_error_code(std::errc::resource_unavailable_try_again);
    known_ = std::make_shared<const answer>(std::move(refused));
    return;
  }
  const bool begins = found == in.under_way_.end();
  query_ = begins ? std::make_shared<query>(query{.asked = std::move(wanted)}) : found->second;
  if (begins) {
    in.under_way_.emplace(query_->asked, query_);
  }
  query_->callers.push_back(*this);
  ++in.callers_;
  ++(begins ? in.counts_.queries : in.counts_.shared);
  if (begins) {
    in.driver_->ask(query_, &look_ups::end, in);
  }
}

look_up_call::~look_up_call() {
  if (query_ == nullptr) {
    return;
  }
  const platform::spin_guard guard(in_.lock_);
  query_->callers.remove(*this);
  if (!query_->answered && --in_.callers_ == 0) {
    in_.driver_->cancel_all();  // no caller is left that would drive them
  }
}

std::shared_ptr<const answer> look_up_call::find_answer() const {
  if (query_ == nullptr) {
    return known_;
  }
  const platform::spin_guard guard(in_.lock_);
  return query_->answered ? query_->into : nullptr;
}

bool look_ups::has(std::span<look_up_call* const> calls, quorum enough) noexcept {
  const auto answered = [](const look_up_call* each) { return each->query_ == nullptr || each->query_->answered; };
  return enough == quorum::any ? std::ranges::any_of(calls, answered) : std::ranges::all_of(calls, answered);
}

result<> look_ups::wait(std::span<look_up_call* const> calls, quorum enough, platform::time_point deadline) {
  waiter self;
  lock_.lock();
  waiters_.push_back(self);
  for (look_up_call* const each : calls) {
    each->waiter_ = &self;
  }
  std::error_code ended;
  while (!has(calls, enough) && !ended) {
    if (driven_) {
      lock_.unlock();
      const auto woken = self.woken.wait(deadline);
      lock_.lock();
      ended = woken ? std::error_code{} : make_error_code(woken.error());
      continue;
    }
    driven_ = true;
    const platform::time_point until = std::min(deadline, driver_->next_look());
    lock_.unlock();
    const result<> ready = driver_->wait(until);
    lock_.lock();
    driven_ = false;
    if (ready || (ready.error() == io_error::timed_out && until != deadline)) {
      driver_->process();
    } else {
      ended = ready.error();
    }
  }
  for (look_up_call* const each : calls) {
    each->waiter_ = nullptr;
  }
  waiters_.remove(self);
  if (!driven_ && !waiters_.empty()) {
    waiters_.front()->woken.set();  // it drives now, or has its answer and wakes the next one
  }
  const bool answered = has(calls, enough);
  lock_.unlock();
  return answered ? result<>() : fail(ended);
}

void look_ups::end(look_ups& in, query& what, answer&& with) noexcept {
  const std::chrono::seconds longest = with.error ? in.limits_.longest_negative : in.limits_.longest_time_to_live;
  const std::chrono::seconds time = std::min(with.time_to_live, longest);
  *what.into = std::move(with);
  what.answered = true;
  in.under_way_.erase(what.asked);
  if (time > std::chrono::seconds(0)) {
    in.keep(what.asked, what.into, time);
  }
  for (const look_up_call& each : what.callers) {
    --in.callers_;
    if (each.waiter_ != nullptr) {
      each.waiter_->woken.set();
    }
  }
}

namespace {

/// Bytes of an answer beyond which it is not kept. Servers choose the size, so the number of answers alone is no limit.
constexpr std::size_t largest_kept = 4096;

std::size_t size_of(const answer& what) noexcept {
  std::size_t size = what.addresses.size() * sizeof(ip_address);
  for (const resolver::service& each : what.services) {
    size += sizeof each + each.host.size();
  }
  for (const std::string& each : what.texts) {
    size += sizeof each + each.size();
  }
  return size;
}

}  // namespace

void look_ups::keep(const question& asked, std::shared_ptr<const answer> what, std::chrono::seconds time) noexcept try {
  if (limits_.cached == 0 || size_of(*what) > largest_kept) {
    return;
  }
  if (const auto old = cache_.find(asked); old != cache_.end()) {
    used_.erase(old->second.used);
    cache_.erase(old);
  } else if (cache_.size() >= limits_.cached) {
    cache_.erase(used_.back());
    used_.pop_back();
  }
  used_.push_front(asked);
  cache_.insert_or_assign(asked, cached{std::move(what), platform::later(platform::now(), time), used_.begin()});
} catch (const std::bad_alloc&) {
  // The answer is not kept.
}

std::shared_ptr<const answer> look_ups::find(const question& asked) {
  const auto found = cache_.find(asked);
  if (found == cache_.end()) {
    return nullptr;
  }
  if (platform::now() >= found->second.expires) {
    used_.erase(found->second.used);
    cache_.erase(found);
    return nullptr;
  }
  used_.splice(used_.begin(), used_, found->second.used);
  return found->second.kept;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
