// pirn's fibers, each with a place for messages that only the fibers of its worker can use.
#include <cstdlib>

#include "pirn/sync/local.hpp"
#include "pirn_fibers.hpp"

namespace {

class place {
 public:
  void put(std::uint8_t message) {
    mail_.put(message);
    filled_.set();
  }
  std::uint8_t take() {
    while (mail_.empty()) {
      if (!filled_.wait()) {
        std::abort();  // nobody asks a coroutine to stop
      }
    }
    return mail_.take();
  }

 private:
  pirn::local::event filled_{pirn::event_reset::automatic};
  bench::ring::mailbox mail_;
};

}  // namespace

int main() { bench::ring::of_fibers<place>("pirn-local", "fibers that wait for local events"); }
