// Files of a disk, which are read and written without blocking a worker.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "pirn/io/detail/whole_calls.hpp"
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

  class cursor;
  class mapping;

  /// Makes a closed file: every call fails with io_error::closed.
  file() noexcept = default;
  file(file&& other) noexcept = default;
  /// Closes the file that it has, as `close`, and takes over the other.
  file& operator=(file&& other) noexcept;
  ~file() { close(); }
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

  /// Makes `size` bytes from `offset` on readable as memory, which outlives the file. Fails with
  /// io_error::end_of_stream if the file is shorter, and with std::errc::invalid_argument for no bytes.
  [[nodiscard]] file_result<mapping> map(std::uint64_t offset, std::size_t size,
                                         time_limit deadline = platform::never) noexcept;
  /// As `map`, but the memory can be written too. Writes to it are private to the mapping and leave the file as it is.
  [[nodiscard]] file_result<mapping> map_private(std::uint64_t offset, std::size_t size,
                                                 time_limit deadline = platform::never) noexcept;

  /// Whether both are open files of one disk with one number: `open` of the path of a rotated log finds another file.
  /// Does not suspend.
  [[nodiscard]] bool is_same(const file& other) const noexcept;

  /// Ends later calls with io_error::closed, waits for those under way, then closes. So do the destructor and a move to
  /// an open file. Suspension point that neither a stop nor a deadline ends, so not to be reached with a std::mutex
  /// held: the kernel's call runs in the blocking pool, which costs some 10 us, if the file was open for writing or has
  /// no name any more. Such a close may write what was written to the file, or free its blocks, 70 ms for 1 GiB. It
  /// runs on the calling thread for another file, on a plain thread, and if the pool has no thread for it at
  /// present.
  void close() noexcept;
  /// Whether it was not closed.
  [[nodiscard]] bool is_open() const noexcept { return opened_.is_open(); }
  /// Returns the path that it was opened by.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Returns the file descriptor's number, as `descriptor::native`.
  [[nodiscard]] int native() const noexcept { return opened_.native(); }

 private:
  [[nodiscard]] file_result<mapping> map_with(int protection, std::uint64_t offset, std::size_t size,
                                              time_limit deadline) noexcept;
  [[nodiscard]] page_cache cache() const noexcept { return direct_ ? page_cache::bypass : page_cache::first; }

  descriptor opened_;
  std::string path_;
  bool writable_ = false;
  bool append_ = false;
  bool direct_ = false;
};

/// A stream over a file, which reads and writes at its position. Refers to the file, which must
/// outlive it and stay where it is. One fiber uses it at a time. Errors have no path; `file::path` knows it.
class file::cursor final : public detail::whole_reads<cursor>, public detail::whole_writes<cursor> {
 public:
  /// Begins at a position of the file.
  explicit cursor(file& of, std::uint64_t offset = 0) noexcept : file_(&of), offset_(offset) {}
  /// Reads at least one byte; 0 at the end of the file, where a later call may find more.
  [[nodiscard]] result<std::size_t> read(void* into, std::size_t size, time_limit deadline = platform::never) noexcept;
  using detail::whole_writes<cursor>::write_some;
  /// Writes at least one byte of `parts`, at most 16 of them in a call. If the file is open for appending, that is at
  /// its end, and the position stays.
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts,
                                               time_limit deadline = platform::never) noexcept;
  /// Does nothing, since a file has no peer. Only `file::sync` waits until the disk has what was written.
  result<> shutdown(shutdown_half /*half*/) noexcept { return {}; }
  /// Closes the file.
  void close() noexcept { file_->close(); }
  /// Returns the position of the next read or write.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  file* file_;
  std::uint64_t offset_;
};

/// A part of a file as memory, until it is destroyed. The first access to a page may wait for the disk, and all fibers
/// of the worker with it. If the file shrinks, an access beyond its new end raises SIGBUS, and so does an error of the
/// disk: map only files that no other program shortens, and read others by `read_at`.
class file::mapping {
 public:
  /// Makes an empty one.
  mapping() noexcept = default;
  mapping(mapping&& other) noexcept { swap(other); }
  mapping& operator=(mapping&& other) noexcept {
    mapping(std::move(other)).swap(*this);
    return *this;
  }
  ~mapping();

  /// Returns the bytes of the file.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_, size_}; }
  /// As `bytes`, to write to; empty unless `map_private` made it.
  [[nodiscard]] std::span<std::byte> writable() noexcept { return {bytes_, writable_ ? size_ : 0}; }

 private:
  friend class file;
  void swap(mapping& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    std::swap(skipped_, other.skipped_);
    std::swap(writable_, other.writable_);
  }

  std::byte* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::size_t skipped_ = 0;  ///< bytes of the first page before them
  bool writable_ = false;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
