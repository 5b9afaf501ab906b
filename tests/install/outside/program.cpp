// A program that uses fibers, a channel and a generator. The tests compile it with all warnings as errors.
#include <pirn/coro/generator.hpp>
#include <pirn/fiber/runtime.hpp>
#include <pirn/sync/channel.hpp>

#include <cstdio>

int main() {
  pirn::channel<int> numbers(2);
  pirn::runtime runtime(pirn::runtime_options{.workers = 2});
  const int sum = runtime.run([&] {
    pirn::fiber producer = pirn::spawn([&] {
      pirn::generator<int> squares([](auto& yield) {
        for (int n = 1; n <= 4; ++n) {
          yield(n * n);
        }
      });
      for (const int square : squares) {
        if (!numbers.send(square)) {
          return;
        }
      }
      numbers.close();
    });
    int received = 0;
    for (const int square : numbers) {
      received += square;
    }
    producer.join();
    return received;
  });
  std::printf("%d\n", sum);
  return sum == 30 ? 0 : 1;
}
