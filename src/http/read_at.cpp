// Reads a part of a file, and its status.
#include "http/read_at.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

result<std::size_t> read_at(int file, std::uint64_t offset, char* into, std::size_t size) noexcept {
  std::size_t total = 0;
  while (total < size) {
    const ssize_t got = ::pread(file, into + total, size - total, static_cast<::off_t>(offset + total));
    if (got < 0 && errno != EINTR) {
      return fail(std::error_code(errno, std::system_category()));
    }
    if (got == 0) {
      break;
    }
    total += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return total;
}

result<> look_at(int file, struct ::stat& about) noexcept {
  return ::fstat(file, &about) == 0 ? result<>() : fail(std::error_code(errno, std::system_category()));
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
