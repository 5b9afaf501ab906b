// pirn's low-lock queue, after Dolan, Muralidharan and Gregg.
#include "pirn/fiber/detail/low_lock_queue.hpp"

#include <cstddef>
#include <new>

#include "queue.hpp"

namespace {

class queue {
 public:
  void put(bench::node* node) {
    static_assert(sizeof node->next == sizeof(pirn::detail::low_lock_node) && offsetof(bench::node, next) == 0);
    nodes_.push(*new (&node->next) pirn::detail::low_lock_node);
  }
  bool try_take(std::uint64_t& number) {
    pirn::detail::low_lock_node* const taken = nodes_.try_pop();
    if (taken == nullptr) {
      return false;
    }
    number = reinterpret_cast<bench::node*>(taken)->number;
    return true;
  }
  std::uint64_t take() { return bench::take_at_last(*this); }

 private:
  pirn::detail::low_lock_queue nodes_;
};

}  // namespace

int main() { bench::queue_main<queue>("pirn-low-lock", "one compare-and-swap to put, a lock to take"); }
