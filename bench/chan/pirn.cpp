// pirn's fibers and channels.
#include "../units_pirn.hpp"
#include "chan.hpp"
#include "pirn/sync/channel.hpp"

namespace {

class channel {
 public:
  explicit channel(std::uint64_t places) : channel_(places) {}
  void send(std::uint64_t number) { bench::check(channel_.send(number).has_value(), "it can be sent"); }
  std::uint64_t receive() { return channel_.receive().value(); }

 private:
  pirn::channel<std::uint64_t> channel_;
};

}  // namespace

int main() {
  bench::units::run([] { bench::chan<bench::units, channel>::measure("channel<T>"); });
}
