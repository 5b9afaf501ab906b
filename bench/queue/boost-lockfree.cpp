// boost::lockfree::queue, which copies its elements into its own nodes.
#include <boost/lockfree/queue.hpp>

#include "queue.hpp"

namespace {

class queue {
 public:
  void put(bench::node* node) { bench::check(nodes_.push(node), "there is memory for another node"); }
  bool try_take(std::uint64_t& number) {
    bench::node* oldest = nullptr;
    if (!nodes_.pop(oldest)) {
      return false;
    }
    number = oldest->number;
    return true;
  }
  std::uint64_t take() { return bench::take_at_last(*this); }

 private:
  boost::lockfree::queue<bench::node*> nodes_{1024};
};

}  // namespace

int main() { bench::queue_main<queue>("boost-lockfree", "boost::lockfree::queue"); }
