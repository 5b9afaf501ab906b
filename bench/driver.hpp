// What the drivers share, which are the other side of servers: bare loops without any library.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "address.hpp"
#include "request_log.hpp"

namespace bench {

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "driver: %s: %s\n", what, std::strerror(errno));
  std::exit(EXIT_FAILURE);
}
[[noreturn]] inline void fail_check(const char* what) {
  std::fprintf(stderr, "check failed: %s\n", what);
  std::exit(EXIT_FAILURE);
}

/// Returns the CPU clock of a process.
inline ::clockid_t cpu_clock_of(const char* process) {
  ::clockid_t found;
  if (::clock_getcpuclockid(std::atoi(process), &found) != 0) {
    std::fprintf(stderr, "driver: cannot read the CPU time of process %s\n", process);
    std::exit(EXIT_FAILURE);
  }
  return found;
}

/// Runs `run(until)` for a warm-up, and then for as long as the text says; prints what `log` has got meanwhile.
template <class Run>
void measure(request_log& log, const char* seconds, Run run) {
  const auto lasts = static_cast<std::int64_t>(std::atof(seconds) * 1e9);
  run(read_clock() + std::min<std::int64_t>(lasts, 300'000'000));
  log.begin();
  for (int tries = 0; tries < 20 && log.count() == 0; ++tries) {  // more than one on a machine with other work only
    run(read_clock() + lasts);
  }
  log.end();
  if (log.empty()) {
    fail_check("nothing came back");
  }
  log.print_each([](const char* measure, const char* unit, double value) {
    std::printf(R"({"measure": "%s", "unit": "%s", "value": %.1f})"
                "\n",
                measure, unit, value);
  });
}

}  // namespace bench
