// A task, which is a C++20 coroutine, and a fiber share a channel; another fiber waits for the task's result.
#include <chrono>
#include <cstdio>

#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/co.hpp"

namespace {

namespace co = pirn::co;

pirn::task<int> sum_of(pirn::channel<int>& numbers) {
  int sum = 0;
  while (const auto number = co_await co::receive(numbers)) {  // until the channel is closed
    sum += *number;
  }
  co_return sum;
}

pirn::task<int> patiently(pirn::channel<int>& numbers) {
  using namespace std::chrono_literals;
  if (!co_await co::sleep_for(1ms)) {
    co_return 0;  // the fiber that awaits this task was stopped
  }
  co_return co_await sum_of(numbers);
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    pirn::channel<int> numbers(2);
    pirn::fiber giver = pirn::spawn([&numbers] {
      for (int i = 1; i <= 10; ++i) {
        if (!numbers.send(i)) {
          break;
        }
      }
      numbers.close();
    });
    std::printf("the sum is %d\n", pirn::await(patiently(numbers)));
    giver.join();
  });
}
