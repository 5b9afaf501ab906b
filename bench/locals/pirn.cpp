// A coroutine_local, found with the yield object.
#include <deque>

#include "locals.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"

namespace {

using yield_object = pirn::coroutine<void()>::yield;
std::deque<pirn::coroutine_local<std::uint64_t>> variables;
[[gnu::noinline]] void add(yield_object& yield, std::uint64_t which) { ++variables[which].get(yield); }

}  // namespace

int main() {
  for (std::uint64_t i = 0; i < bench::input("VARIABLES"); ++i) {
    variables.emplace_back();
  }
  pirn::coroutine<void()>([](yield_object& yield) {
    bench::locals_row(
        "pirn", [&yield](std::uint64_t which) { add(yield, which); },
        [&yield](std::uint64_t which) { return variables[which].get(yield); }, "with the yield object");
  }).resume();
}
