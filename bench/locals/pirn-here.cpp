// A coroutine_local, found without the yield object: by the stack of the caller.
#include <deque>

#include "locals.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"

namespace {

std::deque<pirn::coroutine_local<std::uint64_t>> variables;
[[gnu::noinline]] void add(std::uint64_t which) { ++variables[which].get(); }

}  // namespace

int main() {
  for (std::uint64_t i = 0; i < bench::input("VARIABLES"); ++i) {
    variables.emplace_back();
  }
  pirn::coroutine<void()>([](auto&) {
    bench::locals_row(
        "pirn-here", add, [](std::uint64_t which) { return variables[which].get(); }, "by the stack of a coroutine");
  }).resume();
}
