// The files of a folder as an http handler.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pirn/http/message.hpp"

struct stat;  // of <sys/stat.h>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// Answers GET and HEAD from the files below one folder; index.html for a folder. Sends Content-Type by extension,
/// Last-Modified, ETag; understands If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since, If-Range, and
/// Range with a single range (206, 416); several ranges get the whole file. Answers "OPTIONS *" with what it
/// understands. Whatever the target says, nothing outside the folder is opened: ".." is refused also when encoded, and
/// so are symbolic links that lead outside. A file that cannot be opened or read for a reason of the system's is a 500
/// or 503; so is one of up to 32 KiB that is changed all the time, since a read beside a change may mix two contents.
/// Any fiber or thread.
class static_files {
 public:
  /// Throws std::system_error if the folder cannot be opened.
  explicit static_files(const std::string& folder);
  /// Blocks the worker while the disk is read.
  void operator()(const request& asked, response& answer) const;

 private:
  [[nodiscard]] result<descriptor> open(const std::string& path) const;
  /// False, and nothing is said, where the file has been changed since the look `about`, which becomes a new one.
  [[nodiscard]] static bool answer_unless_changed(const request& asked, response& answer, std::string_view type,
                                                  descriptor& file, struct ::stat& about);
  std::shared_ptr<const descriptor> root_;  // copies serve the same folder
};

/// A target's path without percent-encoding, or an error status: 400 for what is not well-formed (also an encoded
/// zero), 403 for one with a ".." component.
[[nodiscard]] std::expected<std::string, int> decode_path(std::string_view encoded);
/// The media type for a file name, by its extension.
[[nodiscard]] std::string_view type_of(std::string_view name) noexcept;

/// The bytes [first, first + length) of a representation.
struct byte_range {
  std::uint64_t first;
  std::uint64_t length;
  friend bool operator==(const byte_range&, const byte_range&) = default;
};
enum class range_kind : std::uint8_t { whole, part, unsatisfiable };
/// What a Range header asks for of `size` bytes; what is not one well-formed range of bytes is to be ignored: whole.
[[nodiscard]] range_kind parse_range(std::string_view value, std::uint64_t size, byte_range& range) noexcept;

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
