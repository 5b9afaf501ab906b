// Variables of a thread by the compiler: no look-up at all.
#include "locals.hpp"

namespace {

constexpr std::uint64_t most = 64;
thread_local std::uint64_t variables[most];
[[gnu::noinline]] void add(std::uint64_t which) { ++variables[which]; }

}  // namespace

int main() {
  bench::check(bench::input("VARIABLES") <= most, "there are as many");
  bench::locals_row("thread-local", add, [](std::uint64_t which) { return variables[which]; }, "thread_local");
}
