// pirn's fibers on one worker, with a wait queue each to wait in for the token.
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/wait_queue.hpp"
#include "threadring.hpp"

namespace {

/// Where one gets the token; any fiber of any worker could put it there.
class place {
 public:
  void put(std::int64_t token) {
    queue_.lock();
    token_ = token;
    full_ = true;
    queue_.notify_all_and_unlock();
  }
  std::int64_t take() {
    queue_.lock();
    if (full_) {
      queue_.unlock();
    } else {
      (void)queue_.wait({.stoppable = false, .what = "the token"});
    }
    full_ = false;
    return token_;
  }

 private:
  pirn::wait_queue queue_;
  bool full_ = false;  // for one who takes: nobody else puts before it has passed the token on
  std::int64_t token_ = 0;
};

void measure() {
  std::vector<place> ring(bench::input("PROCESSES"));
  place finished;
  std::vector<pirn::fiber> fibers;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    fibers.push_back(pirn::spawn([&mine = ring[i], &next = ring[(i + 1) % ring.size()], &finished, i] {
      bench::threadring_process([&mine] { return mine.take(); }, [&next](std::int64_t token) { next.put(token); },
                                [&finished, i] { finished.put(static_cast<std::int64_t>(i)); });
    }));
  }
  bench::threadring_row(
      "pirn",
      [&](std::int64_t token) {
        ring[0].put(token);
        return static_cast<std::uint64_t>(finished.take());
      },
      "fibers that wait in queues");
  ring[0].put(-1);
  for (pirn::fiber& fiber : fibers) {
    fiber.join();
  }
}

}  // namespace

int main() {
  bench::need_memory(bench::input("PROCESSES") * 5000);
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run(measure);
}
