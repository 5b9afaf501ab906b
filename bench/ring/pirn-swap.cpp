// Swapped tasks of a stack_swap dispatcher, which run on the worker's own stack. As in the source, the scheduler is a
// list of the tasks that were sent a message, last in, first out. The image of a task lies beside it as long as it
// fits.
#include "pirn/coro/expert/stack_swap.hpp"

#include <memory>
#include <new>

#include "ring.hpp"

namespace {

/// A swapped task with the data to run it, and its image in the next cache lines.
struct alignas(64) place : pirn::swapped_task {
  place() : pirn::swapped_task(image, sizeof image) {}
  place* after = nullptr;  // in the list of ready tasks; its own address while it waits
  bench::ring::letterbox mail;
  alignas(64) char image[128];
};

/// The policy: the last task that was made ready runs first.
class ready_list {
 public:
  void make_ready(place& who) noexcept {
    who.after = top_;
    top_ = &who;
  }
  pirn::swapped_task* next() noexcept {
    place* const chosen = top_;
    if (chosen != nullptr) [[likely]] {
      top_ = chosen->after;
    }
    return chosen;
  }
  void* allocate(std::size_t size) noexcept { return ::operator new(size, std::nothrow); }
  void free(void* image, std::size_t /*size*/) noexcept { ::operator delete(image); }

 private:
  place* top_ = nullptr;
};

class worker {
 public:
  worker(const bench::ring::shape& what, bench::ring::part mine)
      : what_(what), first_(mine.first), places_(new place[mine.last - mine.first]) {
    here = this;
    for (std::uint64_t i = mine.last - mine.first; i-- > 0;) {
      places_[i].assign<&rounds>(places_[i]);
      ready_.make_ready(places_[i]);
    }
  }

  std::uint64_t run() {
    bench::check(dispatcher_.run() == pirn::swap_error::none, "the dispatcher runs");
    return hops_;
  }

 private:
  void send(place& to, std::uint64_t sent, std::uint8_t message) {
    to.mail.put(sent, message);
    if (to.after == &to) {
      ready_.make_ready(to);
    }
  }
  __attribute__((always_inline)) std::uint8_t receive(place& mine, std::uint64_t taken) {
    if (mine.mail.empty(taken)) {
      mine.after = &mine;
      bench::check(dispatcher_.block() == pirn::swap_error::none, "there is memory for an image");
    }
    return mine.mail.take(taken);
  }
  static void rounds(place& mine) {
    worker& all = *here;
    bench::ring::with_extra(all.what_.extra, [&] {
      const std::uint64_t index = all.first_ + static_cast<std::uint64_t>(&mine - all.places_.get());
      place& right = all.places_[all.what_.right_of(index) - all.first_];
      all.hops_ += bench::ring::make_rounds(
          all.what_, index,
          [&, sent = std::uint64_t{0}](std::uint8_t message)
              __attribute__((always_inline)) mutable { all.send(right, sent++, message); },
          [&, taken = std::uint64_t{0}]()
              __attribute__((always_inline)) mutable { return all.receive(mine, taken++); });
    });
  }

  static inline thread_local worker* here = nullptr;
  const bench::ring::shape& what_;
  std::uint64_t first_;
  std::uint64_t hops_ = 0;
  std::unique_ptr<place[]> places_;
  ready_list ready_;
  pirn::stack_swap<ready_list> dispatcher_{ready_};
};

}  // namespace

int main() { bench::ring::run<worker>("pirn-swap", 320); }
