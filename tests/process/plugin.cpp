// Runs in a fiber of the program that has loaded it, and finds its worker, its locks and its exceptions.
#include <mutex>
#include <stdexcept>
#include <string>

#include "pirn/coro/generator.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/mutex.hpp"

extern "C" int work(pirn::mutex* lock, std::string* order) {
  for (int i = 0; i < 3; ++i) {
    const std::lock_guard guard(*lock);
    order->append("plugin ");
    pirn::this_fiber::yield();
  }
  int sum = 0;
  pirn::generator<int> numbers = [](auto& yield) {
    for (int i = 1;; ++i) {
      yield(i);
    }
  };
  for (const int n : numbers) {
    sum += n;
    if (n == 4) {
      break;  // the body is unwound here
    }
  }
  try {
    pirn::spawn([] { throw std::runtime_error("from a fiber"); }).join();
  } catch (const std::runtime_error& e) {
    order->append(e.what());
  }
  return sum;
}
