// Boost.Fiber's buffered channels.
#include "../units_boost_fiber.hpp"
#include "chan.hpp"

namespace {

class channel {
 public:
  /// A channel of Boost.Fiber keeps one of its places free, and their number is a power of two.
  explicit channel(std::uint64_t places) : channel_(std::max<std::uint64_t>(places, 2)) {}
  void send(std::uint64_t number) {
    bench::check(channel_.push(number) == boost::fibers::channel_op_status::success, "it can be sent");
  }
  std::uint64_t receive() { return channel_.value_pop(); }

 private:
  boost::fibers::buffered_channel<std::uint64_t> channel_;
};

}  // namespace

int main() {
  bench::units::run([] { bench::chan<bench::units, channel>::measure("buffered_channel, a thread for each worker"); });
}
