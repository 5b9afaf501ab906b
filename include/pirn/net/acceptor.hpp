// A loop that accepts connections and spawns a fiber for each, and survives what befalls such a loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pirn/fiber/fiber.hpp"
#include "pirn/net/tcp_listener.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
class accept_loop;
}  // namespace detail

/// Distributes connections over the workers of the calling fiber's runtime: each goes to a worker that has the fewest,
/// among those in turn. One fiber calls `take`; any fiber or thread `give_back`.
class worker_turns {
 public:
  /// Throws std::system_error (operation_not_permitted) on a plain thread, and std::bad_alloc.
  worker_turns();
  /// The worker for the next connection, which counts as there from now on. O(workers).
  [[nodiscard]] unsigned take() noexcept;
  [[nodiscard]] unsigned workers() const noexcept { return workers_; }
  /// One of its connections has ended.
  void give_back(unsigned worker) noexcept { open_[worker].fetch_sub(1, platform::memory_order_relaxed); }

 private:
  unsigned workers_;
  unsigned next_ = 0;
  std::unique_ptr<platform::atomic<std::uint32_t>[]> open_;
};

/// What an `acceptor` or an http::server tells of a failure.
struct accept_trouble {
  std::error_code error;
  accept_failure kind;     ///< `connection` or `shortage`; also want of a stack for the connection's fiber
  std::uint64_t in_row;    ///< how many there have been since the last connection was accepted, with this one
  std::uint64_t times;     ///< how many this one stands for: itself, and those that were not told since the last one
  std::uint64_t accepted;  ///< connections, ever

  /// A line for a log: the error, how often, and whether no connection was ever accepted. Throws std::bad_alloc.
  [[nodiscard]] std::string text() const;
};

struct accept_options {
  /// Of the connections' fibers. Their workers are chosen in turn unless this names one; `stop` is not used.
  spawn_options fibers = {.name = "connection", .worker = spawn_options::any_worker};
  /// How many connections may be open; while there are so many, others wait in the listener's queue.
  std::size_t max_connections = SIZE_MAX;
  /// How long connections may go on once accepting has ended, before their fibers are asked to stop.
  time_span drain{};
  /// The longest pause at a shortage. The first one is a hundredth of it (at least 0.1 ms), each is twice as long as
  /// the one before, and each ends at once where a connection of this acceptor does. Failures of connections are
  /// followed by such pauses only where more than 32 come in a row.
  time_span longest_pause = std::chrono::milliseconds(100);
  /// Called in the accepting fiber for each failure, before the pause. Empty for none. May suspend; must not throw.
  std::function<void(const accept_trouble&)> told = {};
  /// For so long after a failure was told others are only counted (`accept_trouble::times`): for logs.
  time_span told_every{};
};

/// Numbers about an acceptor at one moment.
struct accept_statistics {
  std::size_t connections = 0;  ///< open now
  std::uint64_t accepted = 0;   ///< ever
  std::uint64_t failed = 0;     ///< connections that were lost before they were accepted
  std::uint64_t shortages = 0;  ///< how often it had no descriptor, memory or stack
};

/// Accepts connections and runs a fiber for each. A failure of one connection is passed over, a shortage waited out;
/// neither becomes a busy loop.
class acceptor {
 public:
  /// Throws std::bad_alloc.
  explicit acceptor(accept_options options = {});
  ~acceptor();
  acceptor(const acceptor&) = delete;
  acceptor& operator=(const acceptor&) = delete;

  /// Calls `handler(tcp_stream)`, several at once, in a fiber of its own for each connection of `from`, until the
  /// caller is asked to stop, the deadline passes or the listener is closed, and returns which as an error
  /// (io_error::stopped, timed_out, expired or closed; or the kernel's if it is no listening socket). It returns after
  /// the last of those fibers has ended: they may go on for `accept_options::drain`, then they are asked to stop. What
  /// a handler throws goes to the handler of unhandled exceptions. From a fiber; one at a time.
  template <class Handler>
  std::error_code run(tcp_listener& from, Handler handler, time_limit deadline = platform::never) {
    struct beginner final : begins {
      beginner(acceptor& owner, Handler& call) noexcept : owner_(owner), call_(call) {}
      std::error_code begin(tcp_stream&& taken, unsigned place, const spawn_options& options) override {
        auto made = try_spawn(
            [this, place, stream = std::move(taken)]() mutable {
              const ending at_end(owner_, place);
              call_(tcp_stream(std::move(stream)));  // which is closed before the end is told
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

  /// Any thread or fiber.
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

  std::error_code run(tcp_listener& from, begins& each, time_limit deadline);
  void leave(unsigned place) noexcept;

  const accept_options options_;
  const std::unique_ptr<detail::accept_loop> loop_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
