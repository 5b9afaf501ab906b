// A coroutine_local of a copied coroutine, found without the yield object.
#include <deque>

#include "locals.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"

namespace {

std::deque<pirn::coroutine_local<std::uint64_t>> variables;
[[gnu::noinline]] void add(std::uint64_t which) { ++variables[which].get(); }

}  // namespace

int main() {
  for (std::uint64_t i = 0; i < bench::input("VARIABLES"); ++i) {
    variables.emplace_back();
  }
  pirn::copy_stack shared(std::size_t{1} << 18);
  pirn::copied_coroutine<void()>(shared, [](auto&) {
    bench::locals_row(
        "pirn-copy", add, [](std::uint64_t which) { return variables[which].get(); },
        "by the stack of a copied coroutine");
  }).resume();
}
