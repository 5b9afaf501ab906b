// Checks the fields and the target of a request.
#include "http/request_checks.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "pirn/net/address.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept {
  return static_cast<char>(c | 0x20) >= 'a' && static_cast<char>(c | 0x20) <= 'z';
}
constexpr bool is_hex_digit(char c) noexcept {
  return is_digit(c) || (static_cast<char>(c | 0x20) >= 'a' && static_cast<char>(c | 0x20) <= 'f');
}
constexpr bool is_number(std::string_view text) noexcept { return std::ranges::all_of(text, is_digit); }

/// Whether two hexadecimal digits follow each "%".
constexpr bool has_whole_escapes(std::string_view text) noexcept {
  for (auto at = text.find('%'); at != text.npos; at = text.find('%', at + 3)) {
    if (text.size() - at < 3 || !is_hex_digit(text[at + 1]) || !is_hex_digit(text[at + 2])) {
      return false;
    }
  }
  return true;
}

constexpr bool is_name_char(char c) noexcept {
  constexpr std::string_view marks = "-._~!$&'()*+,;=%";  // besides letters and digits
  return is_digit(c) || is_letter(c) || marks.find(c) != marks.npos;
}

/// Whether a text, given without its brackets, is an address in brackets of RFC 3986, 3.2.2.
bool is_literal(std::string_view text) {
  if (text.starts_with('v') || text.starts_with('V')) {
    const auto dot = std::min(text.find('.'), text.size());
    const std::string_view version = text.substr(1, dot - 1);
    const std::string_view address = text.substr(std::min(dot + 1, text.size()));
    return !version.empty() && std::ranges::all_of(version, is_hex_digit) && !address.empty() &&
           std::ranges::all_of(address, [](char c) { return c == ':' || (c != '%' && is_name_char(c)); });
  }
  if (text.find('%') != text.npos) {
    return false;  // a zone, which is of no use outside its host
  }
  const auto address = ip_address::parse(text);
  return address && address->is_v6();
}

struct host_and_port {
  std::string_view host;
  std::string_view port;
};

/// Parses a host and its port (RFC 3986, 3.2.2 and 3.2.3); returns nullopt if the text is malformed. Either may be
/// empty. A user is not allowed.
std::optional<host_and_port> parse_authority(std::string_view text) {
  const bool literal = text.starts_with('[');
  const auto bracket = literal ? text.find(']') : 0;
  if (bracket == text.npos) {
    return std::nullopt;
  }
  const auto end = literal ? bracket + 1 : std::min(text.find(':'), text.size());
  const host_and_port parts{text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
  const bool is_host = literal ? is_literal(parts.host.substr(1, parts.host.size() - 2))
                               : std::ranges::all_of(parts.host, is_name_char) && has_whole_escapes(parts.host);
  const bool has_port = end == text.size() || text[end] == ':';
  return is_host && has_port && is_number(parts.port) ? std::optional(parts) : std::nullopt;
}

/// Calls `each` for each element of a list (RFC 9110, 5.6.1), also for empty ones.
template <class Each>
void for_each_element(std::string_view list, Each each) {
  constexpr std::string_view blanks = " \t";
  for (;;) {
    const auto comma = list.find(',');
    std::string_view element = list.substr(0, comma);
    element.remove_prefix(std::min(element.find_first_not_of(blanks), element.size()));
    element = element.substr(0, element.find_last_not_of(blanks) + 1);
    each(element);
    if (comma == list.npos) {
      return;
    }
    list.remove_prefix(comma + 1);
  }
}

/// Whether the name of a field is `wanted`, which has the same length. The first letter rules out most names.
bool is(std::string_view name, std::string_view wanted) noexcept {
  return (name[0] | 0x20) == wanted[0] && same_token(name, wanted);
}

/// Collects what the fields of a head say together.
class fields_of {
 public:
  void add(const parsed_request& request, std::size_t which, const char* head) noexcept {
    const std::string_view name = text_of(request.fields[which].name, head);
    const std::string_view value = text_of(request.fields[which].value, head);
    switch (name.size()) {
      case 4:
        if (is(name, "host")) {
          bad_ |= host_ != parsed_request::npos;
          host_ = which;
        }
        break;
      case 6:
        if (is(name, "expect")) {
          expects_ = true;
          unknown_expectation_ |= !same_token(value, "100-continue");
        }
        break;
      case 10:
        if (is(name, "connection")) {
          add_options(value);
        }
        break;
      case 14:
        if (is(name, "content-length")) {
          // Another server on the way could treat two equal fields differently from one.
          bad_ |= has_length_ || !parse_length(value);
          has_length_ = true;
        }
        break;
      case 17:
        if (is(name, "transfer-encoding")) {
          add_codings(value);
        }
        break;
      default:
        break;
    }
  }

  int apply_to(parsed_request& request) const noexcept {
    const bool is_old = request.version < 11;
    if (bad_ || (host_ == parsed_request::npos && !is_old) || (codings_ > 0 && (is_old || has_length_))) {
      return 400;
    }
    // Without "chunked" at the end the length of the body is unknown (RFC 9112, 6.3).
    if (chunked_ > 1 || (chunked_ == 1 && !chunked_is_last_)) {
      return 400;
    }
    if (codings_ > chunked_) {
      return 501;
    }
    if (expects_ && unknown_expectation_ && !is_old) {
      return 417;
    }
    request.host = host_;
    request.length = length_;
    request.chunked = chunked_ == 1;
    request.expects = expects_ && !is_old;
    request.keep = !closes_ && (keeps_ || !is_old);
    return 0;
  }

 private:
  bool parse_length(std::string_view text) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length_);
    return error == std::errc{} && end == text.data() + text.size();
  }
  void add_options(std::string_view list) noexcept {
    for_each_element(list, [this](std::string_view option) {
      closes_ |= same_token(option, "close");
      keeps_ |= same_token(option, "keep-alive");
      bad_ |= !option.empty() && !is_token(option);
    });
  }
  void add_codings(std::string_view list) noexcept {
    for_each_element(list, [this](std::string_view coding) {
      ++codings_;
      chunked_is_last_ = same_token(coding, "chunked");
      chunked_ += chunked_is_last_ ? 1 : 0;
      bad_ |= !is_token(coding.substr(0, coding.find_first_of("; \t")));
    });
  }

  std::size_t host_ = parsed_request::npos;
  std::uint64_t length_ = 0;
  std::uint32_t codings_ = 0;
  std::uint32_t chunked_ = 0;
  bool has_length_ = false;
  bool chunked_is_last_ = false;
  bool closes_ = false;
  bool keeps_ = false;
  bool expects_ = false;
  bool unknown_expectation_ = false;
  bool bad_ = false;
};

/// Returns where the authority begins in a target of the absolute form; 0 for another form or a scheme that is not
/// HTTP's.
std::size_t authority_begin(std::string_view target) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (same_token(target.substr(0, scheme.size()), scheme)) {
      return scheme.size();
    }
  }
  return 0;
}

int check_absolute(parsed_request& request, char* head, bool for_options) {
  const std::string_view target = text_of(request.target, head);
  const std::size_t begin = authority_begin(target);
  if (begin == 0) {
    return 400;
  }
  const std::size_t end = std::min(target.find_first_of("/?", begin), target.size());
  const auto authority = parse_authority(target.substr(begin, end - begin));
  if (!authority || authority->host.empty()) {
    return 400;
  }
  const auto at = static_cast<std::uint32_t>(request.target.offset + begin);
  request.authority = {at, static_cast<std::uint32_t>(end - begin)};
  request.target.offset += static_cast<std::uint32_t>(end);
  request.target.size -= static_cast<std::uint32_t>(end);
  if (request.target.size == 0 || head[request.target.offset] == '?') {
    // An empty path becomes "/", and the authority moves to make room for it. For OPTIONS without a query it becomes
    // "*" (RFC 9112, 3.2.4).
    const bool whole_server = request.target.size == 0 && for_options;
    --request.authority.offset;
    std::memmove(head + at - 1, head + at, request.authority.size);
    --request.target.offset;
    ++request.target.size;
    head[request.target.offset] = whole_server ? '*' : '/';
    return 0;
  }
  return 0;
}

/// Checks the form of a target (RFC 9112, 3.2).
int check_target(parsed_request& request, char* head) {
  const std::string_view method = text_of(request.method, head);
  const std::string_view target = text_of(request.target, head);
  if (method == "CONNECT") {
    const auto parts = parse_authority(target);
    // The client asks for a tunnel, and the server has none. The client might send on as if it had one, so the
    // connection ends.
    return parts && !parts->host.empty() && !parts->port.empty() ? 501 : 400;
  }
  if (target.starts_with('/')) {
    return 0;
  }
  if (target == "*") {
    return method == "OPTIONS" ? 0 : 400;
  }
  return check_absolute(request, head, method == "OPTIONS");
}

}  // namespace

int check_head(parsed_request& request, char* head) {
  fields_of fields;
  for (std::size_t i = 0; i < request.fields.size(); ++i) {
    fields.add(request, i, head);
  }
  if (const int status = fields.apply_to(request); status != 0) {
    return status;
  }
  if (request.host != parsed_request::npos) {
    request.authority = request.fields[request.host].value;
    if (!parse_authority(text_of(request.authority, head))) {
      return 400;
    }
  }
  return check_target(request, head);
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
