// Parses HTTP/1 requests (RFC 9112), byte by byte. It records where the pieces of a head lie instead of copying them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "pirn/http/server.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

/// One request. Its head is kept as offsets from its first byte, since the buffer may move while it is read. Reused
/// from request to request.
struct parsed_request {
  struct piece {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
  };
  struct field {
    piece name;
    piece value;
  };

  piece method;
  piece target;
  int version = 11;
  std::vector<field> fields;
  detail::body_string body;

  // Filled in by `check_head`:
  piece authority;           ///< the target's, or the value of Host
  std::size_t host = npos;   ///< the index of the Host field
  std::uint64_t length = 0;  ///< of the body, unless it is chunked
  bool chunked = false;
  bool expects = false;  ///< whether the client waits to hear that its body is wanted
  bool keep = false;     ///< whether the client would send another request

  static constexpr std::size_t npos = SIZE_MAX;

  void clear() noexcept {
    fields.clear();
    body.clear();
    authority = {};
    host = npos;
    length = 0;
    chunked = expects = keep = false;
  }
};

/// A piece of the request that begins at `head`.
inline std::string_view text_of(parsed_request::piece piece, const char* head) noexcept {
  return {head + piece.offset, piece.size};
}

/// Looks at each byte once, and refuses the first byte that cannot belong to a request: no folded lines, no line ends
/// except CR LF, no control characters. The parser parses the head. After `begin_body`, which takes over the findings
/// of `check_head`, it parses the body. Trailers must be well-formed and are dropped.
class request_parser {
 public:
  request_parser(parsed_request& into, const server_options& limits) noexcept : into_(into), limits_(limits) {
    into_.clear();
  }

  /// Continues at `from` of the `size` bytes at `head`, where the request begins. Returns where it has stopped: behind
  /// the head, behind the request, at the end of the bytes, or at a byte that is refused.
  std::size_t parse(const char* head, std::size_t from, std::size_t size);
  /// Returns the status with which to refuse the request, or 0.
  [[nodiscard]] int refused() const noexcept { return refused_; }
  [[nodiscard]] bool is_head_done() const noexcept { return in_body_ || state_ == state::head_done; }
  [[nodiscard]] bool is_done() const noexcept { return state_ == state::done; }
  /// Begins the body, when the head is done. Returns 0, or a status with which to refuse the request.
  int begin_body() noexcept;

 private:
  enum class state : std::uint8_t {
    method,
    target,
    version,
    request_line_end,
    field_begin,
    name,
    value_begin,
    value,
    value_end,
    fields_end,
    head_done,
    length_data,
    size_begin,
    size,
    extension_space,  ///< behind a chunk's size or an extension, where only a semicolon may follow
    extension_begin,
    extension_name,
    extension_name_space,
    extension_value_begin,
    extension_token,
    extension_quoted,
    extension_escaped,
    extension_end,
    size_end,
    chunk_data,
    chunk_data_end,
    chunk_line_end,
    done,
  };

  const char* request_line(const char* at, const char* end);
  const char* field_line(const char* at, const char* end);
  const char* chunk_line(const char* at, const char* end);
  const char* data(const char* at, const char* end);
  const char* refuse(const char* at, int status = 400) noexcept;
  const char* expect(const char* at, char byte, state next) noexcept;
  const char* token(const char* at, const char* end, std::uint8_t kind) noexcept;
  [[nodiscard]] parsed_request::piece take_token(const char* end) noexcept;
  void end_size() noexcept;
  void add_field(const char* value_end);
  void end_fields() noexcept;

  parsed_request& into_;
  const server_options& limits_;
  const char* head_ = nullptr;
  state state_ = state::method;
  bool in_body_ = false;
  int refused_ = 0;
  std::uint32_t length_ = 0;  ///< of the token, digits or value so far
  parsed_request::piece name_;
  std::size_t trailers_ = 0;
  std::uint64_t left_ = 0;      ///< bytes left of the body or chunk; while a chunk's size is read, the size so far
  std::uint64_t overhead_ = 0;  ///< bytes of the body that are not data
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
