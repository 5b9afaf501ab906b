// The lock-free queue of Michael and Scott 1996, "Simple, fast, and practical non-blocking and blocking concurrent
// queue algorithms", without the counters of its pointers, since no node is reused.
#include "queue.hpp"

namespace {

class queue {
 public:
  void put(bench::node* node) {
    node->next.store(nullptr, std::memory_order_relaxed);
    for (;;) {
      bench::node* last = tail_.load(std::memory_order_acquire);
      bench::node* next = last->next.load(std::memory_order_acquire);
      if (last != tail_.load(std::memory_order_acquire)) {
        continue;
      }
      if (next != nullptr) {  // another thread has linked a node and not yet moved the tail
        tail_.compare_exchange_strong(last, next, std::memory_order_acq_rel);
      } else if (last->next.compare_exchange_strong(next, node, std::memory_order_acq_rel)) {
        tail_.compare_exchange_strong(last, node, std::memory_order_acq_rel);
        return;
      }
    }
  }
  bool try_take(std::uint64_t& number) {
    for (;;) {
      bench::node* first = head_.load(std::memory_order_acquire);
      bench::node* last = tail_.load(std::memory_order_acquire);
      bench::node* const next = first->next.load(std::memory_order_acquire);
      if (first != head_.load(std::memory_order_acquire)) {
        continue;
      }
      if (first == last) {
        if (next == nullptr) {
          return false;
        }
        tail_.compare_exchange_strong(last, next, std::memory_order_acq_rel);
        continue;
      }
      number = next->number;
      if (head_.compare_exchange_strong(first, next, std::memory_order_acq_rel)) {
        return true;
      }
    }
  }
  std::uint64_t take() { return bench::take_at_last(*this); }

 private:
  bench::node none_;  // the head points to a node that has been taken
  alignas(64) std::atomic<bench::node*> head_ = &none_;
  alignas(64) std::atomic<bench::node*> tail_ = &none_;
};

}  // namespace

int main() { bench::queue_main<queue>("ms-lock-free", "Michael and Scott's, without a lock"); }
