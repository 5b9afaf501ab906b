// Errors of files and programs: the code, the path and what was done to it.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <system_error>

#include "pirn/io/error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Why a call on a file failed. Compares equal to the codes that its `code` equals: `error ==
/// std::errc::is_a_directory`.
struct file_error {
  std::error_code code;     ///< of the kernel, or an io_error
  const char* action = "";  ///< what was done, such as "open" or "write"; a literal
  std::string path;         ///< of which file or program; empty if there was no memory for it
  std::size_t done = 0;     ///< bytes that a read or a write had transferred before
  std::string target = {};  ///< the new path of a rename, whose folder may be what is missing; otherwise empty

  /// Returns a line such as "write /var/log/a: No space left on device (4096 bytes were done)".
  [[nodiscard]] std::string message() const;
  template <class Code>
    requires std::is_error_code_enum_v<Code> || std::is_error_condition_enum_v<Code>
  friend bool operator==(const file_error& error, Code wanted) noexcept {
    return error.code == wanted;
  }
};

/// The result of a call on a file.
template <class T = void>
using file_result = std::expected<T, file_error>;

/// Makes an error for a file_result. Never throws: without memory the path is left out.
std::unexpected<file_error> fail(std::error_code why, const char* action, std::string_view path,
                                 std::size_t done = 0) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
