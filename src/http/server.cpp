#include "pirn/http/server.hpp"

#include <poll.h>

#include <optional>
#include <stdexcept>

#include "detail/system.hpp"
#include "http/connection.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace pirn::inline PIRN_ABI::http {

namespace {

// Descriptors may also be freed by others than our own connections.
constexpr auto longest_pause = std::chrono::milliseconds(100);

/// Whether accepting may succeed later.
bool is_shortage(const std::error_code& error) noexcept {
  return error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system ||
         error == std::errc::no_buffer_space || error == std::errc::not_enough_memory;
}

void pause(server_state& state) noexcept {
  state.pauses.fetch_add(1, platform::memory_order_relaxed);
  state.wait_for_one({.deadline = platform::now() + longest_pause, .what = "a free file descriptor"});
}

/// Accepts as long as `until` gives a deadline for the next connection.
template <class Until>
std::error_code accept_each(server_state& state, tcp_listener& listener, Until until) {
  while (const std::optional<platform::time_point> deadline = until()) {
    auto stream = listener.accept(*deadline);
    if (!stream) {
      if (is_shortage(stream.error())) {
        pause(state);
        continue;
      }
      return stream.error();
    }
    state.accepted.fetch_add(1, platform::memory_order_relaxed);
    const spawn_options how{.name = "http connection",
                            .stack_size = state.options.stack_size,
                            .worker = spawn_options::any_worker,
                            .stop = state.serving.get_token()};
    state.announce();
    auto spawned = try_spawn(
        [&state, taken = std::move(*stream)]() mutable noexcept { connection(state, std::move(taken)).run(); }, how);
    if (spawned) {
      spawned->detach();
    } else {
      state.retract();
      pause(state);  // no stack: this client is turned away, the next may be lucky
    }
  }
  return {};
}

std::error_code accept_all(server_state& state, tcp_listener& listener) {
  return accept_each(state, listener, [] { return std::optional(platform::never); });
}

/// Accepts what is in the queue: the kernel resets whatever is left there when the listener is closed.
void accept_queued(server_state& state, tcp_listener& listener, platform::time_point deadline) {
  static_cast<void>(accept_each(state, listener, [&]() -> std::optional<platform::time_point> {
    pollfd interest{listener.native(), POLLIN, 0};
    const platform::time_point now = platform::now();
    if (now >= deadline || platform::system::poll(&interest, 1, 0) <= 0) {
      return std::nullopt;
    }
    return now + longest_pause;  // it may have been taken, or have died, meanwhile
  }));
}

}  // namespace

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
    (c.previous_ != nullptr ? c.previous_->next_ : first) = c.next_;
    if (c.next_ != nullptr) {
      c.next_->previous_ = c.previous_;
    }
  }
  c.cut_ ? c.stream_.close_with_reset() : c.stream_.close();
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
  now.accept_pauses = state_->pauses.load(platform::memory_order_relaxed);
  const platform::spin_guard guard(state_->ended);
  now.connections = state_->count;
  return now;
}

}  // namespace pirn::inline PIRN_ABI::http
