// pread in the blocking pool, which looks into no cache before.
#include <unistd.h>

#include "file_pirn.hpp"
#include "pirn/fiber/blocking.hpp"

int main() {
  return bench::read_as_fibers(
      "pirn-blocking", bench::epoll, [](pirn::file& from, void* into, std::size_t size, std::uint64_t offset) {
        const ssize_t got =
            pirn::blocking([&] { return ::pread(from.native(), into, size, static_cast<::off_t>(offset)); });
        return got == static_cast<ssize_t>(size);
      });
}
