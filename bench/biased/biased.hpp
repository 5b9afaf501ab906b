// The biased workload: data that belongs to a worker, and is locked only by fibers that stay there.
// `record`: 8 fibers per worker increment the data behind one lock, and yield after every 64 times.
// `buffer`: 4 producers and 4 consumers per worker with a bounded buffer of 8 places, as in condvar. Dolan,
// Muralidharan and Gregg gave hints of affinity to this program in "Compiler support for lightweight context
// switching".
// All counts and sums must be right at the end.
#pragma once

#include <atomic>

#include "../condvar/condvar.hpp"
#include "../units_pirn.hpp"

namespace bench {

/// Measures `Units::mutex`; the other members of `Units` are those of units_pirn.hpp.
template <typename Units>
class biased {
 public:
  static void measure(const char* impl, const char* note) {
    const std::uint64_t workers = input("WORKERS");
    const auto row_of = [&](const char* work, auto run) {
      const double ns = ns_per_operation(run, fibers * workers * turn * 80, clock_for(workers));
      row("biased", impl, R"({"work":")" + std::string(work) + R"(","workers":)" + std::to_string(workers) + "}", "ns",
          ns, note);
    };
    row_of("record", update_records);
    row_of("buffer", pass_through_buffers);
  }

 private:
  static constexpr std::uint64_t fibers = 8;  // of each worker
  static constexpr std::uint64_t turn = 64;

  struct alignas(64) record {
    typename Units::mutex guard;
    std::uint64_t count = 0;
  };
  struct alignas(64) buffer : bounded_buffer<Units> {};

  static void update_records(std::uint64_t n) {
    const std::uint64_t workers = input("WORKERS");
    std::vector<record> all(workers);
    const std::uint64_t turns = n / (fibers * workers * turn);
    Units::together(fibers * workers, [&](std::uint64_t i) {  // unit i runs on worker i modulo the number of workers
      record& mine = all[i % workers];
      for (std::uint64_t k = 0; k < turns; ++k) {
        for (std::uint64_t j = 0; j < turn; ++j) {
          const std::lock_guard lock(mine.guard);
          ++mine.count;
        }
        Units::yield();
      }
    });
    for (const record& each : all) {
      check(each.count == n / workers, "every update counts");
    }
  }

  static void pass_through_buffers(std::uint64_t n) {
    const std::uint64_t workers = input("WORKERS");
    std::vector<buffer> all(workers);
    std::atomic<std::uint64_t> sum = 0;
    const std::uint64_t producers = fibers / 2 * workers;
    const std::uint64_t share = n / producers;
    Units::together(2 * producers, [&](std::uint64_t i) {
      buffer& mine = all[i % workers];
      std::uint64_t taken = 0;
      for (std::uint64_t k = 0; k < share; ++k) {
        if (i < producers) {
          mine.put(i * share + k);
        } else {
          taken += mine.take();
        }
      }
      sum += taken;
    });
    check(sum == n * (n - 1) / 2, "every element arrives once");
  }
};

}  // namespace bench
