// The loop behind `acceptor` and http::server.
#pragma once

#include "pirn/net/acceptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Accepts connections as long as there is a place for one more, and counts those that are open. At the limit it waits
/// for a client first, then for a place, and accepts then: so room is made for those only that are there, and they wait
/// in the listener's queue.
class accept_loop {
 public:
  struct limits {
    std::size_t max_connections;
    platform::duration longest_pause;
    platform::duration told_every;
    bool in_turn;     ///< whether `worker_turns` choose the workers
    bool makes_room;  ///< whether `make_room` is of use, now or later
  };
  /// What is particular about those who use the loop.
  class owner {
   public:
    /// Spawns the connection's fiber, which calls `leave(turn)` as it ends; an error if there is no stack for it.
    virtual std::error_code begin(tcp_stream&& taken, unsigned turn) = 0;
    virtual void tell(const accept_trouble& trouble) = 0;
    /// Has some connection end soon; false if none may.
    virtual bool make_room() noexcept { return false; }

   protected:
    ~owner() = default;
  };

  static constexpr unsigned no_turn = ~0u;

  explicit accept_loop(const limits& what) noexcept : limits_(what) {}

  /// Accepts until the listener fails, or the fiber is asked to stop, or the deadline passes; returns which.
  std::error_code run(tcp_listener& from, owner& each, worker_turns& turns, platform::time_point deadline) noexcept {
    return run(from, each, turns, deadline, false);
  }
  /// Only those that are in the listener's queue. Ends also where none is left there, and where one cannot be accepted
  /// while none is open whose end would change that.
  void run_queued(tcp_listener& from, owner& each, worker_turns& turns, platform::time_point deadline) noexcept {
    static_cast<void>(run(from, each, turns, deadline, true));
  }
  /// A connection has ended. Any thread; touches nothing of this object after it has told so.
  void leave(unsigned turn) noexcept;
  /// Whether all connections have ended by then. A stop of the fiber does not end the wait.
  [[nodiscard]] bool wait_for_ends(platform::time_point deadline) noexcept;

  [[nodiscard]] std::size_t open() noexcept {
    const platform::spin_guard guard(ended);
    return open_;
  }

  /// Waits for the end of a connection. Its lock is also for what the owner knows of them.
  wait_queue ended;
  platform::atomic<std::uint64_t> accepted{0};
  platform::atomic<std::uint64_t> failed{0};
  platform::atomic<std::uint64_t> shortages{0};
  platform::atomic<std::uint64_t> pauses{0};  ///< at the limit, too

 private:
  std::error_code run(tcp_listener& from, owner& each, worker_turns& turns, platform::time_point deadline,
                      bool only_queued) noexcept;
  /// `ends` becomes the number of those that have ended by now.
  [[nodiscard]] bool has_place(std::uint64_t& ends) noexcept;
  /// Or the reason why there is none. With no place it waits until `client_by` for a client.
  [[nodiscard]] std::error_code wait_for_place(tcp_listener& from, owner& each, platform::time_point client_by,
                                               platform::time_point deadline, std::uint64_t& ends) noexcept;
  void tell(owner& each, const std::error_code& error, accept_failure kind) noexcept;
  /// Whether so many failures of the kind have come in a row that the next attempt is to wait.
  [[nodiscard]] bool needs_pause(accept_failure kind) const noexcept;
  /// Unless another one has ended since `ends`.
  void pause(owner& each, accept_failure kind, std::uint64_t ends, platform::time_point deadline) noexcept;

  const limits limits_;
  worker_turns* turns_ = nullptr;
  std::uint64_t failures_in_row_ = 0;
  std::uint64_t untold_ = 0;  ///< failures
  platform::time_point tells_again_at_ = platform::time_point::min();
  std::size_t open_ = 0;  ///< with `ends_` under the lock of `ended`
  std::uint64_t ends_ = 0;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
