// A hundred thousand tasks wait at once, without a stack each: a scope ends after them.
#include <chrono>
#include <cstdio>

#include "pirn/fiber/co.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/spawned.hpp"

namespace {

namespace co = pirn::co;
using namespace std::chrono_literals;

pirn::task<> count_later(int& count) {
  if (co_await co::sleep_for(20ms)) {  // not stopped
    ++count;
  }
}

pirn::task<int> answer() {
  co_await co::yield();
  co_return 42;
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    int count = 0;
    {
      pirn::scope all;
      for (int i = 0; i < 100'000; ++i) {
        co::spawn(all, count_later(count));
      }
      all.join();
    }
    pirn::spawned<int> one = co::spawn(answer());
    std::printf("%d tasks have ended, and one says %d\n", count, one.join());
  });
}
