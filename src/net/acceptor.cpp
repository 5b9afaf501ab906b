#include "pirn/net/acceptor.hpp"

#include <algorithm>

#include "fiber/runtime_state.hpp"
#include "pirn/fiber/stop.hpp"

namespace pirn::inline PIRN_ABI {

namespace {

// So many connections may be lost in a row before it seems to be no matter of connections.
constexpr std::uint64_t most_passed_over = 32;
constexpr std::uint64_t most_doublings = 7;
constexpr auto shortest_pause = std::chrono::microseconds(100);

}  // namespace

worker_turns::worker_turns() {
  const detail::worker* const here = detail::current_worker();
  if (here == nullptr) {
    detail::throw_no_runtime();
  }
  workers_ = here->owner.options.workers;
  open_ = std::make_unique<platform::atomic<std::uint32_t>[]>(workers_);
}

unsigned worker_turns::take() noexcept {
  unsigned best = next_;
  std::uint32_t fewest = open_[best].load(platform::memory_order_relaxed);
  for (unsigned i = 1; i < workers_ && fewest != 0; ++i) {
    const unsigned other = (next_ + i) % workers_;
    if (const std::uint32_t there = open_[other].load(platform::memory_order_relaxed); there < fewest) {
      best = other;
      fewest = there;
    }
  }
  open_[best].fetch_add(1, platform::memory_order_relaxed);
  next_ = (best + 1) % workers_;
  return best;
}

acceptor::acceptor(accept_options options) : options_(std::move(options)) {}

std::error_code acceptor::run(tcp_listener& from, begins& each, time_limit deadline) {
  worker_turns turns;
  if (options_.fibers.worker >= static_cast<int>(turns.workers())) {
    return std::make_error_code(std::errc::invalid_argument);
  }
  turns_ = &turns;
  failures_in_row_ = 0;
  stop_source serving;
  const std::error_code why = accept_all(from, each, deadline, serving.get_token());
  // The fibers use what is here, so they are waited for also where the caller was asked to stop.
  if (!wait_for_ends(time_limit(options_.drain))) {
    serving.request_stop();
    static_cast<void>(wait_for_ends(platform::never));
  }
  return why;
}

std::error_code acceptor::accept_all(tcp_listener& from, begins& each, platform::time_point deadline,
                                     const stop_token& stop) noexcept {
  spawn_options how = options_.fibers;
  how.stop = stop;
  const bool in_turn = how.worker < 0;
  for (;;) {
    std::uint64_t ends = 0;
    if (const std::error_code ended = wait_for_room(deadline, ends)) {
      return ended;
    }
    auto taken = from.accept_one(deadline);
    if (!taken) {
      const accept_failure kind = kind_of_accept_failure(taken.error());
      if (kind == accept_failure::listener) {
        return taken.error();
      }
      tell(taken.error(), kind);
      pause_after(kind, ends, deadline);
      continue;
    }
    accepted_.fetch_add(1, platform::memory_order_relaxed);
    const unsigned place = in_turn ? turns_->take() : no_turn;
    if (in_turn) {
      how.worker = static_cast<int>(place);
    }
    enter();
    if (const std::error_code refused = each.begin(std::move(*taken), place, how)) {
      leave(place);
      tell(refused, accept_failure::shortage);  // this client is turned away, the next may be lucky
      pause_after(accept_failure::shortage, ends + 1, deadline);
    } else {
      failures_in_row_ = 0;
    }
  }
}

std::error_code acceptor::wait_for_room(platform::time_point deadline, std::uint64_t& ends) noexcept {
  for (;;) {
    ended_.lock();
    if (open_ < options_.most) {
      ends = ends_;
      ended_.unlock();
      return {};
    }
    switch (ended_.wait({.deadline = deadline, .what = "the end of a connection", .object = this})) {
      case wake_reason::notified:
        break;
      case wake_reason::timed_out:
        return io_error::timed_out;
      case wake_reason::stopped:
        return io_error::stopped;
      case wake_reason::expired:
        return io_error::expired;
    }
  }
}

void acceptor::enter() noexcept {
  const platform::spin_guard guard(ended_);
  ++open_;
}

void acceptor::leave(unsigned place) noexcept {
  if (place != no_turn) {
    turns_->give_back(place);
  }
  ended_.lock();
  --open_;
  ++ends_;
  // After this the acceptor may be gone.
  ended_.notify_all_and_unlock();
}

void acceptor::tell(const std::error_code& error, accept_failure kind) noexcept {
  (kind == accept_failure::shortage ? shortages_ : failed_).fetch_add(1, platform::memory_order_relaxed);
  ++failures_in_row_;
  if (options_.told) {
    options_.told({error, kind, failures_in_row_});
  }
}

void acceptor::pause_after(accept_failure kind, std::uint64_t ends, platform::time_point deadline) noexcept {
  const std::uint64_t passed_over = kind == accept_failure::connection ? most_passed_over : 0;
  if (failures_in_row_ <= passed_over) {
    return;
  }
  const std::uint64_t doublings = std::min(failures_in_row_ - passed_over - 1, most_doublings);
  const platform::duration longest = options_.longest_pause;
  const platform::duration first = std::max<platform::duration>(longest / 100, shortest_pause);
  const auto times = std::int64_t{1} << doublings;
  const platform::duration length = first < longest / times ? first * times : longest;  // not beyond all numbers
  const platform::time_point until =
      std::min<platform::time_point>(deadline, time_limit(std::max<platform::duration>(length, shortest_pause)));
  ended_.lock();
  if (ends_ != ends) {
    ended_.unlock();
    return;
  }
  // A deadline or a stop that ends it ends the next accept too.
  static_cast<void>(ended_.wait({.deadline = until, .what = "a free file descriptor", .object = this}));
}

bool acceptor::wait_for_ends(platform::time_point deadline) noexcept {
  for (;;) {
    ended_.lock();
    if (open_ == 0) {
      ended_.unlock();
      return true;
    }
    const wait_options how{.deadline = deadline, .stoppable = false, .what = "the end of connections", .object = this};
    if (ended_.wait(how) == wake_reason::timed_out) {
      return false;
    }
  }
}

accept_statistics acceptor::statistics() const noexcept {
  accept_statistics now;
  now.accepted = accepted_.load(platform::memory_order_relaxed);
  now.failed = failed_.load(platform::memory_order_relaxed);
  now.shortages = shortages_.load(platform::memory_order_relaxed);
  const platform::spin_guard guard(ended_);
  now.connections = open_;
  return now;
}

}  // namespace pirn::inline PIRN_ABI
