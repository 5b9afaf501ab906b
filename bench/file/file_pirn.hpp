// pirn's readers: fibers of one worker. Beside those of `cold` a fiber yields all the time, whose longest wait counts.
#pragma once

#include "../engine_pirn.hpp"
#include "file.hpp"
#include "pirn/io/file.hpp"

namespace bench {

template <class Read>
int read_as_fibers(const char* impl, pirn::engine_kind engine, Read read) {
  return pirn::runtime({.workers = 1, .engine = engine}).run([&] {
    const file_work work;
    auto file = pirn::file::open(work.path, {.direct = work.direct});
    check(file.has_value(), "the file is opened");
    request_log log(CLOCK_PROCESS_CPUTIME_ID);
    std::uint64_t reading = work.depth;
    std::vector<pirn::fiber> readers;
    for (std::uint64_t i = 0; i < work.depth; ++i) {
      readers.push_back(pirn::spawn([&, i] {
        log.add(read_blocks(work, i, [&](void* into, std::size_t size, std::uint64_t offset) {
          return read(*file, into, size, offset);
        }));
        --reading;
      }));
    }
    if (work.access == "cold") {
      std::int64_t longest = 0, last = read_clock();
      while (reading != 0) {
        pirn::this_fiber::yield();
        const std::int64_t now = read_clock();
        longest = std::max(longest, now - last);
        last = now;
      }
      file_row(impl, work, "longest-wait", "ns", static_cast<double>(longest));
    }
    for (pirn::fiber& each : readers) {
      each.join();
    }
    file_rows(impl, work, log);
    return EXIT_SUCCESS;
  });
}

/// As pirn::file reads.
inline bool read_whole(pirn::file& from, void* into, std::size_t size, std::uint64_t offset) {
  return from.read_exactly_at(into, size, offset).has_value();
}

}  // namespace bench
