// pirn's coroutines without a scheduler: send resumes a neighbour that waits at once, inside the call. The depth is at
// most N, since a coroutine that is busy sending only gets its message.
#include <memory>

#include "pirn/coro/coroutine.hpp"
#include "ring.hpp"

namespace {

using coroutine = pirn::coroutine<void()>;

/// A coroutine, its messages, and whether it waits for one.
struct place {
  coroutine routine;
  bench::ring::letterbox mail;
  bool waits = false;
};

class worker {
 public:
  worker(const bench::ring::shape& what, bench::ring::part mine)
      : what_(what), first_(mine.first), count_(mine.last - mine.first), places_(new place[count_]) {
    for (std::uint64_t i = 0; i < count_; ++i) {
      place& here = places_[i];
      here.routine = coroutine([this, &here](coroutine::yield& yield) PIRN_NONE { rounds(here, yield); });
    }
  }

  std::uint64_t run() {
    for (std::uint64_t i = 0; i < count_; ++i) {
      places_[i].routine.resume();
    }
    for (std::uint64_t i = 0; i < count_; ++i) {
      bench::check(places_[i].routine.done(), "every coroutine ends");
    }
    return hops_;
  }

 private:
  __attribute__((always_inline)) void rounds(place& mine, coroutine::yield& yield) {
    bench::ring::with_extra(what_.extra, [&] {
      const std::uint64_t index = first_ + static_cast<std::uint64_t>(&mine - places_.get());
      place& right = places_[what_.right_of(index) - first_];
      hops_ += bench::ring::make_rounds(
          what_, index,
          [&right, sent = std::uint64_t{0}](std::uint8_t message) __attribute__((always_inline)) mutable {
            right.mail.put(sent++, message);
            if (right.waits) {
              right.waits = false;
              right.routine.resume();
            }
          },
          [&mine, &yield, taken = std::uint64_t{0}]() __attribute__((always_inline)) mutable {
            if (mine.mail.empty(taken)) {
              mine.waits = true;
              yield();
            }
            return mine.mail.take(taken++);
          });
    });
  }

  const bench::ring::shape& what_;
  std::uint64_t first_;
  std::uint64_t count_;
  std::uint64_t hops_ = 0;
  std::unique_ptr<place[]> places_;
};

}  // namespace

int main() { bench::ring::run<worker>("pirn-inline", 5000, "coroutines, resumed inline"); }
