// pirn's fibers on one worker, each on a stack of its own, with a wait queue each to wait in for the message.
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/wait_queue.hpp"
#include "ring.hpp"

namespace {

struct place {
  pirn::wait_queue waiting;
  bench::ring::mailbox mail;  // of the one worker
};

void measure(const bench::ring::shape& what) {
  std::vector<place> places(what.coroutines);
  std::vector<pirn::fiber> fibers;
  fibers.reserve(what.coroutines);
  std::uint64_t hops = 0;
  for (std::uint64_t i = 0; i < what.coroutines; ++i) {
    fibers.push_back(pirn::spawn([&, i] {
      bench::ring::with_extra(what.extra, [&, i] {
        place& right = places[what.right_of(i)];
        hops += bench::ring::make_rounds(
            what, i,
            [&right](std::uint8_t message) {
              right.mail.put(message);
              right.waiting.notify_one();
            },
            [&mine = places[i]] {
              if (mine.mail.empty()) {
                mine.waiting.lock();
                (void)mine.waiting.wait({.stoppable = false, .what = "a message"});
              }
              return mine.mail.take();
            });
      });
    }));
  }
  const double start = bench::now_ns();
  for (pirn::fiber& fiber : fibers) {
    fiber.join();
  }
  bench::ring::row("pirn", what, bench::now_ns() - start, hops, "fibers, each on a stack of its own");
}

}  // namespace

int main() {
  const bench::ring::shape what = bench::ring::checked_shape(5000);
  if (what.workers != 1) {
    bench::skip("one worker only");
  }
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run([&] { measure(what); });
}
