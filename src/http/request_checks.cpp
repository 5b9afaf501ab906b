#include "http/request_checks.hpp"

#include <algorithm>

namespace pirn::inline PIRN_ABI::http {

namespace {

constexpr bool is_alphanumeric(char c) noexcept {
  const char lower = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
}

constexpr bool is_scheme_char(char c) noexcept { return is_alphanumeric(c) || c == '+' || c == '-' || c == '.'; }

/// Whether it is what may stand for a host and its port (RFC 3986, 3.2.2 and 3.2.3); nothing may, too.
bool is_host(std::string_view text) noexcept {
  constexpr std::string_view marks = "-._~!$&'()*+,;=";  // of a name, beside letters, digits and "%"
  const auto is_name_char = [&](char c) { return is_alphanumeric(c) || c == '%' || marks.find(c) != marks.npos; };
  const auto is_literal_char = [&](char c) { return c == ':' || (c != '%' && is_name_char(c)); };
  const bool literal = text.starts_with('[');
  const auto end = literal ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == text.npos) {
    return false;
  }
  const std::string_view host = text.substr(literal ? 1 : 0, literal ? end - 1 : end);
  const std::string_view port = text.substr(literal ? end + 1 : end);
  return (literal ? !host.empty() && std::ranges::all_of(host, is_literal_char)
                  : std::ranges::all_of(host, is_name_char)) &&
         (port.empty() ||
          (port[0] == ':' && std::ranges::all_of(port.substr(1), [](char c) { return c >= '0' && c <= '9'; })));
}

}  // namespace

int check_head(const parsed_request& request, bool chunked, const char* head) noexcept {
  const int hosts_wanted = request.version >= 11 ? 1 : 0;
  if (request.hosts > 1 || static_cast<int>(request.hosts) < hosts_wanted) {
    return 400;
  }
  if (request.hosts == 1 && !is_host(text_of(request.host, head))) {
    return 400;
  }
  if (request.has_encoding && (request.version < 11 || request.other_encoding || !chunked)) {
    return request.version < 11 ? 400 : 501;
  }
  if (request.target.size == 0) {
    return 400;
  }
  return 0;
}

bool is_other_version(std::string_view head) noexcept {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  constexpr std::string_view form = " HTTP/d.d";
  if (line.size() < form.size()) {
    return false;
  }
  const std::string_view end = line.substr(line.size() - form.size());
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return end.starts_with(" HTTP/") && digit(end[6]) && end[7] == '.' && digit(end[8]) && !end.ends_with("1.0") &&
         !end.ends_with("1.1");
}

std::string_view path_of_target(const parsed_request& request, char* head) noexcept {
  const std::string_view target = text_of(request.target, head);
  // The form with a scheme and a host means the same as the path alone (RFC 9112, 3.2.2).
  const auto scheme = target.find("://");
  if (scheme == target.npos || scheme == 0 || !std::ranges::all_of(target.substr(0, scheme), is_scheme_char)) {
    return target;
  }
  const auto end = target.find_first_of("/?#", scheme + 3);
  if (end == target.npos) {
    return "/";
  }
  if (target[end] == '/') {
    return target.substr(end);
  }
  // An empty path is "/", too; what stands before the query is not needed any more.
  head[request.target.offset + end - 1] = '/';
  return target.substr(end - 1);
}

}  // namespace pirn::inline PIRN_ABI::http
