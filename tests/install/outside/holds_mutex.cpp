// A fiber that suspends while it holds a mutex. pirn::held_mutexes reports it.
#include <mutex>
#include <pirn/fiber/runtime.hpp>

int main() {
  pirn::runtime({.workers = 1}).run([] {
    pirn::fiber other = pirn::spawn([] {});
    std::mutex held;
    const std::lock_guard guard(held);
    pirn::this_fiber::yield();
    other.join();
  });
}
