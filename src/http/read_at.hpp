// Reads files whose reported size may be wrong: files of /sys hold less, others are truncated while they are read, and
// disks fail.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

#include "pirn/io/error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Files up to this size are read before their headers are written. Larger ones are read while they are sent, and
/// missing bytes end the connection.
inline constexpr std::size_t small_file = std::size_t{32} * 1024;

/// Reads up to `size` bytes at `offset`, fewer only if the file ends. Blocks the worker while the disk is read.
result<std::size_t> read_at(int file, std::uint64_t offset, char* into, std::size_t size) noexcept;

/// As `read_at` above, but reads into a string, whose length becomes the number of bytes read.
template <class String>
result<> read_at(int file, std::uint64_t offset, std::size_t size, String& into) {
  into.resize(size);
  const auto got = read_at(file, offset, into.data(), size);
  into.resize(got.value_or(0));
  return got ? result<>() : fail(got.error());
}

/// The number of attempts to read a file, each disturbed by a change, after which it is given up.
inline constexpr int max_attempts = 20;

/// Whether a file was changed in any way between two calls of `look_at`. Its modification time may be set back, but not
/// the time at which its status last changed. Device files have no such times.
[[nodiscard]] inline bool is_changed(const struct ::stat& before, const struct ::stat& after) noexcept {
  return S_ISREG(after.st_mode) &&
         (before.st_size != after.st_size || before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
          before.st_mtim.tv_nsec != after.st_mtim.tv_nsec || before.st_ctim.tv_sec != after.st_ctim.tv_sec ||
          before.st_ctim.tv_nsec != after.st_ctim.tv_nsec);
}

/// Returns when the content was last changed, in nanoseconds since 1970.
[[nodiscard]] inline std::int64_t modified_at(const struct ::stat& about) noexcept {
  return std::int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec;
}

/// Fills in the status of the file behind a descriptor.
result<> look_at(int file, struct ::stat& about) noexcept;

/// As `read_at`, but returns whether the file is unchanged since `about` was taken, and takes `about` anew. If a file
/// is truncated and written during a read, the kernel mixes two contents, with zeros that are in neither.
template <class String>
result<bool> read_if_unchanged(int file, std::uint64_t offset, std::size_t size, String& into, struct ::stat& about) {
  if (const auto done = read_at(file, offset, size, into); !done) {
    return fail(done.error());
  }
  const struct ::stat before = about;
  if (const auto done = look_at(file, about); !done) {
    return fail(done.error());
  }
  return !is_changed(before, about);
}

/// As `read_if_unchanged`, but repeats until it has read one content. Fails with resource_unavailable_try_again if the
/// file does not stop changing.
template <class String>
result<> read_one_content(int file, std::uint64_t offset, std::size_t size, String& into, struct ::stat& about) {
  for (int attempts = 0; attempts < max_attempts; ++attempts) {
    const auto unchanged = read_if_unchanged(file, offset, size, into, about);
    if (!unchanged) {
      return fail(unchanged.error());
    }
    if (*unchanged) {
      return {};
    }
  }
  into.resize(0);
  return fail(std::make_error_code(std::errc::resource_unavailable_try_again));
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
