// Boost.Fiber: fibers with buffered channels to their right neighbours.
#include "ring.hpp"

#include <boost/fiber/all.hpp>
#include <boost/fiber/fixedsize_stack.hpp>
#include <memory>

namespace {

using channel = boost::fibers::buffered_channel<std::uint8_t>;

class worker {
 public:
  worker(const bench::ring::shape& what, bench::ring::part mine) : first_(mine.first), last_(mine.last) {
    for (std::uint64_t i = first_; i < last_; ++i) {
      channels_.push_back(std::make_unique<channel>(2 * bench::ring::mailbox::capacity));
    }
    boost::fibers::fixedsize_stack stacks(bench::input("STACK"));
    for (std::uint64_t i = first_; i < last_; ++i) {
      fibers_.emplace_back(std::allocator_arg, stacks, [this, i, &what] {
        bench::ring::with_extra(what.extra, [this, i, &what] {
          channel& left = *channels_[i - first_];
          channel& right = *channels_[what.right_of(i) - first_];
          hops_ += bench::ring::make_rounds(
              what, i, [&right](std::uint8_t message) { right.push(message); }, [&left] { return left.value_pop(); });
        });
      });
    }
  }

  std::uint64_t run() {
    for (boost::fibers::fiber& each : fibers_) {
      each.join();
    }
    return hops_;
  }

 private:
  std::uint64_t first_;
  std::uint64_t last_;
  std::vector<std::unique_ptr<channel>> channels_;
  std::vector<boost::fibers::fiber> fibers_;
  std::uint64_t hops_ = 0;
};

}  // namespace

int main() { bench::ring::run<worker>("boost-fiber", 10000, "buffered channels, stacks of 64 KiB"); }
