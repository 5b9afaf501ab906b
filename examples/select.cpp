// A fiber selects from two channels, an event and a timeout; the main thread sends on the channel that is ready first.
#include <chrono>
#include <cstdio>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/select.hpp"

int main() {
  using namespace std::chrono_literals;
  pirn::channel<int> orders;  // no buffer: a send returns after its value has been received
  pirn::channel<std::string> letters(8);
  pirn::event closing_time;
  pirn::runtime runtime({.workers = 2});

  pirn::fiber worker = runtime.spawn([&] {
    int served = 0;
    for (;;) {
      int order = 0;
      std::string letter;
      const auto [index, outcome] = select(receive(orders, order), receive(letters, letter), wait(closing_time),
                                           pirn::until(pirn::clock::now() + 10s));
      if (!outcome) {  // a channel was closed, or this fiber was asked to stop
        std::printf("case %zu: %s\n", index, to_string(outcome.error()));
        return;
      }
      switch (index) {
        case 0:
        case 1:
          ++served;
          break;
        case 2:
          std::printf("served %d\n", served);
          return;
        default:
          std::puts("nothing for ten seconds");
      }
    }
  });

  for (int i = 0; i < 100; ++i) {
    std::string letter = "no. " + std::to_string(i);
    // Sends on the channel from which `worker` receives first.
    if (!select(send(orders, i), send(letters, std::move(letter))).outcome) {
      return 1;
    }
  }
  while (letters.size() != 0) {
    pirn::this_fiber::yield();
  }
  closing_time.set();
  worker.join();
}
