// pread in a thread for each request under way.
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "file.hpp"

int main() {
  const bench::file_work work;
  const int file = ::open(work.path.c_str(), O_RDONLY | O_CLOEXEC | (work.direct ? O_DIRECT : 0));
  bench::check(file >= 0, "the file is opened");
  bench::request_log log(CLOCK_PROCESS_CPUTIME_ID);
  std::vector<std::vector<std::int64_t>> took(work.depth);
  std::vector<std::jthread> readers;
  for (std::uint64_t i = 0; i < work.depth; ++i) {
    readers.emplace_back([&, i] {
      took[i] = bench::read_blocks(work, i, [file](void* into, std::size_t size, std::uint64_t offset) {
        return ::pread(file, into, size, static_cast<::off_t>(offset)) == static_cast<ssize_t>(size);
      });
    });
  }
  readers.clear();
  for (const auto& each : took) {
    log.add(each);
  }
  bench::file_rows("pthread", work, log);
}
