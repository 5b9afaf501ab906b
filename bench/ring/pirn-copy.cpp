// Coroutines that share one stack for each worker, on a scheduler of a few lines: the last receiver of a message runs
// first.
#include <memory>

#include "pirn/coro/expert/copied_coroutine.hpp"
#include "ring.hpp"

namespace {

using coroutine = pirn::copied_coroutine<void()>;

/// A coroutine and the data to run it, in one cache line.
struct alignas(64) place {
  coroutine routine;
  bench::ring::letterbox mail;
  place* after = nullptr;  // in the list of ready coroutines; its own address while it waits
};
static_assert(sizeof(place) == 64);

class worker {
 public:
  worker(const bench::ring::shape& what, bench::ring::part mine)
      : what_(what), first_(mine.first), places_(new place[mine.last - mine.first]) {
    for (std::uint64_t i = mine.last - mine.first; i-- > 0;) {
      place& here = places_[i];
      here.routine = coroutine(stack_, [this, &here](coroutine::yield& yield) PIRN_NONE { rounds(here, yield); });
      make_ready(here);
    }
  }

  std::uint64_t run() {
    while (place* const chosen = ready_) {
      ready_ = chosen->after;
      chosen->routine.resume();
    }
    return hops_;
  }

 private:
  void make_ready(place& who) {
    who.after = ready_;
    ready_ = &who;
  }
  __attribute__((always_inline)) void rounds(place& mine, coroutine::yield& yield) {
    bench::ring::with_extra(what_.extra, [&] {
      const std::uint64_t index = first_ + static_cast<std::uint64_t>(&mine - places_.get());
      place& right = places_[what_.right_of(index) - first_];
      hops_ += bench::ring::make_rounds(
          what_, index,
          [this, &right, sent = std::uint64_t{0}](std::uint8_t message) __attribute__((always_inline)) mutable {
            right.mail.put(sent++, message);
            if (right.after == &right) {
              make_ready(right);
            }
          },
          [&mine, &yield, taken = std::uint64_t{0}]() __attribute__((always_inline)) mutable {
            if (mine.mail.empty(taken)) {
              mine.after = &mine;
              yield();
            }
            return mine.mail.take(taken++);
          });
    });
  }

  const bench::ring::shape& what_;
  std::uint64_t first_;
  std::uint64_t hops_ = 0;
  place* ready_ = nullptr;
  pirn::copy_stack stack_{std::size_t{1} << 16};
  std::unique_ptr<place[]> places_;
};

}  // namespace

int main() { bench::ring::run<worker>("pirn-copy", 250, "a shared stack for each worker"); }
