// Shared by every C++ program of the bench: the inputs, the timing loop, the checker and the output row. harness.rs and
// harness.go do the same for the other languages; bench/README.md is the protocol.
#pragma once

#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace bench {

/// Returns an input of the workload, set by run.py for all languages alike (PIRN_BENCH_<name>).
inline std::uint64_t input(const char* name) {
  const std::string variable = std::string("PIRN_BENCH_") + name;
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) {
    std::fprintf(stderr, "%s is not set: start this program by bench/run.py\n", variable.c_str());
    std::exit(2);
  }
  return std::strtoull(value, nullptr, 10);
}

/// Returns an input that is a word.
inline std::string word_input(const char* name) {
  input(name);
  return std::getenv(("PIRN_BENCH_" + std::string(name)).c_str());
}

/// Ends the program with a failure unless the measured work was done.
inline void check(bool done, const char* what) {
  if (!done) {
    std::fprintf(stderr, "check failed: %s\n", what);
    std::exit(1);
  }
}

/// Ends the program because these inputs are beyond it or beyond the machine. run.py shows the reason and continues.
[[noreturn]] inline void skip(const std::string& reason) {
  std::fprintf(stderr, "%s\n", reason.c_str());
  std::exit(77);
}

/// Skips unless `bytes` bytes of memory are available, with an eighth more to spare.
inline void need_memory(std::uint64_t bytes) {
  std::ifstream meminfo("/proc/meminfo");
  std::string word;
  while (meminfo >> word && word != "MemAvailable:") {
  }
  std::uint64_t kib = 0;
  meminfo >> kib;
  if (bytes / 1024 > kib - kib / 8) {
    skip("needs about " + std::to_string(bytes >> 20) + " MiB of memory, and " + std::to_string(kib >> 10) +
         " MiB are available");
  }
}

/// Prints one result; `params` is a JSON object.
inline void row(const char* workload, const char* impl, const std::string& params, const char* unit, double value,
                const char* note = nullptr) {
  std::printf(R"({"workload":"%s","impl":"%s","params":%s,"unit":"%s","value":%.4f)", workload, impl, params.c_str(),
              unit, value);
  if (note != nullptr) {
    std::printf(R"(,"note":"%s")", note);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

inline std::string param(const char* name, std::uint64_t value) {
  return "{\"" + std::string(name) + "\":" + std::to_string(value) + "}";
}

/// Adds the number of workers to `params` if there is more than one.
inline std::string with_workers(std::string params, std::uint64_t workers) {
  if (workers > 1) {
    params.insert(params.size() - 1, ",\"workers\":" + std::to_string(workers));
  }
  return params;
}

inline std::string mode(const char* value) { return std::string(R"({"mode":")") + value + "\"}"; }

/// Returns the time that this process has spent on its core, in nanoseconds, including the kernel's work for it. On an
/// idle core that is the time on the clock; other work of a busy machine does not count.
inline double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Returns the time on the clock in nanoseconds, for work on several cores.
inline double wall_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Returns the clock for work on `cores` cores.
inline auto clock_for(std::uint64_t cores) { return cores == 1 ? now_ns : wall_ns; }

/// Returns the value in a form whose origin the compiler no longer knows.
template <typename T>
T opaque(T value) {
  asm volatile("" : "+r"(value));
  return value;
}

/// The digest of a sequence of elements: the checker of workloads that hand elements from one side to the other.
struct digest {
  std::uint64_t count = 0;
  std::uint64_t hash = 0;

  /// Two additions and a rotation: a missing, altered or misplaced element shows.
  void take(std::uint64_t element) {
    ++count;
    hash = std::rotl(hash, 5) + element;
  }

  friend bool operator==(const digest&, const digest&) = default;
};

/// Under `./dev bench --counts` a program does the COUNT operations of its COUNT_LOOPth timing loop, and nothing else.
inline bool counting() { return std::getenv("PIRN_BENCH_COUNT") != nullptr; }

/// Returns whether the calling timing loop is the one to count.
inline bool counted_loop() {
  static std::uint64_t loops = 0;
  return loops++ == input("COUNT_LOOP");
}

/// Returns the median cost in nanoseconds of one of the `n` operations that `run(n)` does. The number of operations, a
/// multiple of `granule`, grows until a block lasts long enough, which is also the warm-up. `now` is the clock.
template <typename Run>
double ns_per_operation(Run&& run, std::uint64_t granule = 10, double (*now)() = now_ns) {
  if (counting()) {
    if (counted_loop()) {
      run((input("COUNT") + granule - 1) / granule * granule);
    }
    return 0;
  }
  const double block_ns = static_cast<double>(input("BLOCK_MS")) * 1e6;
  const auto time_of = [&](std::uint64_t n) {
    const double start = now();
    run(n);
    return now() - start;
  };
  std::uint64_t n = granule;
  for (;;) {
    double took = time_of(n);
    if (took >= block_ns) {
      // A single time may be that of a machine that had to wake up first.
      took = std::min(took, time_of(n));
    }
    if (took >= block_ns) {
      break;
    }
    const double factor = took > 0 ? block_ns / took * 1.2 : 10;
    n = static_cast<std::uint64_t>(static_cast<double>(n) * std::min(factor, 10.0));
    n = (n / granule + 1) * granule;
  }
  std::vector<double> blocks(input("BLOCKS"));
  for (double& block : blocks) {
    block = time_of(n) / static_cast<double>(n);
  }
  std::nth_element(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2), blocks.end());
  return blocks[blocks.size() / 2];
}

/// Returns the memory that the process holds, in bytes: resident pages and the page tables behind its mappings.
inline std::uint64_t memory_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::uint64_t kib = 0;
  while (status >> word) {
    if (word == "VmRSS:" || word == "VmPTE:") {
      std::uint64_t amount = 0;
      status >> amount;
      kib += amount;
    }
  }
  return kib * 1024;
}

}  // namespace bench
