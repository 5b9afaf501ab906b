// The time limit of a client for taking the data that it is sent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/net/tcp_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Returns the moment `timeout` from now, or `never` if that is beyond the range of the clock.
inline platform::time_point after(platform::duration timeout, platform::time_point now = platform::now()) noexcept {
  return timeout < platform::never - now ? now + timeout : platform::never;
}

/// Gives a client a time limit for each 256 KiB. The bytes that it has acknowledged count, not those in the buffers on
/// the way there, which empty in steps of megabytes. Acknowledgements come in steps too, so a client may save up time,
/// at most twice the limit. The limit starts afresh if the client has taken everything, or has taken within half the
/// limit all that was in flight at a check. In these cases the server had no more data for it.
///
/// The pace covers everything that is written to a connection: else each of many small writes would have a separate
/// limit. Before a write, and while one waits, the caller calls `keeps_up` once `next_look` has passed.
class write_pace {
 public:
  static constexpr std::size_t step = std::size_t{256} * 1024;

  explicit write_pace(platform::duration limit) noexcept : limit_(limit) {
    if (is_limited()) {
      const platform::time_point now = platform::now();
      deadline_ = now + limit;
      next_look_ = now + limit / looks_per_limit;
    }
  }

  [[nodiscard]] platform::time_point next_look() const noexcept { return next_look_; }
  void put(std::size_t bytes) noexcept { unacknowledged_ += bytes; }
  /// Checks how much the client has taken. Returns false if that is too little, or if the connection no longer exists.
  [[nodiscard]] bool keeps_up(tcp_stream& stream) noexcept;
  /// Returns the bytes that were unacknowledged at the last `keeps_up`, plus those put since.
  [[nodiscard]] std::uint64_t unacknowledged() const noexcept { return unacknowledged_; }

 private:
  static constexpr int looks_per_limit = 4;
  static constexpr int max_saved = 2;  ///< in limits

  /// False if the limit is beyond the range of the clock.
  [[nodiscard]] bool is_limited() const noexcept { return limit_ < platform::duration::max() / (2 * max_saved); }

  platform::duration limit_;
  platform::time_point deadline_ = platform::never;
  platform::time_point next_look_ = platform::never;
  std::uint64_t unacknowledged_ = 0;  ///< as of the last check, plus the bytes put since
  /// Bytes that were in flight at a check and still are. Set anew when none of them is left.
  std::uint64_t marked_ = 0;
  platform::time_point marked_at_{};
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
