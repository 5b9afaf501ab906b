// The biased workload: data that belongs to a worker, and is locked only by fibers that stay there.
// `record`: 8 fibers per worker increment the data behind one lock, and yield after every 64 times.
// `buffer`: 4 producers and 4 consumers per worker with a bounded buffer of 8 places, as in condvar. Dolan,
// Muralidharan and Gregg gave hints of affinity to this program in "Compiler support for lightweight context
// switching".
// `permit`: as `record`, with a permit of a semaphore that has enough for all. `event`: 4 pairs of fibers per worker,
// of which one sets an event with automatic reset that the other one waits for, and back. There is no biased event: the
// rows of `pirn-local` show what one could gain at most.
// All counts and sums must be right at the end.
#pragma once

#include <atomic>

#include "../condvar/condvar.hpp"
#include "../units_pirn.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/semaphore.hpp"

namespace bench {

/// Measures `Units::mutex`; the other members of `Units` are those of units_pirn.hpp.
template <typename Units>
class biased {
 public:
  static void measure(const char* impl, const char* note) {
    row_of(impl, note, "record", update_records);
    row_of(impl, note, "buffer", pass_through_buffers);
  }
  template <typename Semaphore>
  static void measure_permits(const char* impl, const char* note) {
    row_of(impl, note, "permit", take_permits<Semaphore>);
  }
  template <typename Event>
  static void measure_events(const char* impl, const char* note) {
    row_of(impl, note, "event", set_events<Event>);
  }

 private:
  template <typename Run>
  static void row_of(const char* impl, const char* note, const char* work, Run run) {
    const std::uint64_t workers = input("WORKERS");
    const double ns = ns_per_operation(run, fibers * workers * turn * 80, clock_for(workers));
    row("biased", impl, R"({"work":")" + std::string(work) + R"(","workers":)" + std::to_string(workers) + "}", "ns",
        ns, note);
  }

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

  template <typename Semaphore>
  static void take_permits(std::uint64_t n) {
    struct alignas(64) place {
      Semaphore free{fibers};
      std::uint64_t count = 0;
    };
    const std::uint64_t workers = input("WORKERS");
    std::vector<place> all(workers);
    const std::uint64_t turns = n / (fibers * workers * turn);
    Units::together(fibers * workers, [&](std::uint64_t i) {
      place& mine = all[i % workers];
      for (std::uint64_t k = 0; k < turns; ++k) {
        for (std::uint64_t j = 0; j < turn; ++j) {
          check(mine.free.acquire().has_value(), "a permit is free");
          ++mine.count;
          mine.free.release();
        }
        Units::yield();
      }
    });
    for (const place& each : all) {
      check(each.count == n / workers, "every permit counts");
    }
  }

  template <typename Event>
  static void set_events(std::uint64_t n) {
    struct alignas(64) pair {
      Event there{pirn::event_reset::automatic};
      Event back{pirn::event_reset::automatic};
      std::uint64_t count = 0;
    };
    const std::uint64_t workers = input("WORKERS");
    const std::uint64_t pairs = fibers / 2 * workers;
    std::vector<pair> all(pairs);
    Units::together(2 * pairs, [&](std::uint64_t i) {
      pair& mine = all[i % pairs];
      Event& given = i < pairs ? mine.there : mine.back;
      Event& awaited = i < pairs ? mine.back : mine.there;
      for (std::uint64_t k = 0; k < n / (2 * pairs); ++k) {
        if (i < pairs) {
          given.set();
          check(awaited.wait().has_value(), "an event comes");
        } else {
          check(awaited.wait().has_value(), "an event comes");
          given.set();
        }
        ++mine.count;
      }
    });
    for (const pair& each : all) {
      check(each.count == n / pairs, "every event is answered");
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
