// As pirn-coroutine.cpp, but each fiber has been deep on its own stack too, and its coroutine shows that stack.
#include "fibers.hpp"
#include "pirn/coro/coroutine.hpp"

int main() {
  trim_bench::run("pirn-callers", [](auto what) {
    trim_bench::go_deep();
    pirn::coroutine<void()> body([&what](auto& yield) {
      yield.trim_callers();
      what();
    });
    body.resume();
  });
}
