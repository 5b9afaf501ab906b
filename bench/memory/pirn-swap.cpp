// Swapped tasks of a stack_swap dispatcher, each with an image of the necessary size. `deep` ones have blocked once 8
// KiB below, and hold that; after four blocks that need less their buffers have shrunk, as `trimmed` shows.
#include <cstring>

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

constexpr int shallow_blocks = 5;  // the first finds the large buffer, four find it too large

void block() {
  ++turns;
  bench::check(dispatcher.block() == pirn::swap_error::none, "there is memory for an image");
}
__attribute__((noinline)) void block_deep() {
  char bytes[8192];
  std::memset(bytes, 1, sizeof bytes);
  asm volatile("" : : "r"(bytes) : "memory");
  block();
  asm volatile("" : : "r"(bytes) : "memory");
}
void wait(unit& /*self*/) {
  block();
  block_deep();
  for (int i = 0; i < shallow_blocks; ++i) {
    block();
  }
}

}  // namespace

int main() {
  const std::uint64_t units = bench::memory::units();
  bench::need_memory(units * (250 + 8400));
  const bench::memory::meter meter;
  std::vector<unit> all(units);
  for (unit& each : all) {
    each.assign<&wait>(each);
  }
  const auto run_all = [&all] {
    for (unit& each : all) {
      ready.make_ready(each);
    }
    bench::check(dispatcher.run() == pirn::swap_error::none, "the dispatcher runs");
  };
  run_all();
  meter.row("pirn-swap", "fresh", units, "images of the size that is needed");
  run_all();
  run_all();
  meter.row("pirn-swap", "deep", units);
  for (int i = 1; i < shallow_blocks; ++i) {
    run_all();
  }
  meter.row("pirn-swap", "trimmed", units, "after four blocks that need less");
  run_all();
  bench::check(turns == units * (2 + shallow_blocks), "every unit runs");
}
