// pirn's fibers on one worker, each with a place for the token that only this worker can use.
#include <cstdlib>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/local.hpp"
#include "threadring.hpp"

namespace {

/// Where one gets the token.
class place {
 public:
  void put(std::int64_t token) {
    token_ = token;
    full_.set();
  }
  std::int64_t take() {
    if (!full_.wait()) {
      std::abort();  // nobody asks a process to stop
    }
    return token_;
  }

 private:
  pirn::local::event full_{pirn::event_reset::automatic};
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
      "pirn-local",
      [&](std::int64_t token) {
        ring[0].put(token);
        return static_cast<std::uint64_t>(finished.take());
      },
      "fibers that wait for local events");
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
