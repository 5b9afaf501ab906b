// An exploration of two fibers at one mutex, including the runtime: scheduling points and whole executions per second.
#include <mutex>
#include <string>

#include "../harness.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/sim/explore.hpp"
#include "pirn/sync/mutex.hpp"

namespace {

void two_fibers() {
  pirn::runtime fibers({.workers = 2});
  pirn::mutex lock;
  int entered = 0;
  const auto go_in = [&] {
    const std::lock_guard held(lock);
    ++entered;
  };
  pirn::fiber first = fibers.spawn(go_in, {.worker = 0});
  pirn::fiber second = fibers.spawn(go_in, {.worker = 1});
  first.join();
  second.join();
  pirn::sim::check(entered == 2);
}

void measure(bool stale_reads) {
  constexpr std::uint64_t executions = 20'000;
  pirn::sim::result found;
  double ns = 0;
  for (int i = 0; i < 3; ++i) {  // the first one warms up
    const double start = bench::now_ns();
    found = pirn::sim::explore(two_fibers, {.stale_reads = stale_reads, .executions = executions});
    ns = bench::now_ns() - start;
  }
  bench::check(static_cast<bool>(found), "no execution fails");
  bench::check(found.executions == executions, "all executions are made");
  for (const auto& [what, count] : {std::pair("steps", found.steps), std::pair("executions", found.executions)}) {
    bench::row("explore", "pirn",
               std::string(R"({"of":")") + what + R"(","memory":")" + (stale_reads ? "stale" : "strict") + "\"}",
               (std::string(what) + "/s").c_str(), static_cast<double>(count) / ns * 1e9);
  }
}

}  // namespace

int main() {
  measure(false);
  measure(true);
}
