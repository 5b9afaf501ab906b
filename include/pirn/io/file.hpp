// Files of a disk, which are read and written without blocking a worker.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pirn/io/expert/operation.hpp"
#include "pirn/io/file_error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// An open file. A read of cached bytes is done at once; other calls run in the blocking pool meanwhile, so the
/// worker runs other fibers. Any fiber and any plain thread may call it; calls may run at once. Movable while unused.
///
/// Each call with a deadline is a suspension point. A stop or a deadline is noticed before the call of the kernel and
/// after it, not during it: a disk does not give up, and the caller's memory is in use until then. Errors name the path
/// as it was opened.
class file {
 public:
  /// The calls that are possible.
  enum class access : std::uint8_t { read, write, read_write };
  /// Whether `open` makes a file.
  enum class create : std::uint8_t {
    existing,    ///< a missing file is an error
    if_missing,  ///< a missing file is made, empty
    always_new,  ///< an existing file is an error
  };
  /// How to open a file.
  struct options {
    file::access access = file::access::read;      ///< the calls that will be possible
    file::create create = file::create::existing;  ///< whether a file is made
    bool truncate = false;                         ///< drop what it holds
    bool append = false;                           ///< each write goes to the end, atomically beside other writers
    bool direct = false;   ///< O_DIRECT: past the page cache; memory, sizes and offsets are multiples of the block
    ::mode_t mode = 0666;  ///< of a new file, before the umask
  };

  class reader;

  /// Makes a closed file: every call fails with io_error::closed.
  file() noexcept = default;
  /// Opens a file. Never waits for the other end of a named pipe.
  [[nodiscard]] static file_result<file> open(std::string_view path, const options& how,
                                              time_limit deadline = platform::never) noexcept;
  [[nodiscard]] static file_result<file> open(std::string_view path) noexcept { return open(path, options{}); }
  /// Makes an empty file without a name in `folder`, which is gone when it is closed.
  [[nodiscard]] static file_result<file> temporary(std::string_view folder = "/tmp",
                                                   time_limit deadline = platform::never) noexcept;

  /// Reads at least one byte at `offset`; 0 at the end of the file.
  [[nodiscard]] file_result<std::size_t> read_at(void* into, std::size_t size, std::uint64_t offset,
                                                 time_limit deadline = platform::never) noexcept;
  /// As `read_at` of one buffer, but into several.
  [[nodiscard]] file_result<std::size_t> read_at(std::span<const ::iovec> into, std::uint64_t offset,
                                                 time_limit deadline = platform::never) noexcept;
  /// Reads `size` bytes. Fails with io_error::end_of_stream if the file is shorter, even if it shrinks meanwhile;
  /// `done` of the error says how many bytes there were.
  [[nodiscard]] file_result<> read_exactly_at(void* into, std::size_t size, std::uint64_t offset,
                                              time_limit deadline = platform::never) noexcept;
  /// Writes all bytes at `offset`, or at the end if the file is open for appending. `done` of an error says how many
  /// were written before it.
  [[nodiscard]] file_result<> write_at(const void* data, std::size_t size, std::uint64_t offset,
                                       time_limit deadline = platform::never) noexcept;
  /// As `write_at` of one buffer, but of several.
  [[nodiscard]] file_result<> write_at(std::span<const ::iovec> data, std::uint64_t offset,
                                       time_limit deadline = platform::never) noexcept;
  /// Writes all bytes at the end. Fails with std::errc::invalid_argument unless the file is open for appending.
  [[nodiscard]] file_result<> append(std::string_view text, time_limit deadline = platform::never) noexcept;
  /// Waits until the disk has what was written. After an error the written bytes may be lost, and a second `sync` that
  /// succeeds does not bring them back. A new or renamed file also needs the `sync` of its folder.
  [[nodiscard]] file_result<> sync(sync_scope what = sync_scope::data_and_metadata,
                                   time_limit deadline = platform::never) noexcept;
  /// Returns the number of its bytes.
  [[nodiscard]] file_result<std::uint64_t> size(time_limit deadline = platform::never) noexcept;
  /// Makes it that long: drops the rest or adds zeros.
  [[nodiscard]] file_result<> truncate(std::uint64_t size, time_limit deadline = platform::never) noexcept;

  /// Whether both are open files of one disk with one number: `open` of the path of a rotated log finds another file.
  /// Does not suspend.
  [[nodiscard]] bool is_same(const file& other) const noexcept;

  /// Ends later calls with io_error::closed, waits for those under way, then closes.
  void close() noexcept { opened_.close(); }
  /// Whether it was not closed.
  [[nodiscard]] bool is_open() const noexcept { return opened_.is_open(); }
  /// Returns the path that it was opened by.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Returns the file descriptor's number, as `descriptor::native`.
  [[nodiscard]] int native() const noexcept { return opened_.native(); }

 private:
  [[nodiscard]] page_cache cache() const noexcept { return direct_ ? page_cache::bypass : page_cache::first; }

  descriptor opened_;
  std::string path_;
  bool append_ = false;
  bool direct_ = false;
};

/// Reads a file from its beginning to its end, as the `read` of a stream.
class file::reader {
 public:
  /// Refers to the file, which must outlive it.
  explicit reader(file& of, std::uint64_t offset = 0) noexcept : file_(&of), offset_(offset) {}
  /// Reads at least one byte; 0 at the end, where a later call may find more.
  [[nodiscard]] result<std::size_t> read(void* into, std::size_t size, time_limit deadline = platform::never) noexcept {
    const file_result<std::size_t> got = file_->read_at(into, size, offset_, deadline);
    if (!got) {
      return fail(got.error().code);
    }
    offset_ += *got;
    return *got;
  }
  /// Returns the position of the next read.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  file* file_;
  std::uint64_t offset_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
