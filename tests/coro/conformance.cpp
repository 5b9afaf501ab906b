// The conformance program of coro: prints every check; exits with 1 if one failed, with 77 where the processor lacks an
// instruction set that it was compiled for.
#include "conformance.hpp"

#include <cstdio>

namespace conformance {
namespace {
int failures = 0;
int checks = 0;
}  // namespace

void expect(bool passed, const char* kind, const char* what) {
  ++checks;
  failures += passed ? 0 : 1;
  std::printf("%s %s%s%s\n", passed ? "ok    " : "FAILED", kind, *kind == 0 ? "" : ": ", what);
  std::fflush(stdout);  // a later check may crash
}
void expect(bool passed, const char* what) { expect(passed, "", what); }
}  // namespace conformance

int main() {
  using namespace conformance;
#if defined(__AVX512F__)
  if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq")) {
    std::puts("this processor lacks AVX-512");
    return 77;
  }
#endif
  check_coroutines();
  check_copied();
  check_pushed();
  check_unwinding();
  std::printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
