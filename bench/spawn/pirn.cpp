// pirn's fibers on one worker, of the one or two that the runtime has.
#include "pirn/fiber/runtime.hpp"
#include "spawn.hpp"

int main() {
  pirn::runtime runtime(
      {.workers = static_cast<unsigned>(bench::input("WORKERS")), .stack_size = bench::input("STACK")});
  runtime.run([] {
    std::uint64_t ran = 0;
    bench::spawn_rows(
        "pirn", ran, [&ran] { return pirn::spawn([&ran] { ++ran; }); }, [](pirn::fiber& fiber) { fiber.join(); });
  });
}
