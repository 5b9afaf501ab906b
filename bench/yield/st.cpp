// State Threads: a sleep of no time, which is how this version yields.
#include "../harness.hpp"

#include <st.h>

namespace {

std::uint64_t each = 0;
std::uint64_t yields = 0;

void* body(void* /*unused*/) {
  for (std::uint64_t k = 0; k < each; ++k) {
    st_usleep(0);
    ++yields;
  }
  return nullptr;
}

void run(std::uint64_t n) {
  const std::uint64_t fibers = bench::input("FIBERS");
  each = n / fibers;
  yields = 0;
  std::vector<st_thread_t> all(fibers);
  for (st_thread_t& thread : all) {
    thread = st_thread_create(body, nullptr, 1, static_cast<int>(bench::input("STACK")));
  }
  for (st_thread_t thread : all) {
    st_thread_join(thread, nullptr);
  }
  bench::check(yields == n, "every thread yields as often as asked");
}

}  // namespace

int main() {
  st_init();
  bench::row("yield", "st", bench::param("fibers", bench::input("FIBERS")), "ns",
             bench::ns_per_operation(run, bench::input("FIBERS")));
}
