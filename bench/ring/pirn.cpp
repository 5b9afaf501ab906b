// pirn's fibers, each with a wait queue to wait in for messages.
#include "pirn/fiber/wait_queue.hpp"
#include "pirn_fibers.hpp"

namespace {

class place {
 public:
  void put(std::uint64_t sent, std::uint8_t message) {
    mail_.put(sent, message);
    waiting_.notify_one();
  }
  std::uint8_t take(std::uint64_t taken) {
    if (mail_.empty(taken)) {
      static constexpr pirn::wait_options for_message{.stoppable = false, .what = "a message"};
      waiting_.lock();
      (void)waiting_.wait(for_message);
    }
    return mail_.take(taken);
  }

 private:
  pirn::wait_queue waiting_;
  bench::ring::letterbox mail_;  // of the one worker
};

}  // namespace

int main() { bench::ring::of_fibers<place>("pirn", "fibers, each on a stack of its own"); }
