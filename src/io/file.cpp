// Implements file, its cursor and its mapping: each call is an operation, whose error gets the path.
#include "pirn/io/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <utility>

#include "detail/system.hpp"
#include "io/attempt.hpp"
#include "io/may_block.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr std::size_t parts_of_a_call = 16;

file_result<std::string> copy_of(std::string_view path, const char* action) noexcept {
  if (path.find('\0') != std::string_view::npos) {
    return fail(std::make_error_code(std::errc::invalid_argument), action, path);
  }
  try {
    return std::string(path);
  } catch (const std::bad_alloc&) {
    return fail(std::make_error_code(std::errc::not_enough_memory), action, {});
  }
}

int flags_of(const file::options& how) noexcept {
  int flags = O_NOCTTY | O_NONBLOCK;  // neither has an effect on a regular file
  flags |= how.access == file::access::read ? O_RDONLY : how.access == file::access::write ? O_WRONLY : O_RDWR;
  flags |= how.create == file::create::if_missing   ? O_CREAT
           : how.create == file::create::always_new ? O_CREAT | O_EXCL
                                                    : 0;
  flags |= how.truncate ? O_TRUNC : 0;
  flags |= how.append ? O_APPEND : 0;
  flags |= how.direct ? O_DIRECT : 0;
  return flags;
}

file_result<> as_void(const result<std::int64_t>& done, const char* action, std::string_view path) noexcept {
  if (!done) {
    return fail(done.error(), action, path);
  }
  return {};
}

/// Whether the last close of a file may take long: one without a name gives its blocks back then, and some file systems
/// write what was written to it.
bool may_close_slowly(int native, bool writable) noexcept {
  struct ::statx about{};
  return writable ||
         platform::system::statx(native, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &about) != 0 ||
         about.stx_nlink == 0;
}

}  // namespace

file& file::operator=(file&& other) noexcept {
  if (this != &other) {
    close();
    opened_ = std::move(other.opened_);
    path_ = std::move(other.path_);
    writable_ = other.writable_;
    append_ = other.append_;
    direct_ = other.direct_;
  }
  return *this;
}

void file::close() noexcept {
  const int native = opened_.end();
  if (native < 0) {
    return;
  }
  const auto last = [native]() noexcept { platform::system::close(native); };
  may_close_slowly(native, writable_) ? detail::call_in_pool(last) : last();
}

file_result<file> file::open(std::string_view path, const options& how, time_limit deadline) noexcept {
  auto copy = copy_of(path, "open");
  if (!copy) {
    return std::unexpected(std::move(copy.error()));
  }
  const auto opened = perform(operation::open(copy->c_str(), flags_of(how), how.mode), deadline);
  if (!opened) {
    return fail(opened.error(), "open", path);
  }
  file made;
  made.opened_ = descriptor(static_cast<int>(*opened));
  made.path_ = std::move(*copy);
  made.writable_ = how.access != access::read;
  made.append_ = how.append;
  made.direct_ = how.direct;
  return made;
}

file_result<file> file::temporary(std::string_view folder, time_limit deadline) noexcept {
  auto copy = copy_of(folder, "make a temporary file in");
  if (!copy) {
    return std::unexpected(std::move(copy.error()));
  }
  const auto opened = perform(operation::open(copy->c_str(), O_RDWR | O_TMPFILE, 0600), deadline);
  if (!opened) {
    return fail(opened.error(), "make a temporary file in", folder);
  }
  file made;
  made.opened_ = descriptor(static_cast<int>(*opened));
  made.path_ = std::move(*copy);
  made.writable_ = true;
  return made;
}

file_result<std::size_t> file::read_at(std::span<const ::iovec> into, std::uint64_t offset,
                                       time_limit deadline) noexcept {
  const auto got = perform(
      operation::read_at(opened_, into.first(std::min<std::size_t>(into.size(), IOV_MAX)), offset, cache()), deadline);
  if (!got) {
    return fail(got.error(), "read", path_);
  }
  return static_cast<std::size_t>(*got);
}

file_result<std::size_t> file::read_at(void* into, std::size_t size, std::uint64_t offset,
                                       time_limit deadline) noexcept {
  const ::iovec part{into, size};
  return read_at({&part, 1}, offset, deadline);
}

file_result<> file::read_exactly_at(void* into, std::size_t size, std::uint64_t offset, time_limit deadline) noexcept {
  std::size_t done = 0;
  while (done < size) {
    auto got = read_at(static_cast<char*>(into) + done, size - done, offset + done, deadline);
    if (!got) {
      got.error().done = done;
      return std::unexpected(std::move(got.error()));
    }
    if (*got == 0) {
      return fail(make_error_code(io_error::end_of_stream), "read", path_, done);
    }
    done += *got;
  }
  return {};
}

file_result<> file::write_at(std::span<const ::iovec> data, std::uint64_t offset, time_limit deadline) noexcept {
  std::size_t done = 0;
  std::size_t skip = 0;  // bytes of the first part that are written
  for (;;) {
    while (!data.empty() && data.front().iov_len == skip) {
      data = data.subspan(1);
      skip = 0;
    }
    if (data.empty()) {
      return {};
    }
    ::iovec parts[parts_of_a_call];
    const std::size_t count = std::min(data.size(), parts_of_a_call);
    std::copy_n(data.begin(), count, parts);
    parts[0] = {static_cast<char*>(parts[0].iov_base) + skip, parts[0].iov_len - skip};
    const auto put = perform(operation::write_at(opened_, {parts, count}, offset + done, cache()), deadline);
    if (!put) {
      return fail(put.error(), "write", path_, done);
    }
    if (*put == 0) {
      return fail(std::make_error_code(std::errc::io_error), "write", path_, done);
    }
    auto left = static_cast<std::size_t>(*put);
    done += left;
    while (left != 0) {
      const std::size_t step = std::min(left, data.front().iov_len - skip);
      left -= step;
      skip += step;
      if (skip == data.front().iov_len) {
        data = data.subspan(1);
        skip = 0;
      }
    }
  }
}

file_result<> file::write_at(const void* data, std::size_t size, std::uint64_t offset, time_limit deadline) noexcept {
  const ::iovec part{const_cast<void*>(data), size};
  return write_at({&part, 1}, offset, deadline);
}

file_result<> file::append(std::string_view text, time_limit deadline) noexcept {
  if (!append_) {
    return fail(std::make_error_code(std::errc::invalid_argument), "append to", path_);
  }
  return write_at(text.data(), text.size(), 0, deadline);
}

file_result<> file::sync(sync_scope what, time_limit deadline) noexcept {
  return as_void(perform(operation::sync(opened_, what), deadline), "sync", path_);
}

file_result<std::uint64_t> file::size(time_limit deadline) noexcept {
  struct ::statx about{};
  const auto asked = perform(operation::stat(opened_, about, STATX_SIZE), deadline);
  if (!asked) {
    return fail(asked.error(), "ask for the size of", path_);
  }
  return about.stx_size;
}

file_result<> file::truncate(std::uint64_t size, time_limit deadline) noexcept {
  const descriptor::syscall call = [](int native, void* argument) noexcept {
    std::int64_t outcome;
    do {
      outcome = detail::result_of_call(
          platform::system::ftruncate(native, static_cast<::off_t>(*static_cast<std::uint64_t*>(argument))));
    } while (outcome == -EINTR);
    return outcome;
  };
  return as_void(perform(operation::call(call, &size, &opened_), deadline), "truncate", path_);
}

bool file::is_same(const file& other) const noexcept {
  struct ::stat mine;
  struct ::stat theirs;
  const descriptor::syscall ask = [](int native, void* into) noexcept {
    return detail::result_of_call(platform::system::fstat(native, static_cast<struct ::stat*>(into)));
  };
  return opened_.invoke(ask, &mine) && other.opened_.invoke(ask, &theirs) && mine.st_dev == theirs.st_dev &&
         mine.st_ino == theirs.st_ino;
}

file_result<file::mapping> file::map(std::uint64_t offset, std::size_t size, time_limit deadline) noexcept {
  return map_with(PROT_READ, offset, size, deadline);
}

file_result<file::mapping> file::map_private(std::uint64_t offset, std::size_t size, time_limit deadline) noexcept {
  return map_with(PROT_READ | PROT_WRITE, offset, size, deadline);
}

file_result<file::mapping> file::map_with(int protection, std::uint64_t offset, std::size_t size,
                                          time_limit deadline) noexcept {
  if (size == 0) {
    return fail(std::make_error_code(std::errc::invalid_argument), "map", path_);
  }
  file_result<std::uint64_t> whole = this->size(deadline);
  if (!whole) {
    whole.error().action = "map";
    return std::unexpected(std::move(whole.error()));
  }
  if (offset > *whole || size > *whole - offset) {
    return fail(make_error_code(io_error::end_of_stream), "map", path_);
  }
  mapping made;
  made.skipped_ = offset % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct wanted {
    int protection;
    ::off_t from;
    std::size_t size;
    void* address;
  } call{protection, static_cast<::off_t>(offset - made.skipped_), size + made.skipped_, nullptr};
  const descriptor::syscall make = [](int native, void* argument) noexcept -> std::int64_t {
    auto& it = *static_cast<wanted*>(argument);
    it.address = platform::system::mmap(nullptr, it.size, it.protection, MAP_PRIVATE, native, it.from);
    return it.address != MAP_FAILED ? 0 : -errno;
  };
  if (auto done = as_void(perform(operation::call(make, &call, &opened_), deadline), "map", path_); !done) {
    return std::unexpected(std::move(done.error()));
  }
  made.bytes_ = static_cast<std::byte*>(call.address) + made.skipped_;
  made.size_ = size;
  made.writable_ = (protection & PROT_WRITE) != 0;
  return made;
}

file::mapping::~mapping() {
  if (bytes_ != nullptr) {
    ::munmap(bytes_ - skipped_, size_ + skipped_);
  }
}

result<std::size_t> file::cursor::read(void* into, std::size_t size, time_limit deadline) noexcept {
  const file_result<std::size_t> got = file_->read_at(into, size, offset_, deadline);
  if (!got) {
    return fail(got.error().code);
  }
  offset_ += *got;
  return *got;
}

result<std::size_t> file::cursor::write_some(std::span<const const_buffer> parts, time_limit deadline) noexcept {
  ::iovec natives[parts_of_a_call];
  const auto put = perform(
      operation::write_at(file_->opened_, detail::to_native(parts, natives), offset_, file_->cache()), deadline);
  if (!put) {
    return fail(put.error());
  }
  offset_ += file_->append_ ? 0 : static_cast<std::uint64_t>(*put);
  return static_cast<std::size_t>(*put);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
