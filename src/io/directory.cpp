// Implements the calls on directories: each is one call in the blocking pool.
#include "pirn/io/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

/// Paths as the kernel wants them, and what the call in the pool finds.
struct path_call {
  std::string path;
  std::string other;
  directory_entry::depth depth = directory_entry::depth::one;
  std::size_t limit = 0;
  std::vector<directory_entry> found;
};

directory_entry::type kind_of(const std::filesystem::directory_entry& entry) noexcept {
  std::error_code ignored;  // it may be gone
  switch (entry.symlink_status(ignored).type()) {
    case std::filesystem::file_type::regular:
      return directory_entry::type::file;
    case std::filesystem::file_type::directory:
      return directory_entry::type::directory;
    case std::filesystem::file_type::symlink:
      return directory_entry::type::link;
    default:
      return directory_entry::type::other;
  }
}

/// Goes by a list of directories that are yet to be read, so the depth of a tree costs no stack.
std::int64_t list(int /*native*/, void* argument) noexcept {
  auto& call = *static_cast<path_call*>(argument);
  try {
    std::vector<std::string> waiting(1);
    while (!waiting.empty()) {
      const std::string inner = std::move(waiting.back());
      waiting.pop_back();
      std::error_code failed;
      std::filesystem::directory_iterator at(inner.empty() ? call.path : call.path + "/" + inner, failed);
      if (failed && !inner.empty() && failed == std::errc::no_such_file_or_directory) {
        continue;  // it was removed meanwhile
      }
      for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
        if (call.found.size() == call.limit) {
          return -EOVERFLOW;
        }
        const std::string name = at->path().filename().string();
        call.found.push_back({inner.empty() ? name : inner + "/" + name, kind_of(*at)});
        if (call.depth == directory_entry::depth::all && call.found.back().kind == directory_entry::type::directory) {
          waiting.push_back(call.found.back().path);
        }
      }
      if (failed) {
        return -failed.value();
      }
    }
    return 0;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::exception&) {
    return -EIO;
  }
}

std::int64_t result_of(int outcome) noexcept { return outcome == 0 ? 0 : -errno; }

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
  const auto done = perform(operation::call(what, &call), deadline);
  if (!done) {
    return fail(done.error(), action, path);
  }
  return {};
}

}  // namespace

file_result<std::vector<directory_entry>> list_directory(std::string_view path, directory_entry::depth depth,
                                                         std::size_t limit, time_limit deadline) noexcept {
  path_call call;
  call.depth = depth;
  call.limit = limit;
  if (auto done = run(call, list, "list", path, {}, deadline); !done) {
    return std::unexpected(std::move(done.error()));
  }
  return std::move(call.found);
}

file_result<> create_directory(std::string_view path, time_limit deadline) noexcept {
  path_call call;
  const descriptor::syscall make = [](int, void* argument) noexcept {
    return result_of(::mkdir(static_cast<path_call*>(argument)->path.c_str(), 0777));
  };
  return run(call, make, "make directory", path, {}, deadline);
}

file_result<> rename_path(std::string_view from, std::string_view to, time_limit deadline) noexcept {
  path_call call;
  const descriptor::syscall rename = [](int, void* argument) noexcept {
    const auto& paths = *static_cast<path_call*>(argument);
    return result_of(::rename(paths.path.c_str(), paths.other.c_str()));
  };
  return run(call, rename, "rename", from, to, deadline);
}

file_result<> remove_path(std::string_view path, time_limit deadline) noexcept {
  path_call call;
  const descriptor::syscall remove = [](int, void* argument) noexcept {
    const char* const named = static_cast<path_call*>(argument)->path.c_str();
    return result_of(std::remove(named));
  };
  return run(call, remove, "remove", path, {}, deadline);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
