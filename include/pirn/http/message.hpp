// Requests and responses as a handler sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pirn/http/detail/body_string.hpp"
#include "pirn/io/descriptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// One header field.
struct header {
  std::string_view name;   ///< as sent, in upper or lower case
  std::string_view value;  ///< as sent
};

/// A client's request. Its members are views into the connection's buffers, valid until the handler returns.
struct request {
  std::string_view method;  ///< as sent; HTTP methods are case-sensitive
  std::string_view target;  ///< as sent, from the first slash: "/a%20b?x=1"; "*" for OPTIONS of the whole server
  std::span<const header> headers;  ///< in order; if the target names a host, Host has that value
  std::string_view body;            ///< all of it, or empty
  int minor_version = 1;            ///< of HTTP/1.x

  /// Returns the target without its query, still percent-encoded.
  [[nodiscard]] std::string_view path() const noexcept { return target.substr(0, target.find('?')); }
  /// Returns the first header with that name (in upper or lower case), or nullopt. O(headers).
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
  /// Returns the requested host and port, such as "example.org:8080": those of a target like
  /// "http://example.org:8080/x", else those of the Host header; empty if neither names one. O(headers).
  [[nodiscard]] std::string_view authority() const noexcept { return find("Host").value_or(std::string_view()); }
};

/// The response to a request: 200 with an empty body unless the handler sets something else. The server adds the
/// framing of the message, Date and Server. It omits the body where HTTP allows none: for HEAD, 204, 205 and 304.
class response {
 public:
  /// Sets the status. Throws std::invalid_argument unless it is a final one, 200 to 599.
  response& status(int code);
  /// Returns the status.
  [[nodiscard]] int status() const noexcept { return status_; }

  /// Adds a header field; a Content-Type replaces an earlier one. Throws std::invalid_argument for an invalid field
  /// name, for line breaks and other control characters in the value, and for the fields that the server writes itself:
  /// Connection, Content-Length, Date, Keep-Alive, Server, Trailer, Transfer-Encoding.
  response& header(std::string_view name, std::string_view value);
  /// Sets the body, which is copied, and its media type.
  response& body(std::string_view content, std::string_view type = "text/plain");
  /// Sends a part of a regular file as the body. A part of at most 32 KiB is read first: if the file turns out to be
  /// shorter, so is the body, except that a 206 becomes a 500. If the file cannot be read, the response becomes a
  /// 500; if it is changed all the time, a 503. If a larger part is truncated or overwritten while it is sent, the
  /// client sees the connection end too early. Throws std::invalid_argument if the descriptor is not open.
  response& file(descriptor source, std::uint64_t offset, std::uint64_t length);
  /// Ends the connection after this response.
  response& close() noexcept {
    close_ = true;
    return *this;
  }
  /// Sets the status and a one-line body that names it, for errors. Throws as `status` does.
  response& fail(int code);

 private:
  friend class connection;
  friend class static_files;
  void reset() noexcept;
  void drop_content_type();

  int status_ = 200;
  bool close_ = false;
  std::string headers_;  ///< complete lines
  detail::body_string body_;
  descriptor file_;
  std::uint64_t file_offset_ = 0;
  std::uint64_t file_length_ = 0;
  /// The file as the headers describe it: its whole size, and its time of modification in nanoseconds; 0 if they do not
  /// describe it.
  std::uint64_t file_size_ = 0;
  std::int64_t file_modified_ = 0;
};

/// Returns the reason phrase of a status code; "Unknown" for codes outside its table.
[[nodiscard]] std::string_view reason_of(int status) noexcept;
/// Returns whether two header names (or other ASCII tokens) are equal except for case.
[[nodiscard]] bool same_token(std::string_view a, std::string_view b) noexcept;
/// Returns whether a text may be a header name, a method or another token (RFC 9110, 5.6.2).
[[nodiscard]] bool is_token(std::string_view text) noexcept;
/// Returns whether a field may have this value: it has no control characters except tabs.
[[nodiscard]] bool is_field_value(std::string_view value) noexcept;
/// Formats a point of time as HTTP writes it (RFC 9110, 5.6.7): 29 characters.
[[nodiscard]] std::string format_date(std::int64_t seconds_since_1970);
/// Parses a date in any of the three forms that a recipient must understand; returns nullopt for any other text.
[[nodiscard]] std::optional<std::int64_t> parse_date(std::string_view text) noexcept;

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
