// A scope's children end before its block does: results by value, the first failure stops the rest, deadlines nest.
#include "pirn/fiber/scope.hpp"

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;
namespace this_fiber = pirn::this_fiber;

namespace {

std::string fetch(const std::string& name, pirn::clock::duration takes) {
  if (const auto slept = this_fiber::sleep_for(takes); !slept) {
    return name + ": " + to_string(slept.error());
  }
  return name + ": here";
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1});
  runtime.run([] {
    pirn::scope s({.deadline = pirn::clock::now() + 10s});

    auto [page, length] = s.all([] { return fetch("page", 2ms); }, [] { return 42; });
    std::printf("%s, %d\n", page.c_str(), length);

    // The loser of the race is stopped, and has ended before `race` returns.
    const std::string first = s.race([] { return fetch("near", 1ms); }, [] { return fetch("far", 1h); });
    std::printf("%s\n", first.c_str());

    const std::vector<int> numbers = {1, 2, 3, 4, 5};
    if (const auto squares = s.map(numbers, 2, [](int n) { return n * n; })) {
      std::printf("%d ... %d\n", squares->front(), squares->back());
    }
    {
      pirn::scope hurried({.deadline = pirn::clock::now() + 1ms});
      std::printf("%s\n", fetch("slow", 1h).c_str());
    }
    try {
      s.spawn([] { std::printf("%s\n", fetch("sibling", 1h).c_str()); });
      s.spawn([] { throw std::runtime_error("a child failed"); });
      s.join();
    } catch (const std::runtime_error& e) {
      std::printf("%s\n", e.what());
    }
  });
}
