// As pirn, but each send is also a safe point of a time slice, which is off: the cost if all sends were.
#include "../units_pirn.hpp"
#include "channel_pirn.hpp"

namespace {

class channel_with_points : public bench::channel_of_pirn {
 public:
  using bench::channel_of_pirn::channel_of_pirn_with;
  [[gnu::always_inline]] void send(std::uint64_t number) {
    pirn::this_fiber::preemption_point();
    bench::channel_of_pirn::send(number);
  }
};

}  // namespace

int main() {
  bench::units::run([] {
    bench::chan<bench::units, channel_with_points>::measure("channel<T>, a safe point before each send", "pirn-point");
  });
}
