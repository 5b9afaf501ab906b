// The conformance program of the context layer: prints every check; exits with 1 if one failed, with 77 where the
// processor lacks an instruction set that it was compiled for.
//
//   conformance                      all checks
//   conformance --profile SECONDS    only the profiling signal, for that long
//   conformance --stop               runs into conformance_stop inside contexts, for a debugger
#include "conformance.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(PIRN_VALGRIND)
#include <valgrind/valgrind.h>
#endif

namespace conformance {
namespace {
int failures = 0;
int checks = 0;
}  // namespace

void expect(bool passed, const char* shape, const char* what) {
  ++checks;
  failures += passed ? 0 : 1;
  std::printf("%s %s%s%s\n", passed ? "ok    " : "FAILED", shape == nullptr ? "" : shape, shape == nullptr ? "" : ": ",
              what);
  std::fflush(stdout);  // a later check may crash
}

bool under_valgrind() {
#if defined(PIRN_VALGRIND)
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}
}  // namespace conformance

int main(int count, char** arguments) {
  using namespace conformance;
#if defined(__AVX512F__)
  if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq")) {
    std::puts("this processor lacks AVX-512");
    return 77;
  }
#endif
  if (count == 3 && std::strcmp(arguments[1], "--profile") == 0) {
    check_profiling(std::atof(arguments[2]));
  } else if (count == 2 && std::strcmp(arguments[1], "--stop") == 0) {
    stop_for_debugger();
  } else if (count == 1) {
    check_registers();
    check_frames();
    check_exceptions();
    check_pushed();
    check_unwinding();
    check_single_step();
    check_profiling(0.1);
  } else {
    std::fputs("usage: conformance [--profile SECONDS | --stop]\n", stderr);
    return 2;
  }
  std::printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
