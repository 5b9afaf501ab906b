// pirn's fibers on one worker, each with a place for the token that only this worker can use.
#include <cstdlib>

#include "pirn/sync/expert/local.hpp"
#include "pirn_fibers.hpp"

namespace {

/// The place where a process gets the token.
class place {
 public:
  void put(std::int64_t token) {
    token_ = token;
    full_.set();
  }
  std::int64_t take() {
    if (!full_.wait()) {
      std::abort();  // a process is never asked to stop
    }
    return token_;
  }

 private:
  pirn::local::event full_{pirn::event_reset::automatic};
  std::int64_t token_ = 0;
};

}  // namespace

int main() { bench::threadring_of_fibers<place>("pirn-local", "fibers that wait for local events"); }
