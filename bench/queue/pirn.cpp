// pirn's unlimited channel, in which consumers wait.
#include "pirn/sync/channel.hpp"
#include "queue.hpp"

namespace {

class queue {
 public:
  void put(bench::node* node) { bench::check(nodes_.send(std::move(node)).has_value(), "there is always room"); }
  std::uint64_t take() { return nodes_.receive().value()->number; }

 private:
  pirn::channel<bench::node*> nodes_{pirn::unbounded};
};

}  // namespace

int main() { bench::queue_main<queue>("pirn", "an unbounded channel<T>"); }
