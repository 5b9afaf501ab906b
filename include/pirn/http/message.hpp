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
  std::string_view name;
  std::string_view value;
};

/// What the client asked for. Views into the connection's buffers: valid until the handler returns.
struct request {
  std::string_view method;  ///< as sent; HTTP methods are case-sensitive
  std::string_view target;  ///< as sent, from the first slash: "/a%20b?x=1"; "*" for OPTIONS of the whole server
  std::span<const header> headers;  ///< in their order; Host is what the target says, where that names one
  std::string_view body;
  int minor_version = 1;  ///< of HTTP/1.x

  /// The target without its query, still percent-encoded.
  [[nodiscard]] std::string_view path() const noexcept { return target.substr(0, target.find('?')); }
  /// The first header of that name (in any case), or none. O(headers).
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
  /// The host and port that are asked, such as "example.org:8080": those of a target like "http://example.org:8080/x",
  /// else those of the Host header; empty where neither names one. O(headers).
  [[nodiscard]] std::string_view authority() const noexcept { return find("Host").value_or(std::string_view()); }
};

/// What the client gets; 200 with an empty body unless the handler says otherwise. How the message is framed, Date and
/// Server are the server's business. The body is left out where HTTP allows none: for HEAD, 204, 205 and 304.
class response {
 public:
  /// Throws std::invalid_argument for what is not a final status, 200 to 599.
  response& status(int code);
  [[nodiscard]] int status() const noexcept { return status_; }

  /// Adds a header field; a Content-Type takes the place of an earlier one. Throws std::invalid_argument for what is
  /// not a field name, for line breaks and other control characters in the value, and for the fields that the server
  /// writes itself: Connection, Content-Length, Date, Keep-Alive, Server, Trailer, Transfer-Encoding.
  response& header(std::string_view name, std::string_view value);
  /// Sets the body, which is copied, and its media type.
  response& body(std::string_view content, std::string_view type = "text/plain");
  /// Sends a part of a regular file as the body. Where the file turns out to be shorter, so is the body of one of at
  /// most 32 KiB, but a 206 becomes a 500, as does a file that cannot be read; one that is changed all the time becomes
  /// a 503. Of a larger one that is cut or written over while it is sent the client sees the connection end too early.
  /// Throws std::invalid_argument for a descriptor that is not open.
  response& file(descriptor source, std::uint64_t offset, std::uint64_t length);
  /// Ends the connection after this response.
  response& close() noexcept {
    close_ = true;
    return *this;
  }
  /// Status and a one-line body that names it: for errors. Throws as `status` does.
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
  /// What the headers say of the file: its whole size, and the time in nanoseconds; 0 where they say nothing of it.
  std::uint64_t file_size_ = 0;
  std::int64_t file_modified_ = 0;
};

/// The reason phrase of a status code; "Unknown" for those that are not in RFC 9110.
[[nodiscard]] std::string_view reason_of(int status) noexcept;
/// Whether two header names (or other ASCII tokens) are the same but for case.
[[nodiscard]] bool same_token(std::string_view a, std::string_view b) noexcept;
/// Whether it may be a header name, a method or another token (RFC 9110, 5.6.2).
[[nodiscard]] bool is_token(std::string_view text) noexcept;
/// Whether a field may have this value: no control characters but tabs.
[[nodiscard]] bool is_field_value(std::string_view value) noexcept;
/// A point of time as HTTP writes it (RFC 9110, 5.6.7): 29 characters.
[[nodiscard]] std::string format_date(std::int64_t seconds_since_1970);
/// The opposite, from any of the three forms that a recipient has to understand; none for what is no such date.
[[nodiscard]] std::optional<std::int64_t> parse_date(std::string_view text) noexcept;

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
