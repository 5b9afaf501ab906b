// Coroutines made of continuations, on a scheduler of a few lines: the last receiver of a message runs first. One that
// waits switches straight to the next ready one. What travels in the switch is the place of the side that it leaves.
#include <cstddef>
#include <memory>

#include "pirn/context/continuation.hpp"
#include "ring.hpp"

namespace {

struct place;
using continuation = pirn::continuation<place*>;

/// A coroutine and the data to run it, in one cache line.
struct alignas(64) place {
  continuation routine;
  bench::ring::letterbox mail;
  place* after = nullptr;  // in the list of ready coroutines; its own address while it waits
};
static_assert(sizeof(place) == 64);

/// The stack of a coroutine, in the bench's memory.
struct memory {
  std::byte* begin;
  std::size_t size;
  [[nodiscard]] void* limit() const { return begin; }
  [[nodiscard]] void* top() const { return begin + size; }
};
/// An odd multiple of 256 bytes: where the frames begin differs from stack to stack, and so do their sets in a cache.
constexpr std::size_t stack_size = 1280;

class worker {
 public:
  worker(const bench::ring::shape& what, bench::ring::part mine)
      : what_(what),
        first_(mine.first),
        places_(new place[mine.last - mine.first]),
        stacks_(new std::byte[(mine.last - mine.first) * (stack_size + what.extra)]) {
    const std::size_t size = stack_size + what.extra;
    for (std::uint64_t i = mine.last - mine.first; i-- > 0;) {
      place& here = places_[i];
      here.routine = continuation(memory{stacks_.get() + i * size, size},
                                  [this, &here](continuation back, place* from) -> continuation::finished {
                                    from->routine = std::move(back);
                                    rounds(here);
                                    return std::move(caller_.routine).finish(&here);
                                  });
      make_ready(here);
    }
  }

  std::uint64_t run() {
    while (ready_ != nullptr) {  // each turn ends with the end of one of them
      switch_from(caller_);
    }
    return hops_;
  }

 private:
  void make_ready(place& who) {
    who.after = ready_;
    ready_ = &who;
  }
  __attribute__((always_inline)) void switch_from(place& mine) {
    place& next = *ready_;  // there is one: a message of each cycle is under way
    ready_ = next.after;
    auto [left, from] = std::move(next.routine).resume(&mine);
    from->routine = std::move(left);  // empty if that one has ended
  }
  __attribute__((always_inline)) void rounds(place& mine) {
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
          [this, &mine, taken = std::uint64_t{0}]() __attribute__((always_inline)) mutable {
            if (mine.mail.empty(taken)) {
              mine.after = &mine;
              switch_from(mine);
            }
            return mine.mail.take(taken++);
          });
    });
  }

  const bench::ring::shape& what_;
  std::uint64_t first_;
  std::uint64_t hops_ = 0;
  place caller_;
  place* ready_ = nullptr;
  std::unique_ptr<place[]> places_;
  std::unique_ptr<std::byte[]> stacks_;
};

}  // namespace

int main() { bench::ring::run<worker>("pirn-continuation", 1400, "continuations, a scheduler of a few lines"); }
