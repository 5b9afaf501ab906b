// Swapped tasks of a stack_swap dispatcher, each with an image of the necessary size.
#include "memory.hpp"
#include "pirn/coro/expert/stack_swap.hpp"

namespace {

struct unit : pirn::swapped_task {
  unit* after = nullptr;
};

/// The policy: ready tasks first in, first out.
class ready_list {
 public:
  void make_ready(unit& who) noexcept {
    who.after = nullptr;
    *last_ = &who;
    last_ = &who.after;
  }
  pirn::swapped_task* next() noexcept {
    unit* const chosen = first_;
    if (chosen != nullptr) {
      first_ = chosen->after;
      if (first_ == nullptr) {
        last_ = &first_;
      }
    }
    return chosen;
  }
  void* allocate(std::size_t size) noexcept { return std::malloc(size); }
  void free(void* image, std::size_t /*size*/) noexcept { std::free(image); }

 private:
  unit* first_ = nullptr;
  unit** last_ = &first_;
};

ready_list ready;
pirn::stack_swap<ready_list> dispatcher(ready);
std::uint64_t turns = 0;

void wait(unit& /*self*/) {
  ++turns;
  bench::check(dispatcher.block() == pirn::swap_error::none, "there is memory for an image");
  ++turns;
}

}  // namespace

int main() {
  const std::uint64_t units = bench::memory::units();
  bench::need_memory(units * 250);
  const bench::memory::meter meter;
  std::vector<unit> all(units);
  for (unit& each : all) {
    each.assign<&wait>(each);
    ready.make_ready(each);
  }
  bench::check(dispatcher.run() == pirn::swap_error::none, "the dispatcher runs");
  meter.row("pirn-swap", "fresh", units, "images of the size that is needed");
  for (unit& each : all) {
    ready.make_ready(each);
  }
  bench::check(dispatcher.run() == pirn::swap_error::none, "the dispatcher runs");
  bench::check(turns == 2 * units, "every unit runs");
}
