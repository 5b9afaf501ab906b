// Directories: what is in them, and the names of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pirn/io/file_error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// One name in a directory.
struct directory_entry {
  /// The kind of the named thing. A link is not followed.
  enum class type : std::uint8_t { file, directory, link, other };
  /// How deep `list_directory` goes.
  enum class depth : std::uint8_t { one, all };
  std::string path;                          ///< relative to the directory that was listed
  directory_entry::type kind = type::other;  ///< what the name is of
};

// These calls run in the blocking pool, as those of `file`. Each is a suspension point; a stop or a deadline is noticed
// before it begins, and by `list_directory` between two directories too, though not at each. Errors name the path.

/// Returns the names in a directory, without "." and "..", in no promised order; with `directory_entry::depth::all`
/// those of its directories too, each after the directory that it is in. Fails with std::errc::value_too_large beyond
/// `limit` names; another error names the directory that could not be read. A name that comes or goes meanwhile may be
/// missing.
[[nodiscard]] file_result<std::vector<directory_entry>> list_directory(
    std::string_view path, directory_entry::depth depth = directory_entry::depth::one, std::size_t limit = 1'000'000,
    time_limit deadline = platform::never) noexcept;
/// Makes a directory, whose parent exists.
file_result<> create_directory(std::string_view path, time_limit deadline = platform::never) noexcept;
/// Renames a file or a directory, and replaces a file that has the new name, at once for all readers. An error names
/// both paths.
file_result<> rename_path(std::string_view from, std::string_view to, time_limit deadline = platform::never) noexcept;
/// Removes a file, a link or an empty directory.
file_result<> remove_path(std::string_view path, time_limit deadline = platform::never) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
