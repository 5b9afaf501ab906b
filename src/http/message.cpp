// Requests and responses, reason phrases, and the three forms of dates.
#include "pirn/http/message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <stdexcept>

#include "http/characters.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

constexpr std::array<bool, 256> token_chars = [] {
  std::array<bool, 256> in{};
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  for (unsigned i = 0; i < in.size(); ++i) {
    const char c = static_cast<char>(i);
    in[i] = (c >= '0' && c <= '9') || (detail::lower(c) >= 'a' && detail::lower(c) <= 'z') ||
            (c != 0 && marks.find(c) != marks.npos);
  }
  return in;
}();

constexpr bool is_token_char(char c) noexcept { return token_chars[static_cast<unsigned char>(c)]; }
constexpr bool is_value_char(char c) noexcept {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

// A second field with one of these names would move the end of the message for a recipient, or contradict the server's
// own field.
constexpr std::string_view reserved_names[] = {"Connection", "Content-Length",   "Date", "Keep-Alive", "Server",
                                               "Trailer",    "Transfer-Encoding"};

constexpr std::string_view content_type = "Content-Type";

constexpr const char* day_names[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr const char* month_names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr const char* long_day_names[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

/// Parses a date piece by piece. After a piece that does not fit, nothing fits.
class date_reader {
 public:
  struct parts {
    int year = 0;
    int month = 0;  // from 1
    int day = 0;
    int hour = 0;
    int minute = 0;
    int second = 0;
  };

  explicit date_reader(std::string_view text) noexcept : left_(text) {}
  [[nodiscard]] bool is_done() const noexcept { return fits_ && left_.empty(); }
  [[nodiscard]] bool starts_with(char c) const noexcept { return left_.starts_with(c); }
  void literal(std::string_view text) noexcept { take(left_.starts_with(text) ? text.size() : 0, text.empty()); }
  int number(std::size_t digits) noexcept {
    const std::string_view text = left_.substr(0, digits);
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits = text.size() == digits && end == text.data() + digits && error == std::errc{} && value >= 0;
    take(fits ? digits : 0);
    return fits ? value : 0;
  }
  /// Takes one of `names`; returns its index.
  template <std::size_t Count>
  int name(const char* const (&names)[Count]) noexcept {
    for (std::size_t i = 0; i < Count; ++i) {
      if (left_.starts_with(names[i])) {
        literal(names[i]);
        return static_cast<int>(i);
      }
    }
    fits_ = false;
    return 0;
  }
  void time(parts& into) noexcept {
    into.hour = number(2);
    literal(":");
    into.minute = number(2);
    literal(":");
    into.second = number(2);
  }

 private:
  void take(std::size_t size, bool fits_empty = false) noexcept {
    fits_ &= size > 0 || fits_empty;
    left_.remove_prefix(size);
  }
  std::string_view left_;
  bool fits_ = true;
};

/// Returns the year with these last two digits: the latest that is not more than 50 years ahead (RFC 9110, 5.6.7).
int whole_year(int last_digits) noexcept {
  const std::chrono::sys_seconds now{std::chrono::seconds(::time(nullptr))};
  const int latest =
      static_cast<int>(std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(now)).year()) + 50;
  return latest - (latest - last_digits) % 100;
}

}  // namespace

bool same_token(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return x == y || detail::lower(x) == detail::lower(y); });
}

bool is_token(std::string_view text) noexcept { return !text.empty() && std::ranges::all_of(text, is_token_char); }

bool is_field_value(std::string_view value) noexcept { return std::all_of(value.begin(), value.end(), is_value_char); }

std::optional<std::string_view> request::find(std::string_view name) const noexcept {
  for (const http::header& h : headers) {
    if (same_token(h.name, name)) {
      return h.value;
    }
  }
  return std::nullopt;
}

response& response::status(int code) {
  if (code < 200 || code > 599) {
    throw std::invalid_argument("pirn: not a final status: " + std::to_string(code));
  }
  status_ = code;
  return *this;
}

response& response::header(std::string_view name, std::string_view value) {
  if (!is_token(name) || !is_field_value(value)) {
    throw std::invalid_argument("pirn: not a header field: " + std::string(name));
  }
  if (std::ranges::any_of(reserved_names, [name](std::string_view reserved) { return same_token(name, reserved); })) {
    throw std::invalid_argument("pirn: a header field that only the server may set: " + std::string(name));
  }
  if (same_token(name, content_type)) {
    drop_content_type();
  }
  headers_.append(name).append(": ").append(value).append("\r\n");
  return *this;
}

void response::drop_content_type() {
  for (std::size_t line = 0; line < headers_.size(); line = headers_.find('\n', line) + 1) {
    if (same_token(std::string_view(headers_).substr(line, headers_.find(':', line) - line), content_type)) {
      headers_.erase(line, headers_.find('\n', line) + 1 - line);
      return;
    }
  }
}

response& response::body(std::string_view content, std::string_view type) {
  body_.assign(content);
  return header(content_type, type);
}

response& response::file(descriptor source, std::uint64_t offset, std::uint64_t length) {
  if (!source.is_open()) {
    throw std::invalid_argument("pirn: not an open file");
  }
  file_ = std::move(source);
  file_offset_ = offset;
  file_length_ = length;
  file_size_ = 0;
  file_modified_ = 0;
  return *this;
}

response& response::fail(int code) {
  status(code);
  body_.assign(std::to_string(code));
  body_.append(" ").append(reason_of(code)).append("\n");
  return header(content_type, "text/plain");
}

void response::reset() noexcept {
  status_ = 200;
  close_ = false;
  headers_.clear();
  body_.clear();
  if (file_.is_open()) {
    file_.close();
  }
}

std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string format_date(std::int64_t seconds_since_1970) {
  const std::time_t when = seconds_since_1970;
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  char text[64];
  const int length =
      std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", day_names[parts.tm_wday], parts.tm_mday,
                    month_names[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return {text, static_cast<std::size_t>(length)};
}

std::optional<std::int64_t> parse_date(std::string_view text) noexcept {
  date_reader in(text);
  date_reader::parts when;
  if (text.size() > 3 && text[3] == ',') {
    // Sun, 06 Nov 1994 08:49:37 GMT
    in.name(day_names);
    in.literal(", ");
    when.day = in.number(2);
    in.literal(" ");
    when.month = in.name(month_names) + 1;
    in.literal(" ");
    when.year = in.number(4);
    in.literal(" ");
    in.time(when);
    in.literal(" GMT");
  } else if (text.find(',') != text.npos) {
    // Sunday, 06-Nov-94 08:49:37 GMT
    in.name(long_day_names);
    in.literal(", ");
    when.day = in.number(2);
    in.literal("-");
    when.month = in.name(month_names) + 1;
    in.literal("-");
    when.year = whole_year(in.number(2));
    in.literal(" ");
    in.time(when);
    in.literal(" GMT");
  } else {
    // Sun Nov  6 08:49:37 1994
    in.name(day_names);
    in.literal(" ");
    when.month = in.name(month_names) + 1;
    in.literal(" ");
    const bool one_digit = in.starts_with(' ');
    in.literal(one_digit ? " " : "");
    when.day = in.number(one_digit ? 1 : 2);
    in.literal(" ");
    in.time(when);
    in.literal(" ");
    when.year = in.number(4);
  }
  const std::chrono::year_month_day date{std::chrono::year(when.year),
                                         std::chrono::month(static_cast<unsigned>(when.month)),
                                         std::chrono::day(static_cast<unsigned>(when.day))};
  if (!in.is_done() || !date.ok() || when.hour > 23 || when.minute > 59 || when.second > 60) {
    return std::nullopt;
  }
  return ((std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{24} + when.hour) * 60 + when.minute) *
             60 +
         when.second;
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
