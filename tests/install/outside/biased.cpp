// Two fibers and the main thread share a biased_mutex, whose library a program names.
#include <cstdio>
#include <mutex>

#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"

int main() {
  pirn::biased_mutex lock;
  int locked = 0;
  pirn::runtime runtime({.workers = 1});
  runtime.run([&] {
    const auto count = [&] {
      const std::lock_guard guard(lock);
      pirn::this_fiber::yield();
      ++locked;
    };
    pirn::fiber other = pirn::spawn(count);
    count();
    other.join();
  });
  const std::lock_guard guard(lock);
  std::printf("locked %d times\n", locked);
  return locked == 2 ? 0 : 1;
}
