// Serves the files of a folder: opens them safely, and answers conditions and ranges.
#include "pirn/http/static_files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <system_error>

#include "http/characters.hpp"
#include "http/conditions.hpp"
#include "http/read_at.hpp"
#include "io/attempt.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

struct media_type {
  std::string_view extension;
  std::string_view type;
};
constexpr media_type media_types[] = {
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/vnd.microsoft.icon"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"svg", "image/svg+xml"},
    {"txt", "text/plain; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"woff2", "font/woff2"},
    {"xml", "text/xml; charset=utf-8"},
    {"zip", "application/zip"},
};

bool climbs(std::string_view path) noexcept {
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    if (path.substr(0, slash) == "..") {
      return true;
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return false;
}

constexpr int file_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/// Calls `open`, which returns a descriptor or -1 with errno, until the outcome is about the file. A signal is not, nor
/// is a rename anywhere on the machine while the kernel followed a ".." of a link (EAGAIN).
template <class Open>
int open_at_last(Open open) noexcept {
  constexpr int max_tries = 100;  // a lease that must be broken first also gives EAGAIN
  for (int tries = 1;; ++tries) {
    const int file = open();
    if (file >= 0 || (errno != EINTR && errno != EAGAIN) || tries == max_tries) {
      return file;
    }
  }
}

int open_below(int root, const std::string& path) noexcept {
  ::open_how how{};
  how.flags = file_flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return open_at_last([&] { return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)); });
}

int open_component(int folder, const std::string& name, int flags) noexcept {
  return open_at_last([&] { return ::openat(folder, name.c_str(), flags | O_NOFOLLOW); });
}

/// Opens a path component by component, without symbolic links: for kernels without openat2 (before 5.6), and for
/// containers that refuse it.
int open_step_by_step(int root, std::string_view path) {
  descriptor folder;
  int at = root;
  for (;;) {
    const auto slash = path.find('/');
    const std::string component(path.substr(0, slash));
    if (component == "..") {
      errno = EXDEV;
      return -1;
    }
    if (slash == path.npos) {
      return open_component(at, component.empty() ? "." : component, file_flags);
    }
    path.remove_prefix(slash + 1);
    if (component.empty()) {
      continue;
    }
    descriptor next(open_component(at, component, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next.is_open()) {
      return -1;
    }
    folder = std::move(next);
    at = folder.native();
  }
}

int status_for(const std::error_code& error) noexcept {
  if (error == std::errc::permission_denied || error == std::errc::operation_not_permitted ||
      error == std::errc::cross_device_link || error == std::errc::too_many_symbolic_link_levels) {
    return 403;
  }
  if (error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system ||
      error == std::errc::not_enough_memory || error == std::errc::resource_unavailable_try_again) {
    return 503;
  }
  // No such name, or an object that cannot be read as a file.
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
      error == std::errc::filename_too_long || error == std::errc::invalid_argument ||
      error == std::errc::no_such_device || error == std::errc::no_such_device_or_address) {
    return 404;
  }
  return 500;
}

std::string tag_of(const struct ::stat& about) {
  char text[64];
  const int length =
      std::snprintf(text, sizeof text, "\"%llx-%llx-%lx\"", static_cast<unsigned long long>(about.st_size),
                    static_cast<unsigned long long>(about.st_mtim.tv_sec), about.st_mtim.tv_nsec);
  return {text, static_cast<std::size_t>(length)};
}

/// Returns the date for Last-Modified: not later than the answer's own date (RFC 9110, 8.8.2.1), and not before year 1,
/// where the years of this form begin.
std::string date_of(const struct ::stat& about) {
  constexpr std::int64_t year_one = -62'135'596'800;
  return format_date(std::max(std::min<std::int64_t>(about.st_mtim.tv_sec, ::time(nullptr)), year_one));
}

bool parse_number(std::string_view text, std::uint64_t& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    number = UINT64_MAX;  // no file is that large, so more does not matter
  }
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

/// The bytes [first, first + length) of a representation.
struct byte_range {
  std::uint64_t first;   ///< the offset of the first byte
  std::uint64_t length;  ///< the number of bytes
};
/// Which part of a representation a range of a request names.
enum class range_kind : std::uint8_t { whole, part, unsatisfiable };

/// Applies a Range header to `size` bytes. A value that is not one well-formed range of bytes is ignored: `whole`.
range_kind parse_range(std::string_view value, std::uint64_t size, byte_range& range) noexcept {
  constexpr std::string_view unit = "bytes=";
  if (!same_token(value.substr(0, unit.size()), unit)) {
    return range_kind::whole;
  }
  value.remove_prefix(unit.size());
  const auto dash = value.find('-');
  if (dash == value.npos || value.find(',') != value.npos) {
    return range_kind::whole;
  }
  const std::string_view from = value.substr(0, dash);
  const std::string_view to = value.substr(dash + 1);
  std::uint64_t first = 0;
  std::uint64_t last = UINT64_MAX;
  if (from.empty()) {
    std::uint64_t suffix = 0;
    if (!parse_number(to, suffix)) {
      return range_kind::whole;
    }
    if (suffix == 0 || size == 0) {
      return range_kind::unsatisfiable;
    }
    range.length = std::min(suffix, size);
    range.first = size - range.length;
    return range_kind::part;
  }
  if (!parse_number(from, first) || (!to.empty() && (!parse_number(to, last) || last < first))) {
    return range_kind::whole;
  }
  if (first >= size) {
    return range_kind::unsatisfiable;
  }
  range.first = first;
  range.length = std::min(last, size - 1) - first + 1;
  return range_kind::part;
}

}  // namespace

std::string_view type_of(std::string_view name) noexcept {
  const auto dot = name.rfind('.');
  if (dot != name.npos) {
    for (const media_type& known : media_types) {
      if (same_token(known.extension, name.substr(dot + 1))) {
        return known.type;
      }
    }
  }
  return "application/octet-stream";
}

std::expected<std::string, int> decode_path(std::string_view encoded) {
  if (!encoded.starts_with('/')) {
    return std::unexpected(400);
  }
  std::string path;
  path.reserve(encoded.size());
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    char c = encoded[i];
    if (c == '%') {
      const int high = i + 2 < encoded.size() ? detail::hex_value(encoded[i + 1]) : -1;
      const int low = i + 2 < encoded.size() ? detail::hex_value(encoded[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return std::unexpected(400);
      }
      c = static_cast<char>(16 * high + low);
      i += 2;
    }
    if (c == '\0') {
      return std::unexpected(400);
    }
    path.push_back(c);
  }
  if (climbs(path)) {
    return std::unexpected(403);
  }
  return path;
}

static_files::static_files(const std::string& folder)
    : root_(std::make_shared<descriptor>(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))) {
  if (!root_->is_open()) {
    throw std::system_error(pirn::detail::last_error(), "pirn: cannot open the folder " + folder);
  }
}

result<descriptor> static_files::open(const std::string& path) const {
  descriptor file(open_below(root_->native(), path));
  // A filter of system calls reports "not permitted" too. If the file itself is not permitted, the second way fails as
  // well.
  if (!file.is_open() && (errno == ENOSYS || errno == EPERM || errno == EACCES)) {
    file = descriptor(open_step_by_step(root_->native(), path));
  }
  if (!file.is_open()) {
    return pirn::fail(pirn::detail::last_error());
  }
  return file;
}

void static_files::operator()(const request& asked, response& answer) const {
  if (asked.method == "OPTIONS" && asked.target == "*") {
    answer.status(204).header("Allow", "GET, HEAD, OPTIONS");
    return;
  }
  if (asked.method != "GET" && asked.method != "HEAD") {
    answer.fail(405).header("Allow", "GET, HEAD");
    return;
  }
  const auto decoded = decode_path(asked.path());
  if (!decoded) {
    answer.fail(decoded.error());
    return;
  }
  // Relative to the root: openat2 treats an absolute path as an escape.
  std::string path = decoded->substr(std::min(decoded->find_first_not_of('/'), decoded->size()));
  const bool names_folder = path.empty() || path.ends_with('/');
  if (names_folder) {
    path += "index.html";
  }
  auto file = open(path);
  if (!file) {
    answer.fail(status_for(file.error()));
    return;
  }
  struct ::stat about{};
  if (const auto done = look_at(file->native(), about); !done) {
    answer.fail(status_for(done.error()));
    return;
  }
  if (S_ISDIR(about.st_mode)) {
    if (names_folder) {
      answer.fail(404);  // index.html is itself a folder
      return;
    }
    // Only one slash in front: two would name another host.
    std::string with_slash(asked.path().substr(asked.path().find_first_not_of('/') - 1));
    with_slash.append("/").append(asked.target.substr(asked.path().size()));
    answer.fail(301).header("Location", with_slash);
    return;
  }
  if (!S_ISREG(about.st_mode)) {
    answer.fail(403);
    return;
  }
  // Each attempt begins with the conditions, since they are about the content that is sent.
  for (int attempts = 0; attempts < max_attempts; ++attempts) {
    if (answer_unless_changed(asked, answer, type_of(path), *file, about)) {
      return;
    }
  }
  answer.fail(503);
}

bool static_files::answer_unless_changed(const request& asked, response& answer, std::string_view type,
                                         descriptor& file, struct ::stat& about) {
  const std::string tag = tag_of(about);
  const std::int64_t modified = about.st_mtim.tv_sec;
  const auto add_validators = [&] { answer.header("Last-Modified", date_of(about)).header("ETag", tag); };
  switch (check_conditions(asked, tag, modified)) {
    case condition::failed:
      answer.fail(412);
      return true;
    case condition::not_modified:
      add_validators();
      answer.status(304);
      return true;
    case condition::holds:
      break;
  }
  auto size = static_cast<std::uint64_t>(about.st_size);
  const std::int64_t modified_exactly = modified_at(about);
  const bool small = size <= small_file;
  if (small) {
    const auto unchanged = read_if_unchanged(file.native(), 0, static_cast<std::size_t>(size), answer.body_, about);
    if (!unchanged) {
      answer.fail(status_for(unchanged.error()));
      return true;
    }
    if (!*unchanged) {
      answer.body_.resize(0);
      return false;
    }
    size = answer.body_.size();
  }
  // A file that holds less than its reported size is not on a disk, and these fields do not identify a copy of it.
  if (size == static_cast<std::uint64_t>(about.st_size)) {
    add_validators();
  }
  byte_range part{0, size};
  const auto wanted = asked.method == "GET" ? asked.find("Range") : std::nullopt;
  if (wanted && range_applies(asked, tag, modified)) {
    const range_kind kind = parse_range(*wanted, size, part);
    if (kind == range_kind::unsatisfiable) {
      answer.fail(416).header("Content-Range", "bytes */" + std::to_string(size));
      return true;
    }
    if (kind == range_kind::part) {
      answer.status(206).header("Content-Range", "bytes " + std::to_string(part.first) + "-" +
                                                     std::to_string(part.first + part.length - 1) + "/" +
                                                     std::to_string(size));
    }
  }
  answer.header("Content-Type", type).header("Accept-Ranges", "bytes");
  if (small) {
    answer.body_.resize(static_cast<std::size_t>(part.first + part.length));
    answer.body_.erase(0, static_cast<std::size_t>(part.first));
  } else {
    answer.file(std::move(file), part.first, part.length);
    answer.file_size_ = size;
    answer.file_modified_ = modified_exactly;
  }
  return true;
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
