// How long a client may take over what it is sent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/net/tcp_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// The moment that is `timeout` from now; `never` for one that is beyond all clocks.
inline platform::time_point after(platform::duration timeout, platform::time_point now = platform::now()) noexcept {
  return timeout < platform::never - now ? now + timeout : platform::never;
}

/// A client has a time limit for each 256 KiB. What counts is what it has acknowledged, not what fits the buffers on
/// the way there, which empty in steps of megabytes. Its acknowledgements come in steps too: so a client may save up
/// time, as much as twice the limit. Where it has taken everything, or within half the limit all that was on its way at
/// a look, it starts afresh: then it is we who have had no more for it.
///
/// It is about all that is written to a connection: else many small writes would have a limit each. Before a write, and
/// while one waits, `keeps_up` is asked where `next_look` has passed.
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
  /// Looks at what the client has taken. False if that is too little, or the connection is no more.
  [[nodiscard]] bool keeps_up(tcp_stream& stream) noexcept;
  /// As of that look.
  [[nodiscard]] std::uint64_t unacknowledged() const noexcept { return unacknowledged_; }

 private:
  static constexpr int looks_per_limit = 4;
  static constexpr int max_saved = 2;  ///< limits

  /// Or it is beyond all clocks.
  [[nodiscard]] bool is_limited() const noexcept { return limit_ < platform::duration::max() / (2 * max_saved); }

  platform::duration limit_;
  platform::time_point deadline_ = platform::never;
  platform::time_point next_look_ = platform::never;
  std::uint64_t unacknowledged_ = 0;  ///< as of the last look, and what has been put since
  /// What was on its way at a look and is still; it is chosen anew when there is none left of it.
  std::uint64_t marked_ = 0;
  platform::time_point marked_at_{};
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
