// A race of connection attempts whose addresses may arrive while it runs.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "pirn/net/expert/happy_eyeballs.hpp"
#include "pirn/sync/event.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// One call of `run` in a fiber. `add` and `finish` are called meanwhile by another fiber, or before.
class connection_race {
 public:
  explicit connection_race(const connect_options& options) noexcept : options_(options) {}
  connection_race(const connection_race&) = delete;
  connection_race& operator=(const connection_race&) = delete;

  /// Adds endpoints behind those of their families that have not been tried. Throws std::bad_alloc.
  void add(std::span<const endpoint> more);
  /// Says that no more will be added, and why, which is the error where none was.
  void finish(std::error_code why) noexcept;

  /// Runs attempts until one succeeds or all have failed. Throws std::bad_alloc.
  [[nodiscard]] std::expected<tcp_stream, connect_error> run(platform::time_point deadline);

 private:
  /// Removes the next endpoint: the first one that was added, then of the other family than the last one if there is
  /// one.
  [[nodiscard]] std::optional<endpoint> next() noexcept;
  /// The body of a fiber.
  void attempt(const endpoint& to, platform::time_point deadline) noexcept;

  const connect_options& options_;
  event changed_{event_reset::automatic};
  platform::spinlock lock_;  // guards the rest, since attempts may be on other workers
  std::deque<endpoint> v6_, v4_;
  std::optional<bool> v6_is_next_;  ///< once there are endpoints
  bool more_ = true;
  std::error_code why_none_;
  std::size_t running_ = 0;
  std::optional<tcp_stream> won_;
  std::vector<connect_error::attempt> failed_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
