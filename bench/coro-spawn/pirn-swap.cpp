// A swapped task that never blocks: it is a call on the stack of its dispatcher.
#include "../harness.hpp"
#include "pirn/coro/expert/stack_swap.hpp"

namespace {

std::uint64_t ran = 0;
void body(std::uint64_t& count) { ++count; }

/// Begins one task again and again.
class again {
 public:
  std::uint64_t left = 0;
  pirn::swapped_task* next() noexcept {
    if (left == 0) {
      return nullptr;
    }
    --left;
    task_.assign<&body>(ran);
    return &task_;
  }
  void* allocate(std::size_t /*size*/) noexcept { return nullptr; }
  void free(void* /*image*/, std::size_t /*size*/) noexcept {}

 private:
  pirn::swapped_task task_;
};

}  // namespace

int main() {
  again policy;
  pirn::stack_swap dispatcher(policy);
  const double ns = bench::ns_per_operation([&](std::uint64_t n) {
    const std::uint64_t before = ran;
    policy.left = n;
    bench::check(dispatcher.run() == pirn::swap_error::none && ran - before == n, "every task runs once");
  });
  bench::row("coro-spawn", "pirn-swap", "{}", "ns", ns, "a swapped task that never blocks");
}
