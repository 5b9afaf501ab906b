// The queue with two locks of Michael and Scott 1996, "Simple, fast, and practical non-blocking and blocking concurrent
// queue algorithms": producers and consumers do not contend.
#include <thread>

#include "queue.hpp"

namespace {

/// Spins, and lets others run when that takes long.
class alignas(64) spin {
 public:
  void lock() {
    for (int looks = 0; taken_.exchange(true, std::memory_order_acquire);) {
      while (taken_.load(std::memory_order_relaxed)) {
        if (++looks % 64 == 0) {
          std::this_thread::yield();
        }
        __builtin_ia32_pause();
      }
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_ = false;
};

class queue {
 public:
  void put(bench::node* node) {
    node->next.store(nullptr, std::memory_order_relaxed);
    const std::lock_guard lock(putting_);
    tail_->next.store(node, std::memory_order_release);
    tail_ = node;
  }
  bool try_take(std::uint64_t& number) {
    const std::lock_guard lock(taking_);
    bench::node* const next = head_->next.load(std::memory_order_acquire);
    if (next == nullptr) {
      return false;
    }
    number = next->number;
    head_ = next;
    return true;
  }
  std::uint64_t take() { return bench::take_at_last(*this); }

 private:
  bench::node none_;  // the head points to a node that has been taken
  spin taking_;
  bench::node* head_ = &none_;
  spin putting_;
  bench::node* tail_ = &none_;
};

}  // namespace

int main() { bench::queue_main<queue>("ms-two-lock", "Michael and Scott's, with two spinlocks"); }
