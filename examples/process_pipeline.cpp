// Sorts words by two programs in a row, as `tr a-z A-Z | sort` of a shell, and kills both after ten seconds.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/process.hpp"

int main() {
  return pirn::runtime({.workers = 1}).run([] {
    using source = pirn::process::source;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const std::array<std::string, 3> upper = {"tr", "a-z", "A-Z"};
    const std::array<std::string, 1> sort = {"sort"};
    auto first = pirn::process::spawn(upper, {.input = source::pipe(), .output = source::pipe()}, deadline);
    if (!first) {
      std::fprintf(stderr, "process_pipeline: %s\n", first.error().message().c_str());
      return EXIT_FAILURE;
    }
    auto last =
        pirn::process::spawn(sort, {.input = source::of(first->output.native()), .output = source::pipe()}, deadline);
    if (!last) {
      std::fprintf(stderr, "process_pipeline: %s\n", last.error().message().c_str());
      return EXIT_FAILURE;
    }
    first->output.close();  // of the two programs alone from now on
    // A fiber feeds the first program while this one reads from the last: no full pipe stops them all.
    pirn::fiber feeding = pirn::spawn([&] {
      static_cast<void>(first->input.write("pear\napple\nfig\n", deadline));
      first->input.close();
    });
    char text[4096];
    for (;;) {
      const auto got = last->output.read(text, sizeof text, deadline);
      if (!got || *got == 0) {
        break;
      }
      std::fwrite(text, 1, *got, stdout);
    }
    feeding.join();
    const auto ended = first->wait_or_kill(deadline);
    const auto sorted = last->wait_or_kill(deadline);
    return ended && ended->success() && sorted && sorted->success() ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
