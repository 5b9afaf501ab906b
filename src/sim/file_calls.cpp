// System calls on files in an exploration: those about the disk of the execution go there, all others to the kernel.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "detail/system.hpp"
#include "sim/disk.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform::system {

namespace {

using sim::detail::disk_state;
using sim::detail::inode;
using sim::detail::open_file;

std::int64_t answer(std::int64_t outcome) noexcept {
  if (outcome < 0) {
    errno = static_cast<int>(-outcome);
    return -1;
  }
  return outcome;
}

/// Returns the error that a call meets before it begins, in a step at the disk.
int begin(const disk_state& disk) noexcept {
  if (checked::watching) {
    sim::detail::current->touch(&disk);
  }
  return disk.crashed() || sim::detail::current->fault(&sim::faults::disk_errors) ? -EIO : 0;
}

/// Makes a call on the disk.
template <class Call>
int on_disk(Call call) noexcept {
  disk_state& disk = *sim::detail::current->disk();
  const int error = begin(disk);
  const quiet unseen;
  return static_cast<int>(answer(error != 0 ? error : static_cast<std::int64_t>(call(disk))));
}

/// Makes a call on an open file.
template <class Call>
std::int64_t on_file(int descriptor, Call call) noexcept {
  disk_state* const disk = sim::detail::current != nullptr ? sim::detail::current->disk() : nullptr;
  open_file* const found = disk != nullptr ? disk->find(descriptor) : nullptr;
  if (found == nullptr) {
    return answer(-EBADF);
  }
  const int error = begin(*disk);
  const quiet unseen;
  return answer(error != 0 ? error : found->lost ? -EIO : static_cast<std::int64_t>(call(*disk, *found)));
}

struct ::statx about(const inode& of) noexcept {
  struct ::statx made{};
  made.stx_mask = STATX_BASIC_STATS;
  made.stx_mode = static_cast<std::uint16_t>(of.directory ? S_IFDIR | 0777 : S_IFREG | 0666);
  made.stx_size = of.bytes.size();
  made.stx_nlink = 1;  // the close of one without a name is as quick here
  made.stx_ino = of.number;
  return made;
}

}  // namespace

int openat(int folder, const char* path, int flags, ::mode_t mode) noexcept {
  return disk_state::has(path) ? on_disk([&](disk_state& disk) { return disk.open(path, flags); })
                               : ::openat(folder, path, flags, mode);
}

int close_file(int descriptor) noexcept {
  disk_state* const disk = sim::detail::current != nullptr ? sim::detail::current->disk() : nullptr;
  open_file* const found = disk != nullptr ? disk->find(descriptor) : nullptr;
  if (found == nullptr) {
    return static_cast<int>(answer(-EBADF));
  }
  if (checked::watching) {
    sim::detail::current->touch(disk);
  }
  const quiet unseen;
  disk->close(*found);
  return 0;
}

int flags_of_file(int descriptor, int command) noexcept {
  return static_cast<int>(on_file(descriptor, [&](disk_state&, const open_file& of) {
    return command == F_GETFL ? of.flags & (O_ACCMODE | O_APPEND | O_NONBLOCK) : command == F_GETFD ? FD_CLOEXEC : 0;
  }));
}

ssize_t preadv(int descriptor, const ::iovec* parts, int count, ::off_t offset) noexcept {
  return is_file(descriptor)
             ? on_file(descriptor, [&](disk_state& disk, open_file& of) { return disk.read(of, parts, count, offset); })
             : ::preadv(descriptor, parts, count, offset);
}

ssize_t preadv2(int descriptor, const ::iovec* parts, int count, ::off_t offset, int flags) noexcept {
  if (!is_file(descriptor)) {
    return ::preadv2(descriptor, parts, count, offset, flags);
  }
  if ((flags & RWF_NOWAIT) != 0 && sim::detail::current->fault(&sim::faults::slow_disk)) {
    return answer(-EAGAIN);
  }
  return system::preadv(descriptor, parts, count, offset);
}

ssize_t pwritev(int descriptor, const ::iovec* parts, int count, ::off_t offset) noexcept {
  return is_file(descriptor) ? on_file(descriptor, [&](disk_state& disk,
                                                       open_file& of) { return disk.write(of, parts, count, offset); })
                             : ::pwritev(descriptor, parts, count, offset);
}

ssize_t read_file(int descriptor, const ::iovec* parts, int count) noexcept {
  return on_file(descriptor, [&](disk_state& disk, open_file& of) {
    const std::int64_t got = disk.read(of, parts, count, static_cast<::off_t>(of.position));
    of.position += got > 0 ? static_cast<std::size_t>(got) : 0;
    return got;
  });
}

ssize_t write_file(int descriptor, const ::iovec* parts, int count) noexcept {
  return on_file(descriptor, [&](disk_state& disk, open_file& of) {
    const std::size_t at = (of.flags & O_APPEND) != 0 ? of.of->bytes.size() : of.position;
    const std::int64_t put = disk.write(of, parts, count, static_cast<::off_t>(at));
    of.position = put > 0 ? at + static_cast<std::size_t>(put) : of.position;
    return put;
  });
}

int fsync(int descriptor) noexcept {
  if (!is_file(descriptor)) {
    return ::fsync(descriptor);
  }
  const auto done = on_file(descriptor, [](disk_state& disk, open_file& of) { return disk.sync(of); });
  if (done < 0 && errno == EIO) {
    if (open_file* const found = sim::detail::current->disk()->find(descriptor); !found->lost) {
      disk_state::fail_sync(*found);
    }
  }
  return static_cast<int>(done);
}

int fdatasync(int descriptor) noexcept { return is_file(descriptor) ? fsync(descriptor) : ::fdatasync(descriptor); }

int ftruncate(int descriptor, ::off_t size) noexcept {
  return is_file(descriptor)
             ? static_cast<int>(
                   on_file(descriptor, [&](disk_state& disk, open_file& of) { return disk.truncate(of, size); }))
             : ::ftruncate(descriptor, size);
}

int stat_file(int descriptor, struct ::stat* into) noexcept {
  return static_cast<int>(on_file(descriptor, [&](disk_state&, const open_file& of) {
    const struct ::statx found = about(*of.of);
    *into = {};
    into->st_mode = found.stx_mode;
    into->st_ino = found.stx_ino;
    into->st_size = static_cast<::off_t>(found.stx_size);
    return 0;
  }));
}

int statx(int folder, const char* path, int flags, unsigned mask, struct ::statx* into) noexcept {
  if (is_file(folder) && *path == '\0') {
    return static_cast<int>(on_file(folder, [&](disk_state&, const open_file& of) {
      *into = about(*of.of);
      return 0;
    }));
  }
  if (!disk_state::has(path)) {
    return ::statx(folder, path, flags, mask, into);
  }
  return on_disk([&](disk_state& disk) {
    const inode* const found = disk.look_up(path);
    if (found != nullptr) {
      *into = about(*found);
    }
    return found != nullptr ? 0 : -ENOENT;
  });
}

void* mmap(void* at, std::size_t size, int protection, int flags, int descriptor, ::off_t offset) noexcept {
  if (!is_file(descriptor)) {
    return ::mmap(at, size, protection, flags, descriptor, offset);
  }
  void* made = MAP_FAILED;
  on_file(descriptor, [&](disk_state&, const open_file& of) -> std::int64_t {
    if (of.of->directory || ((flags & MAP_PRIVATE) == 0 && (protection & PROT_WRITE) != 0)) {
      return -ENODEV;  // a copy is not shared
    }
    if ((of.flags & O_ACCMODE) == O_WRONLY) {
      return -EACCES;
    }
    void* const copy = ::mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
      return -errno;
    }
    const std::string& bytes = of.of->bytes;
    const std::size_t from = std::min(static_cast<std::size_t>(offset), bytes.size());
    std::memcpy(copy, bytes.data() + from, std::min(size, bytes.size() - from));
    ::mprotect(copy, size, protection);
    made = copy;
    return 0;
  });
  return made;
}

ssize_t getdents64(int descriptor, void* into, std::size_t size) noexcept {
  return is_file(descriptor)
             ? on_file(descriptor, [&](disk_state& disk, open_file& of) { return disk.list(of, into, size); })
             : ::getdents64(descriptor, into, size);
}

int mkdir(const char* path, ::mode_t mode) noexcept {
  return disk_state::has(path) ? on_disk([&](disk_state& disk) { return disk.make_directory(path); })
                               : ::mkdir(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  if (disk_state::has(from) != disk_state::has(to)) {
    return static_cast<int>(answer(-EXDEV));
  }
  return disk_state::has(from) ? on_disk([&](disk_state& disk) { return disk.rename(from, to); }) : ::rename(from, to);
}

int remove(const char* path) noexcept {
  return disk_state::has(path) ? on_disk([&](disk_state& disk) { return disk.remove(path); }) : ::remove(path);
}

}  // namespace platform::system
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
