// The loop behind `acceptor` and http::server.
#pragma once

#include "pirn/net/acceptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Accepts connections while there is a place for one more, and counts the open ones. At the limit it waits first for a
/// client, then for a place, and only then accepts. So room is made only for clients that have arrived, and they wait
/// in the listener's queue.
class accept_loop {
 public:
  struct limits {
    std::size_t max_connections;
    platform::duration longest_pause;
    platform::duration accept_failed_every;
    bool in_turn;     ///< whether `worker_turns` chooses the workers
    bool makes_room;  ///< whether `make_room` can help, now or later
  };
  /// The user of the loop, with the steps that differ between users.
  class owner {
   public:
    /// Spawns the connection's fiber, which calls `leave(turn)` as it ends. Returns an error if there is no stack for
    /// it.
    virtual std::error_code begin(tcp_stream&& taken, unsigned turn) = 0;
    virtual void tell(const accept_trouble& trouble) = 0;
    /// Makes some connection end soon; returns false if none may.
    virtual bool make_room() noexcept { return false; }

   protected:
    ~owner() = default;
  };

  static constexpr unsigned no_turn = ~0u;

  explicit accept_loop(const limits& what) noexcept : limits_(what) {}

  /// Accepts until the listener fails, the fiber is asked to stop or the deadline passes; returns the reason.
  std::error_code run(tcp_listener& from, owner& each, worker_turns& turns, platform::time_point deadline) noexcept {
    return run(from, each, turns, deadline, false);
  }
  /// As `run`, but accepts only connections that are in the listener's queue. Ends also when the queue is empty, and
  /// when accepting fails while no connection is open whose end could help.
  void run_queued(tcp_listener& from, owner& each, worker_turns& turns, platform::time_point deadline) noexcept {
    static_cast<void>(run(from, each, turns, deadline, true));
  }
  /// Records the end of a connection. Any thread; touches nothing of this object after it has notified the waiters.
  void leave(unsigned turn) noexcept;
  /// Waits until all connections have ended; returns false if the deadline passes before. A stop of the fiber does not
  /// end the wait.
  [[nodiscard]] bool wait_for_ends(platform::time_point deadline) noexcept;

  [[nodiscard]] std::size_t open() noexcept {
    const platform::spin_guard guard(ended);
    return open_;
  }

  /// The waiters for the end of a connection. Its lock also guards the owner's data about connections.
  wait_queue ended;
  platform::atomic<std::uint64_t> accepted{0};
  platform::atomic<std::uint64_t> failed{0};
  platform::atomic<std::uint64_t> shortages{0};
  platform::atomic<std::uint64_t> pauses{0};  ///< including those at the limit

 private:
  std::error_code run(tcp_listener& from, owner& each, worker_turns& turns, platform::time_point deadline,
                      bool only_queued) noexcept;
  /// Whether there is a place. Sets `ends` to the number of connections that have ended by now.
  [[nodiscard]] bool has_place(std::uint64_t& ends) noexcept;
  /// Waits for a place; returns an error if it gets none. At the limit it waits for a client first, until
  /// `client_by`.
  [[nodiscard]] std::error_code wait_for_place(tcp_listener& from, owner& each, platform::time_point client_by,
                                               platform::time_point deadline, std::uint64_t& ends) noexcept;
  void tell(owner& each, const std::error_code& error, accept_failure kind) noexcept;
  /// Waits before the next attempt, unless another connection has ended since `ends`.
  void pause_after_failure(owner& each, accept_failure kind, std::uint64_t ends,
                           platform::time_point deadline) noexcept;

  const limits limits_;
  worker_turns* turns_ = nullptr;
  std::uint64_t failures_in_row_ = 0;
  std::uint64_t unreported_ = 0;  ///< failures not reported yet
  platform::time_point reports_again_at_ = platform::time_point::min();
  std::size_t open_ = 0;  ///< like `ends_`, under the lock of `ended`
  std::uint64_t ends_ = 0;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
