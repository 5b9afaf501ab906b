// pirn's channels, for fibers of any kind.
#pragma once

#include "chan.hpp"
#include "pirn/sync/channel.hpp"

namespace bench {

class channel_of_pirn {
 public:
  explicit channel_of_pirn(std::uint64_t places) : channel_(places) {}
  [[gnu::always_inline]] void send(std::uint64_t number) { check(channel_.send(number).has_value(), "it can be sent"); }
  [[gnu::always_inline]] std::uint64_t receive() { return channel_.receive().value(); }

 private:
  pirn::channel<std::uint64_t> channel_;
};

}  // namespace bench
