// Implements file_error: its message, and its making without an exception.
#include "pirn/io/file_error.hpp"

#include <new>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

std::string file_error::message() const {
  std::string text = std::string(action) + " " + path + (target.empty() ? "" : " to " + target) + ": " + code.message();
  if (done != 0) {
    text += " (" + std::to_string(done) + " bytes were done)";
  }
  return text;
}

std::unexpected<file_error> fail(std::error_code why, const char* action, std::string_view path,
                                 std::size_t done) noexcept {
  file_error error{.code = why, .action = action, .path = {}, .done = done};
  try {
    error.path = path;
  } catch (const std::bad_alloc&) {
    error.path.clear();
  }
  return std::unexpected(std::move(error));
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
