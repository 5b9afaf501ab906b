// As pirn.cpp, but each fiber has been deep and waits inside a coroutine.
#include "fibers.hpp"
#include "pirn/coro/coroutine.hpp"

int main() {
  trim_bench::run("pirn-coroutine", [](auto what) {
    pirn::coroutine<void()> body([&what](auto&) { what(); });
    body.resume();
  });
}
