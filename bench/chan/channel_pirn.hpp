// pirn's channels, for fibers of any kind.
#pragma once

#include "chan.hpp"
#include "pirn/sync/channel.hpp"

namespace bench {

/// A channel with one policy for waiting receivers.
template <pirn::wake_policy How>
class channel_of_pirn_with {
 public:
  explicit channel_of_pirn_with(std::uint64_t places) : channel_(places) {}
  [[gnu::always_inline]] void send(std::uint64_t number) {
    check(channel_.send(std::uint64_t{number}, How).has_value(), "it can be sent");
  }
  [[gnu::always_inline]] std::uint64_t receive() { return channel_.receive().value(); }

 private:
  pirn::channel<std::uint64_t> channel_;
};
using channel_of_pirn = channel_of_pirn_with<pirn::wake_policy::enqueue>;

}  // namespace bench
