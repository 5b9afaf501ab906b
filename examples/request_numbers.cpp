// Fiber-local variables: each fiber has its own request number and count of steps, which functions below it find
// without a parameter.
#include <cstdio>
#include <string>

#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/runtime.hpp"

namespace {

struct request_state {
  request_state() = default;
  request_state(const request_state&) = delete;
  request_state& operator=(const request_state&) = delete;
  ~request_state() {
    std::printf("request %d took %d steps\n", number, steps);
  }  // runs in the fiber, when its body has ended

  int number = 0;
  int steps = 0;
};

pirn::fiber_local<request_state> current;
pirn::fiber_local<std::string> user;

void step(const char* what) {
  const std::string* const who = user.find();  // null if this fiber has none
  std::printf("request %d, %s: %s\n", current->number, who == nullptr ? "nobody" : who->c_str(), what);
  ++current->steps;
  pirn::this_fiber::yield();  // the other fiber counts its own steps
}

void answer(int number) {
  current->number = number;  // created by the first use
  step("read");
  if (number == 2) {
    user.emplace("ada");
  }
  step("answered");
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    pirn::fiber first = pirn::spawn([] { answer(1); });
    pirn::fiber second = pirn::spawn([] { answer(2); });
    first.join();
    second.join();
  });
}
