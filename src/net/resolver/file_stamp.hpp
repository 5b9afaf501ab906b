// Tells whether a file has changed.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <string>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The marks of a file that differ once it has changed. All are zero for a file that does not exist.
struct file_stamp {
  ::ino_t inode = 0;
  ::off_t size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;
  friend bool operator==(const file_stamp&, const file_stamp&) = default;

  static file_stamp of(const std::string& path) noexcept {
    struct ::stat about{};
    if (::stat(path.c_str(), &about) != 0) {
      return {};
    }
    return {about.st_ino, about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
  }
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
