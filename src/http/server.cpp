#include "pirn/http/server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "detail/system.hpp"
#include "http/connection.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace pirn::inline PIRN_ABI::http {

namespace {

// Descriptors may also be freed by others than our own connections, and a connection may become idle.
constexpr auto longest_pause = std::chrono::milliseconds(100);
// So many failures in a row, and it seems to be no matter of single connections.
constexpr unsigned most_failures_in_row = 32;

/// Half of the descriptors that the process may still open, but for a few that others need: a listener, a folder.
std::size_t default_limit() noexcept {
  constexpr std::size_t of_others = 8;
  ::rlimit found{};
  if (::getrlimit(RLIMIT_NOFILE, &found) != 0 || found.rlim_cur == RLIM_INFINITY) {
    return SIZE_MAX;
  }
  const int lowest = ::fcntl(0, F_DUPFD_CLOEXEC, 0);  // those below are taken
  if (lowest >= 0) {
    ::close(lowest);
  }
  const std::size_t taken = of_others + static_cast<std::size_t>(std::max(lowest, 0));
  return found.rlim_cur > taken + 1 ? (found.rlim_cur - taken) / 2 : 1;
}

void pause(server_state& state) noexcept {
  state.pauses.fetch_add(1, platform::memory_order_relaxed);
  state.wait_for_one({.deadline = platform::now() + longest_pause, .what = "a free file descriptor"});
}

/// Tells of a failure, and waits where the next attempt would meet it again. False if that will not help.
bool survive(server_state& state, const std::error_code& error, accept_failure kind, unsigned& in_row) noexcept {
  if (kind == accept_failure::listener) {
    return false;
  }
  state.failures.fetch_add(1, platform::memory_order_relaxed);
  if (state.options.accept_failed) {
    state.options.accept_failed(error);
  }
  if (kind == accept_failure::shortage) {
    state.make_room();
    pause(state);
  } else if (++in_row > most_failures_in_row) {
    pause(state);
  }
  return true;
}

/// Spawns the connection's fiber; an error if there is no stack for it.
std::error_code begin(server_state& state, tcp_stream&& stream) noexcept {
  const unsigned worker = state.turns->take();
  const spawn_options how{.name = "http connection",
                          .stack_size = state.options.stack_size,
                          .worker = static_cast<int>(worker),
                          .stop = state.serving.get_token()};
  state.announce();
  auto spawned =
      try_spawn([&state, worker,
                 taken = std::move(stream)]() mutable noexcept { connection(state, std::move(taken), worker).run(); },
                how);
  if (!spawned) {
    state.turns->give_back(worker);
    state.retract();
    return spawned.error();
  }
  spawned->detach();
  return {};
}

/// Accepts as long as `until` gives a deadline for the next connection. Waits for a place until `places_until` only.
template <class Until>
std::error_code accept_each(server_state& state, tcp_listener& listener, platform::time_point places_until,
                            Until until) {
  unsigned failures_in_row = 0;
  while (const std::optional<platform::time_point> deadline = until()) {
    auto stream = listener.accept_one(*deadline);
    if (!stream) {
      if (!survive(state, stream.error(), kind_of_accept_failure(stream.error()), failures_in_row)) {
        return stream.error();
      }
      continue;
    }
    failures_in_row = 0;
    state.accepted.fetch_add(1, platform::memory_order_relaxed);
    // Or until the server is stopped, or cuts what is left: then this one is served beyond the limit.
    state.wait_for_place(places_until);
    if (const std::error_code error = begin(state, std::move(*stream))) {
      // No stack: this client is turned away, the next may be lucky.
      survive(state, error, accept_failure::shortage, failures_in_row);
    }
  }
  return {};
}

std::error_code accept_all(server_state& state, tcp_listener& listener) {
  return accept_each(state, listener, platform::never, [] { return std::optional(platform::never); });
}

/// Accepts what is in the queue: the kernel resets whatever is left there when the listener is closed.
void accept_queued(server_state& state, tcp_listener& listener, platform::time_point deadline) {
  static_cast<void>(accept_each(state, listener, deadline, [&]() -> std::optional<platform::time_point> {
    const descriptor::attempt look = [](int native, void*) noexcept -> std::int64_t {
      pollfd interest{native, POLLIN, 0};
      return platform::system::poll(&interest, 1, 0);
    };
    const platform::time_point now = platform::now();
    if (now >= deadline || listener.apply(look, nullptr).value_or(0) <= 0) {
      return std::nullopt;
    }
    return now + longest_pause;  // it may have been taken, or have died, meanwhile
  }));
}

}  // namespace

server_state::server_state(handler what, server_options how)
    : answer(std::move(what)),
      options(std::move(how)),
      limit(options.connection_limit != 0 ? options.connection_limit : default_limit()) {}

void server_state::announce() noexcept {
  const platform::spin_guard guard(ended);
  ++count;
}

void server_state::enter(connection& c) noexcept {
  const platform::spin_guard guard(ended);
  c.next_ = first;
  if (first != nullptr) {
    first->previous_ = &c;
  }
  first = &c;
}

void server_state::leave(connection& c) noexcept {
  {
    // Off the list first: whoever holds the lock may use what is on it.
    const platform::spin_guard guard(ended);
    if (c.listed_as_waiting_) {
      for (waiting& w : longest_waiting_) {
        w.who = w.who == &c ? nullptr : w.who;
      }
    }
    (c.previous_ != nullptr ? c.previous_->next_ : first) = c.next_;
    if (c.next_ != nullptr) {
      c.next_->previous_ = c.previous_;
    }
  }
  c.cut_ ? c.stream_.close_with_reset() : c.stream_.close();
  turns->give_back(c.worker_);
  retract();
}

void server_state::retract() noexcept {
  ended.lock();
  --count;
  // After this the server may be gone.
  ended.notify_all_and_unlock();
}

void server_state::close_idle() noexcept {
  const platform::spin_guard guard(ended);
  for (connection* c = first; c != nullptr; c = c->next_) {
    if (c->idle_.load(platform::memory_order_seq_cst)) {
      // The connection reads the end of the stream; a request that is already there is read before.
      static_cast<void>(c->stream_.shutdown(shutdown_half::read));
    }
  }
}

void server_state::find_waiting() noexcept {
  const auto earlier = [](const waiting& a, const waiting& b) { return a.since < b.since; };
  const auto begin = longest_waiting_.begin();
  for (auto i = next_waiting_; i < end_of_waiting_; ++i) {
    if (longest_waiting_[i].who != nullptr) {
      longest_waiting_[i].who->listed_as_waiting_ = false;
    }
  }
  next_waiting_ = end_of_waiting_ = 0;
  // A heap whose first is the one that has waited least, and goes when there is one that has waited longer.
  for (connection* c = first; c != nullptr; c = c->next_) {
    const waiting found{c, c->waits_since_.load(platform::memory_order_relaxed)};
    if (found.since <= 0) {
      continue;
    }
    if (end_of_waiting_ == longest_waiting_.size()) {
      if (!earlier(found, *begin)) {
        continue;
      }
      std::pop_heap(begin, begin + static_cast<std::ptrdiff_t>(end_of_waiting_--), earlier);
    }
    longest_waiting_[end_of_waiting_++] = found;
    std::push_heap(begin, begin + static_cast<std::ptrdiff_t>(end_of_waiting_), earlier);
  }
  std::sort_heap(begin, begin + static_cast<std::ptrdiff_t>(end_of_waiting_), earlier);
  for (std::size_t i = 0; i < end_of_waiting_; ++i) {
    longest_waiting_[i].who->listed_as_waiting_ = true;
  }
}

bool server_state::make_room() noexcept {
  const platform::spin_guard guard(ended);
  for (bool looked = false;; looked = true) {
    while (next_waiting_ < end_of_waiting_) {
      waiting& next = longest_waiting_[next_waiting_++];
      if (next.who == nullptr) {
        continue;
      }
      next.who->listed_as_waiting_ = false;
      auto since = next.since;
      if (next.who->waits_since_.compare_exchange_strong(since, connection::evicted)) {
        made_room.fetch_add(1, platform::memory_order_relaxed);
        // It reads the end of the stream, or finds out when it has read a head.
        static_cast<void>(next.who->stream_.shutdown(shutdown_half::read));
        return true;
      }
    }
    if (looked) {
      return false;
    }
    find_waiting();
  }
}

bool server_state::wait_for_place(platform::time_point until) noexcept {
  for (bool waited = false;; waited = true) {
    ended.lock();
    if (count < limit) {
      ended.unlock();
      return true;
    }
    ended.unlock();
    if (!waited) {
      pauses.fetch_add(1, platform::memory_order_relaxed);
    }
    make_room();
    ended.lock();
    if (count < limit) {
      ended.unlock();
      return true;
    }
    const platform::time_point now = platform::now();
    const wait_options how{.deadline = std::min<platform::time_point>(now + longest_pause, until),
                           .what = "a place for an http connection"};
    if (const wake_reason why = ended.wait(how); why != wake_reason::notified && why != wake_reason::timed_out) {
      return false;
    }
    if (now >= until) {
      return false;
    }
  }
}

void server_state::wait_for_one(const wait_options& how) noexcept {
  ended.lock();
  if (count == 0) {
    ended.unlock();
    static_cast<void>(this_fiber::sleep_until(how.deadline));
    return;
  }
  static_cast<void>(ended.wait(how));
}

bool server_state::wait_for_all(platform::time_point deadline) noexcept {
  for (;;) {
    ended.lock();
    if (count == 0) {
      ended.unlock();
      return true;
    }
    const wait_options how{.deadline = deadline, .stoppable = false, .what = "end of http connections", .object = this};
    if (ended.wait(how) == wake_reason::timed_out) {
      return false;
    }
  }
}

server::server(handler answer, server_options options)
    : state_(std::make_unique<server_state>(std::move(answer), std::move(options))) {
  if (!is_field_value(state_->options.name)) {
    throw std::invalid_argument("pirn: not a name for a Server header");
  }
}

server::~server() = default;

result<> server::serve(tcp_listener& listener) {
  server_state& state = *state_;
  worker_turns turns;
  state.turns = &turns;
  std::error_code outcome;
  fiber acceptor = spawn([&] { outcome = accept_all(state, listener); },
                         {.name = "http acceptor", .stop = state.accepting.get_token()});
  if (!acceptor.join(platform::never)) {
    stop();
    acceptor.join();
  }
  const time_limit drained_by = state.options.drain_timeout;
  state.draining.store(true, platform::memory_order_seq_cst);
  state.close_idle();
  if (outcome == io_error::stopped) {
    // In a fiber of its own, since both the first and the calling one may have been asked to stop.
    auto last = try_spawn([&]() noexcept { accept_queued(state, listener, drained_by); },
                          {.name = "http acceptor", .stop = state.serving.get_token()});
    if (last) {
      last->join();
    }
  }
  listener.close();
  if (!state.wait_for_all(drained_by)) {
    state.serving.request_stop();
    state.wait_for_all(platform::never);
  }
  if (outcome == io_error::stopped) {
    return {};
  }
  return fail(outcome);
}

void server::stop() noexcept { state_->accepting.request_stop(); }

server_statistics server::statistics() const noexcept {
  server_statistics now;
  now.accepted = state_->accepted.load(platform::memory_order_relaxed);
  now.accept_failures = state_->failures.load(platform::memory_order_relaxed);
  now.made_room = state_->made_room.load(platform::memory_order_relaxed);
  now.accept_pauses = state_->pauses.load(platform::memory_order_relaxed);
  const platform::spin_guard guard(state_->ended);
  now.connections = state_->count;
  return now;
}

}  // namespace pirn::inline PIRN_ABI::http
