// Implements the calls on directories, which are made in the blocking pool.
#include "pirn/io/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>
#include <string_view>
#include <utility>

#include "detail/system.hpp"
#include "io/attempt.hpp"
#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr int directories_of_a_call = 16;

/// Paths as the kernel wants them, and what the calls in the pool find.
struct path_call {
  std::string path;
  std::string other;
  directory_entry::depth depth = directory_entry::depth::one;
  std::size_t limit = 0;
  std::vector<directory_entry> found;
  std::vector<std::string> waiting = {};  ///< directories that are yet to be listed, so a deep tree costs no stack
  std::string failed = {};                ///< the directory that an error is of
};

std::string join(std::string folder, std::string_view name) {
  if (!folder.empty() && !folder.ends_with('/') && !name.empty()) {
    folder += '/';
  }
  return folder.append(name);
}

/// Returns the kind of the file at `path`, which the directory does not say on all file systems.
directory_entry::type kind_of(const ::dirent64& entry, const std::string& path) noexcept {
  unsigned type = entry.d_type;
  if (struct ::statx about{};
      type == DT_UNKNOWN &&  // it may be gone
      platform::system::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &about) == 0) {
    type = IFTODT(about.stx_mode);
  }
  switch (type) {
    case DT_REG:
      return directory_entry::type::file;
    case DT_DIR:
      return directory_entry::type::directory;
    case DT_LNK:
      return directory_entry::type::link;
    default:
      return directory_entry::type::other;
  }
}

/// Adds the names of one directory, whose path below the listed one is `inner`. Returns 0 or the negated number of an
/// error.
std::int64_t list_one(path_call& call, const std::string& inner, const std::string& path) {
  const int follow = inner.empty() ? 0 : O_NOFOLLOW;
  const descriptor opened(
      platform::system::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow));
  if (!opened.is_open()) {
    return -errno;
  }
  alignas(::dirent64) char buffer[4096];
  for (;;) {
    const ::ssize_t got = platform::system::getdents64(opened.native(), buffer, sizeof buffer);
    if (got <= 0) {
      return got == 0 ? 0 : -errno;
    }
    for (::ssize_t at = 0; at < got;) {
      const auto& entry = *reinterpret_cast<const ::dirent64*>(buffer + at);
      at += entry.d_reclen;
      const std::string_view name = entry.d_name;
      if (name == "." || name == "..") {
        continue;
      }
      if (call.found.size() == call.limit) {
        return -EOVERFLOW;
      }
      std::string below = join(inner, name);
      const directory_entry::type kind = kind_of(entry, join(path, name));
      if (call.depth == directory_entry::depth::all && kind == directory_entry::type::directory) {
        call.waiting.push_back(below);
      }
      call.found.push_back({std::move(below), kind});
    }
  }
}

/// Lists some directories; a stop and the deadline are noticed between two such calls. Returns 1 if more are left.
std::int64_t list_some(int /*native*/, void* argument) noexcept {
  auto& call = *static_cast<path_call*>(argument);
  try {
    if (call.waiting.empty()) {
      call.waiting.emplace_back();  // the listed directory itself
    }
    for (int i = 0; i < directories_of_a_call && !call.waiting.empty(); ++i) {
      const std::string inner = std::move(call.waiting.back());
      call.waiting.pop_back();
      const std::string path = join(call.path, inner);
      const std::int64_t done = list_one(call, inner, path);
      const bool gone = !inner.empty() && (done == -ENOENT || done == -ENOTDIR || done == -ELOOP);
      if (done != 0 && !gone) {
        call.failed = done == -EOVERFLOW ? call.path : path;  // the limit is that of the whole list
        return done;
      }
    }
    return call.waiting.empty() ? 0 : 1;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

file_result<> run(path_call& call, descriptor::syscall what, const char* action, std::string_view path,
                  std::string_view other, time_limit deadline) noexcept {
  if (path.find('\0') != std::string_view::npos || other.find('\0') != std::string_view::npos) {
    return fail(std::make_error_code(std::errc::invalid_argument), action, path);
  }
  try {
    call.path = path;
    call.other = other;
  } catch (const std::bad_alloc&) {
    return fail(std::make_error_code(std::errc::not_enough_memory), action, path);
  }
  result<std::int64_t> done;
  do {
    done = perform(operation::call(what, &call), deadline);
  } while (done && *done != 0);
  if (!done) {
    return fail(done.error(), action, call.failed.empty() ? path : call.failed);
  }
  return {};
}

}  // namespace

file_result<std::vector<directory_entry>> list_directory(std::string_view path, directory_entry::depth depth,
                                                         std::size_t limit, time_limit deadline) noexcept {
  path_call call;
  call.depth = depth;
  call.limit = limit;
  if (auto done = run(call, list_some, "list", path, {}, deadline); !done) {
    return std::unexpected(std::move(done.error()));
  }
  return std::move(call.found);
}

file_result<> create_directory(std::string_view path, time_limit deadline) noexcept {
  path_call call;
  const descriptor::syscall make = [](int, void* argument) noexcept {
    return detail::result_of_call(platform::system::mkdir(static_cast<path_call*>(argument)->path.c_str(), 0777));
  };
  return run(call, make, "make directory", path, {}, deadline);
}

file_result<> rename_path(std::string_view from, std::string_view to, time_limit deadline) noexcept {
  path_call call;
  const descriptor::syscall rename = [](int, void* argument) noexcept {
    const auto& paths = *static_cast<path_call*>(argument);
    return detail::result_of_call(platform::system::rename(paths.path.c_str(), paths.other.c_str()));
  };
  auto done = run(call, rename, "rename", from, to, deadline);
  if (!done) {
    done.error().target = std::move(call.other);
  }
  return done;
}

file_result<> remove_path(std::string_view path, time_limit deadline) noexcept {
  path_call call;
  const descriptor::syscall remove = [](int, void* argument) noexcept {
    const char* const named = static_cast<path_call*>(argument)->path.c_str();
    return detail::result_of_call(platform::system::remove(named));
  };
  return run(call, remove, "remove", path, {}, deadline);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
