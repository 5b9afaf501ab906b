// An http handler that serves the files of a folder.
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
/// Last-Modified and ETag. Understands If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since, If-Range, and
/// Range with a single range (206, 416); several ranges get the whole file. Answers "OPTIONS *" with the methods that
/// it understands. No target opens anything outside the folder: ".." is refused even if it is encoded, and so are
/// symbolic links that lead outside. A file that cannot be opened or read because of a system error is a 500 or 503. So
/// is a file of up to 32 KiB that is changed all the time, since a read during a change may mix two contents. Any fiber
/// or thread.
class static_files {
 public:
  /// Throws std::system_error if the folder cannot be opened.
  explicit static_files(const std::string& folder);
  /// Answers a request. Blocks the worker while the disk is read.
  void operator()(const request& asked, response& answer) const;

 private:
  [[nodiscard]] result<descriptor> open(const std::string& path) const;
  /// Returns false, without an answer, if the file has changed since `about` was taken; `about` is then taken anew.
  [[nodiscard]] static bool answer_unless_changed(const request& asked, response& answer, std::string_view type,
                                                  descriptor& file, struct ::stat& about);
  std::shared_ptr<const descriptor> root_;  // copies serve the same folder
};

/// Decodes the percent-encoding of a target's path. Fails with an error status: 400 for a malformed path (also for an
/// encoded zero byte), 403 for one with a ".." component.
[[nodiscard]] std::expected<std::string, int> decode_path(std::string_view encoded);
/// Returns the media type for a file name, by its extension.
[[nodiscard]] std::string_view type_of(std::string_view name) noexcept;

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
