// A loop that accepts connections and spawns a fiber for each. It survives lost connections and shortages.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pirn/fiber/fiber.hpp"
#include "pirn/net/expert/accept_statistics.hpp"
#include "pirn/net/expert/worker_turns.hpp"
#include "pirn/net/tcp_listener.hpp"
#include "pirn/net/unix_listener.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
class accept_loop;
}  // namespace detail

/// Describes a failure to accept a connection, as an `acceptor` or an http::server reports it.
struct accept_trouble {
  std::error_code error;   ///< what accept, or the spawn of the connection's fiber, failed with
  accept_failure kind;     ///< `connection` or `shortage`, which includes a lack of stacks for the connection's fiber
  std::uint64_t in_row;    ///< failures since the last accepted connection, including this one
  std::uint64_t times;     ///< failures in this report: this one, and those only counted since the last report
  std::uint64_t accepted;  ///< connections accepted so far

  /// Returns a line for a log: the error, how often it occurred, and whether no connection was ever accepted. Throws
  /// std::bad_alloc.
  [[nodiscard]] std::string text() const;
};

/// How an `acceptor` treats its connections.
struct accept_options {
  /// Options of the connections' fibers. The workers take turns unless `worker` names one; `stop` is not used.
  spawn_options fibers = {.name = "connection", .worker = spawn_options::any_worker};
  /// The largest number of open connections. At this limit, further connections wait in the listener's queue.
  std::size_t max_connections = SIZE_MAX;
  /// How long connections may continue after accepting has ended, before their fibers are asked to stop.
  time_span drain{};
  /// The longest pause after a shortage. The first pause is a hundredth of it (at least 0.1 ms), and each is twice as
  /// long as the one before. A pause ends early when a connection of this acceptor ends. Failures of connections cause
  /// such pauses only after more than 32 in a row.
  time_span longest_pause = std::chrono::milliseconds(100);
  /// Called in the accepting fiber for each failure, before the pause. May be empty. May suspend; must not throw.
  std::function<void(const accept_trouble&)> accept_failed = {};
  /// The shortest time between two calls of `accept_failed`, to keep logs short. Failures in between are only counted
  /// (`accept_trouble::times`).
  time_span accept_failed_every{};
};

/// Accepts connections and runs a fiber for each. It skips a connection that fails, and waits until a shortage is over;
/// neither becomes a busy loop.
class acceptor {
 public:
  /// Throws std::bad_alloc.
  explicit acceptor(accept_options options = {});
  ~acceptor();
  acceptor(const acceptor&) = delete;
  acceptor& operator=(const acceptor&) = delete;

  /// Calls `handler(tcp_stream)` in a new fiber for each connection of `from`; several calls may run at once. Accepting
  /// ends when the caller is asked to stop, the deadline passes or the listener is closed. Returns the reason as an
  /// error: io_error::stopped, timed_out, expired or closed, or the kernel's error if `from` is not a listening socket.
  /// Returns only after the last of those fibers has ended: after `accept_options::drain` they are asked to stop. An
  /// exception of a handler goes to the handler of unhandled exceptions. Call from a fiber, one call at a time.
  template <class Handler>
  std::error_code run(tcp_listener& from, Handler handler, time_limit deadline = platform::never) {
    return run_each<tcp_stream>(from, handler, deadline);
  }
  /// As `run` of a `tcp_listener`, but calls `handler(unix_stream)`.
  template <class Handler>
  std::error_code run(unix_listener& from, Handler handler, time_limit deadline = platform::never) {
    return run_each<unix_stream>(from, handler, deadline);
  }

  /// Returns the present numbers. Any thread or fiber.
  [[nodiscard]] accept_statistics statistics() const noexcept;

 private:
  struct begins {
    virtual std::error_code begin(tcp_stream&& taken, unsigned place, const spawn_options& options) = 0;

   protected:
    ~begins() = default;
  };
  struct ending {
    acceptor& owner;
    unsigned place;
    ending(acceptor& of, unsigned at) noexcept : owner(of), place(at) {}
    ~ending() { owner.leave(place); }
    ending(const ending&) = delete;
    ending& operator=(const ending&) = delete;
  };

  struct each_client;

  template <class Stream, class Handler>
  std::error_code run_each(tcp_listener& from, Handler& handler, time_limit deadline) {
    struct beginner final : begins {
      beginner(acceptor& owner, Handler& call) noexcept : owner_(owner), call_(call) {}
      std::error_code begin(tcp_stream&& taken, unsigned place, const spawn_options& options) override {
        auto made = try_spawn(
            [this, place, stream = std::move(taken)]() mutable {
              const ending at_end(owner_, place);
              call_(Stream(std::move(stream)));  // the stream is closed before the end is reported
            },
            options);
        if (!made) {
          return made.error();
        }
        made->detach();
        return {};
      }
      acceptor& owner_;
      Handler& call_;
    } each(*this, handler);
    return run(from, static_cast<begins&>(each), deadline);
  }

  std::error_code run(tcp_listener& from, begins& each, time_limit deadline);
  void leave(unsigned place) noexcept;

  const accept_options options_;
  const std::unique_ptr<detail::accept_loop> loop_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
