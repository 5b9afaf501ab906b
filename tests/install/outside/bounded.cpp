// Fibers of an installed pirn on stacks that just fit: a bound of the body is computed when this is compiled, from what
// pirn's own functions need, which the install tells.
#include <cstdio>

#include <pirn/fiber/expert/bounded.hpp>
#include <pirn/fiber/runtime.hpp>
#include <pirn/sync/event.hpp>

int main() {
  pirn::runtime runtime(pirn::runtime_options{.workers = 1});
  int woken = 0;
  runtime
      .spawn([&woken] {
        pirn::event gate;
        pirn::fiber small = pirn::spawn_bounded([&gate, &woken]() noexcept {
          static_cast<void>(gate.wait());
          ++woken;
        });
        gate.set();
        small.join();
      })
      .join();
  std::printf("%d\n", woken);
  return woken == 1 ? 0 : 1;
}
