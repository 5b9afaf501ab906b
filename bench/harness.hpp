// What every C++ program of the bench shares: the inputs, the timing loop, the checker and the output row.
// harness.rs and harness.go do the same for the other languages; bench/README.md is the protocol.
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

/// An input of the workload, set by run.py for all languages alike (PIRN_BENCH_<name>).
inline std::uint64_t input(const char* name) {
  const std::string variable = std::string("PIRN_BENCH_") + name;
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) {
    std::fprintf(stderr, "%s is not set: start this program by bench/run.py\n", variable.c_str());
    std::exit(2);
  }
  return std::strtoull(value, nullptr, 10);
}

/// An input that is a word.
inline std::string word_input(const char* name) {
  input(name);
  return std::getenv(("PIRN_BENCH_" + std::string(name)).c_str());
}

/// Ends the program with a failure unless the work that was paid for was done.
inline void check(bool done, const char* what) {
  if (!done) {
    std::fprintf(stderr, "check failed: %s\n", what);
    std::exit(1);
  }
}

/// Ends the program where these inputs are beyond it or beyond the machine: run.py shows the reason and goes on.
[[noreturn]] inline void skip(const std::string& reason) {
  std::fprintf(stderr, "%s\n", reason.c_str());
  std::exit(77);
}

/// Skips unless so much memory is available, with an eighth more to spare.
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

/// Says so in `params` where there is more than one.
inline std::string with_workers(std::string params, std::uint64_t workers) {
  if (workers > 1) {
    params.insert(params.size() - 1, ",\"workers\":" + std::to_string(workers));
  }
  return params;
}

inline std::string mode(const char* value) { return std::string(R"({"mode":")") + value + "\"}"; }

/// Time that this process has spent on its core, in nanoseconds, the kernel's work for it included. On an idle core
/// that is the time on the clock; what else runs on a busy machine does not count.
inline double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Time on the clock in nanoseconds, for what runs on several cores.
inline double wall_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// The clock for what runs on so many cores.
inline auto clock_for(std::uint64_t cores) { return cores == 1 ? now_ns : wall_ns; }

/// The same value, of which the compiler no longer knows where it came from.
template <typename T>
T opaque(T value) {
  asm volatile("" : "+r"(value));
  return value;
}

/// What a sequence of elements leaves behind: the checker of workloads that hand elements from one side to the other.
struct digest {
  std::uint64_t count = 0;
  std::uint64_t hash = 0;

  /// Two additions and a rotation: an element that is missing, altered or out of order shows.
  void take(std::uint64_t element) {
    ++count;
    hash = std::rotl(hash, 5) + element;
  }

  friend bool operator==(const digest&, const digest&) = default;
};

/// Under `./dev bench --counts` a program does the COUNT operations of its COUNT_LOOPth timing loop, and nothing else.
inline bool counting() { return std::getenv("PIRN_BENCH_COUNT") != nullptr; }

/// Whether the timing loop that asks is the one to count.
inline bool counted_loop() {
  static std::uint64_t loops = 0;
  return loops++ == input("COUNT_LOOP");
}

/// The median cost in nanoseconds of one of the `n` operations that `run(n)` does. The number of operations, a multiple
/// of `granule`, grows until a block lasts long enough, which is the warm-up too. `now` is the clock.
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
      // Once may be a machine that had to wake up first.
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

/// Memory that the process holds: resident pages and the page tables behind its mappings, in bytes.
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
