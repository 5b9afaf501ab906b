// A list guarded by pirn::mutex, which a running fiber may take before its waiters.
#include "queue.hpp"

namespace {

class queue {
 public:
  void put(bench::node* node) {
    node->next.store(nullptr, std::memory_order_relaxed);
    const std::lock_guard lock(guard_);
    last_->next.store(node, std::memory_order_relaxed);
    last_ = node;
  }
  bool try_take(std::uint64_t& number) {
    const std::lock_guard lock(guard_);
    bench::node* const oldest = taken_->next.load(std::memory_order_relaxed);
    if (oldest == nullptr) {
      return false;
    }
    number = oldest->number;
    taken_ = oldest;
    return true;
  }
  std::uint64_t take() { return bench::take_at_last(*this); }

 private:
  pirn::mutex guard_{pirn::mutex_policy::barging};
  bench::node none_;
  bench::node* taken_ = &none_;  // the last taken node
  bench::node* last_ = &none_;
};

}  // namespace

int main() { bench::queue_main<queue>("pirn-mutex", "a list under pirn::mutex, the barging one"); }
