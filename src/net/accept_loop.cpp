// The loop that accepts connections, reports failures, and pauses during a shortage.
#include "net/accept_loop.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "detail/system.hpp"
#include "pirn/fiber/stop.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

// If more connections than this are lost in a row, the cause is probably not the connections.
constexpr std::uint64_t max_passed_over = 32;
constexpr std::uint64_t max_doublings = 7;
constexpr auto shortest_pause = std::chrono::microseconds(100);
constexpr auto longest_look = std::chrono::milliseconds(100);  // from one look at a listener to the next

platform::time_point after(platform::duration length) noexcept { return time_limit(length); }

bool has_client(const tcp_listener& listener) noexcept {
  const descriptor::syscall look = [](int native, void*) noexcept -> std::int64_t {
    pollfd interest{native, POLLIN, 0};
    return platform::system::poll(&interest, 1, 0);
  };
  return listener.invoke(look, nullptr).value_or(0) > 0;
}

}  // namespace

std::error_code accept_loop::run(tcp_listener& from, owner& each, worker_turns& turns, platform::time_point deadline,
                                 bool only_queued) noexcept {
  if (turns_ != &turns) {  // connections read it, even those of an earlier call
    turns_ = &turns;
  }
  failures_in_row_ = 0;
  for (;;) {
    // A client in the queue may be taken by another caller, or die, before it is accepted.
    const auto client_by = [&] { return only_queued ? std::min(deadline, after(limits_.longest_pause)) : deadline; };
    if (only_queued && (platform::now() >= deadline || !has_client(from))) {
      return io_error::timed_out;
    }
    std::uint64_t ends = 0;
    if (const std::error_code none = wait_for_place(from, each, client_by(), deadline, ends)) {
      return none;
    }
    std::error_code error;
    accept_failure kind = accept_failure::shortage;
    if (auto taken = from.accept_one(client_by()); !taken) {
      error = taken.error();
      kind = kind_of_accept_failure(error);
    } else {
      accepted.fetch_add(1, platform::memory_order_relaxed);
      const unsigned turn = limits_.in_turn ? turns.take() : no_turn;
      {
        const platform::spin_guard guard(ended);
        ++open_;
      }
      error = each.begin(std::move(*taken), turn);
      if (!error) {
        failures_in_row_ = 0;
        continue;
      }
      leave(turn);  // this client is turned away; the next one may succeed
      ++ends;
    }
    if (kind == accept_failure::listener) {
      return error;
    }
    tell(each, error, kind);
    if (kind == accept_failure::shortage || failures_in_row_ > max_passed_over) {
      if (only_queued && open() == 0) {
        return error;
      }
      pause_after_failure(each, kind, ends, deadline);
    }
  }
}

bool accept_loop::has_place(std::uint64_t& ends) noexcept {
  const platform::spin_guard guard(ended);
  ends = ends_;
  return open_ < limits_.max_connections;
}

std::error_code accept_loop::wait_for_place(tcp_listener& from, owner& each, platform::time_point client_by,
                                            platform::time_point deadline, std::uint64_t& ends) noexcept {
  if (has_place(ends)) [[likely]] {
    return {};
  }
  while (!has_client(from)) {
    if (const result<> client = from.wait_readable(client_by); !client) {
      return client.error();
    }
  }
  for (bool waited = false; !has_place(ends); waited = true) {
    if (!waited) {
      pauses.fetch_add(1, platform::memory_order_relaxed);
    }
    each.make_room();
    if (!from.is_open()) {
      return io_error::closed;
    }
    // A close of the listener wakes no fiber here. And a connection may become suitable for `make_room` only later.
    const auto pause = std::clamp<platform::duration>(limits_.longest_pause, shortest_pause, longest_look);
    const platform::time_point until = std::min(deadline, after(pause));
    ended.lock();
    if (open_ < limits_.max_connections) {
      ended.unlock();
      continue;
    }
    switch (ended.wait({.deadline = until, .what = "a place for a connection", .object = this})) {
      case wake_reason::notified:
        break;
      case wake_reason::timed_out:
        if (until == deadline) {
          return io_error::timed_out;
        }
        break;
      case wake_reason::stopped:
        return io_error::stopped;
      case wake_reason::expired:
        return io_error::expired;
    }
  }
  return {};
}

void accept_loop::leave(unsigned turn) noexcept {
  if (turn != no_turn) {
    turns_->give_back(turn);
  }
  ended.lock();
  --open_;
  ++ends_;
  // After this call the loop may have been destroyed.
  ended.notify_all_and_unlock();
}

void accept_loop::tell(owner& each, const std::error_code& error, accept_failure kind) noexcept {
  (kind == accept_failure::shortage ? shortages : failed).fetch_add(1, platform::memory_order_relaxed);
  ++failures_in_row_;
  ++unreported_;
  if (platform::now() < reports_again_at_) {
    return;
  }
  reports_again_at_ = after(limits_.accept_failed_every);
  const std::uint64_t times = std::exchange(unreported_, 0);
  each.tell({error, kind, failures_in_row_, times, accepted.load(platform::memory_order_relaxed)});
}

void accept_loop::pause_after_failure(owner& each, accept_failure kind, std::uint64_t ends,
                                      platform::time_point deadline) noexcept {
  pauses.fetch_add(1, platform::memory_order_relaxed);
  const platform::duration longest = limits_.longest_pause;
  platform::duration length = longest;
  if (kind != accept_failure::shortage || !each.make_room()) {  // else a connection is about to end
    const std::uint64_t before = kind == accept_failure::connection ? max_passed_over : 0;
    const std::uint64_t doublings = std::min(failures_in_row_ - before - 1, max_doublings);
    const platform::duration first = std::max<platform::duration>(longest / 100, shortest_pause);
    const auto times = std::int64_t{1} << doublings;
    length = first < longest / times ? first * times : longest;  // without overflow
  }
  const platform::time_point until = std::min(deadline, after(std::max<platform::duration>(length, shortest_pause)));
  ended.lock();
  if (ends_ != ends) {
    ended.unlock();
    return;
  }
  // A deadline or a stop that ends this wait ends the next accept too.
  static_cast<void>(ended.wait({.deadline = until, .what = "a free file descriptor", .object = this}));
}

bool accept_loop::wait_for_ends(platform::time_point deadline) noexcept {
  for (;;) {
    ended.lock();
    if (open_ == 0) {
      ended.unlock();
      return true;
    }
    const wait_options options{
        .deadline = deadline, .stoppable = false, .what = "the end of connections", .object = this};
    if (ended.wait(options) == wake_reason::timed_out) {
      return false;
    }
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
