// The server: it lists its connections, makes room for new ones, and ends them when it is stopped.
#include "pirn/http/server.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "http/connection.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

// The longest pause without a place or descriptor. A connection may become idle meanwhile, and other code may free a
// descriptor.
constexpr auto longest_pause = std::chrono::milliseconds(100);

/// Returns half of the descriptors that the process may still open, after a few are set aside for other uses: a
/// listener, a folder.
std::size_t default_limit() noexcept {
  constexpr std::size_t of_others = 8;
  ::rlimit found{};
  if (::getrlimit(RLIMIT_NOFILE, &found) != 0 || found.rlim_cur == RLIM_INFINITY) {
    return SIZE_MAX;
  }
  const int lowest = ::fcntl(0, F_DUPFD_CLOEXEC, 0);  // lower numbers are taken
  if (lowest >= 0) {
    ::close(lowest);
  }
  const std::size_t taken = of_others + static_cast<std::size_t>(std::max(lowest, 0));
  return found.rlim_cur > taken + 1 ? (found.rlim_cur - taken) / 2 : 1;
}

}  // namespace

server_state::server_state(handler what, server_options requested)
    : answer(std::move(what)),
      options(std::move(requested)),
      loop({.max_connections = options.connection_limit != 0 ? options.connection_limit : default_limit(),
            .longest_pause = longest_pause,
            .accept_failed_every = options.accept_failed_every,
            .in_turn = true,
            .makes_room = true}) {}

std::error_code server_state::begin(tcp_stream&& taken, unsigned worker) noexcept {
  const spawn_options fiber_options{.name = "http connection",
                                    .stack_size = options.stack_size,
                                    .worker = static_cast<int>(worker),
                                    .stop = serving.get_token()};
  auto spawned =
      try_spawn([this, worker,
                 stream = std::move(taken)]() mutable noexcept { connection(*this, std::move(stream), worker).run(); },
                fiber_options);
  if (!spawned) {
    return spawned.error();
  }
  spawned->detach();
  return {};
}

void server_state::tell(const accept_trouble& trouble) noexcept {
  if (options.accept_failed) {
    options.accept_failed(trouble);
  }
}

void server_state::enter(connection& c) noexcept {
  const platform::spin_guard guard(loop.ended);
  connections.push_front(c);
}

void server_state::leave(connection& c) noexcept {
  {
    // Leaves the list first: a holder of the lock may use every connection on it.
    const platform::spin_guard guard(loop.ended);
    if (c.listed_as_waiting_) {
      for (waiting& w : longest_waiting_) {
        w.who = w.who == &c ? nullptr : w.who;
      }
    }
    connections.remove(c);
  }
  c.cut_ ? c.stream_.close_with_reset() : c.stream_.close();
  loop.leave(c.worker_);
}

void server_state::close_idle() noexcept {
  const platform::spin_guard guard(loop.ended);
  for (connection& c : connections) {
    if (c.idle_.load(platform::memory_order_seq_cst)) {
      // The connection reads the end of the stream, after a request that has already arrived.
      static_cast<void>(c.stream_.shutdown(shutdown_half::read));
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
  // A heap with the shortest wait in front, which is removed when a longer one is found.
  for (connection& c : connections) {
    const waiting found{&c, c.waits_since_.load(platform::memory_order_relaxed)};
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
  const platform::spin_guard guard(loop.ended);
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
        // The connection reads the end of the stream, or notices the eviction when it has read a head.
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
  std::error_code outcome;
  fiber acceptor = spawn([&] { outcome = state.loop.run(listener, state, turns, platform::never); },
                         {.name = "http acceptor", .stop = state.accepting.get_token()});
  if (!acceptor.join(platform::never)) {
    stop();
    acceptor.join();
  }
  const time_limit drained_by = state.options.drain_timeout;
  state.draining.store(true, platform::memory_order_seq_cst);
  state.close_idle();
  if (outcome == io_error::stopped) {
    // The kernel resets the connections that are still in the queue when the listener is closed. Accepting them needs
    // another fiber, since both the acceptor and the calling fiber may have been asked to stop.
    auto last = try_spawn([&]() noexcept { state.loop.run_queued(listener, state, turns, drained_by); },
                          {.name = "http acceptor", .stop = state.serving.get_token()});
    if (last) {
      last->join();
    }
  }
  listener.close();
  if (!state.loop.wait_for_ends(drained_by)) {
    state.serving.request_stop();
    static_cast<void>(state.loop.wait_for_ends(platform::never));
  }
  if (outcome == io_error::stopped) {
    return {};
  }
  return fail(outcome);
}

void server::stop() noexcept { state_->accepting.request_stop(); }

server_statistics server::statistics() const noexcept {
  server_statistics now;
  now.accepted = state_->loop.accepted.load(platform::memory_order_relaxed);
  now.accept_failures = state_->loop.failed.load(platform::memory_order_relaxed) +
                        state_->loop.shortages.load(platform::memory_order_relaxed);
  now.made_room = state_->made_room.load(platform::memory_order_relaxed);
  now.accept_pauses = state_->loop.pauses.load(platform::memory_order_relaxed);
  now.connections = state_->loop.open();
  return now;
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
