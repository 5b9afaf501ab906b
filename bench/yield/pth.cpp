// GNU Pth.
#include "../harness.hpp"

#include <pth.h>

namespace {

std::uint64_t each = 0;
std::uint64_t yields = 0;

void* body(void* /*unused*/) {
  for (std::uint64_t k = 0; k < each; ++k) {
    pth_yield(nullptr);
    ++yields;
  }
  return nullptr;
}

void run(std::uint64_t n) {
  const std::uint64_t fibers = bench::input("FIBERS");
  each = n / fibers;
  yields = 0;
  std::vector<pth_t> all(fibers);
  for (pth_t& thread : all) {
    thread = pth_spawn(PTH_ATTR_DEFAULT, body, nullptr);
  }
  for (pth_t thread : all) {
    pth_join(thread, nullptr);
  }
  bench::check(yields == n, "every thread yields as often as asked");
}

}  // namespace

int main() {
  pth_init();
  bench::row("yield", "pth", bench::param("fibers", bench::input("FIBERS")), "ns",
             bench::ns_per_operation(run, bench::input("FIBERS")));
}
