// Two fibers take turns on one worker; a third sleeps meanwhile.
#include <chrono>
#include <cstdio>

#include "pirn/fiber/runtime.hpp"

int main() {
  using namespace std::chrono_literals;
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    const auto count = [](const char* who) {
      for (int i = 1; i <= 3; ++i) {
        std::printf("%s %d\n", who, i);
        pirn::this_fiber::yield();
      }
    };
    pirn::fiber sleeper = pirn::spawn([] {
      if (pirn::this_fiber::sleep_for(10ms)) {
        std::puts("slept");
      }
    });
    pirn::fiber tick = pirn::spawn([&] { count("tick"); });
    pirn::fiber tock = pirn::spawn([&] { count("tock"); });
    tick.join();
    tock.join();
    sleeper.join();
  });
}
