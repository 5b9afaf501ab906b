// The state machine that parses requests.
#include "http/parser.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "http/characters.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

constexpr std::uint8_t in_token = 1;
constexpr std::uint8_t in_target = 2;
constexpr std::uint8_t in_value = 4;   // VCHAR, obs-text, blanks
constexpr std::uint8_t in_quotes = 8;  // `in_value` without the quote and the backslash
constexpr std::uint8_t blank = 16;

constexpr std::array<std::uint8_t, 256> kinds = [] {
  std::array<std::uint8_t, 256> of{};
  constexpr std::string_view token_marks = "!#$%&'*+-.^_`|~";
  // Characters that no client sends unencoded. Browsers do send others that RFC 3986 leaves out, such as "|".
  constexpr std::string_view not_in_target = "\"#<>";
  for (unsigned i = 0; i < of.size(); ++i) {
    const char c = static_cast<char>(i);
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool visible = i > 0x20 && i < 0x7f;
    if (alphanumeric || (visible && token_marks.find(c) != token_marks.npos)) {
      of[i] |= in_token;
    }
    if (visible && not_in_target.find(c) == not_in_target.npos) {
      of[i] |= in_target;
    }
    if (c == ' ' || c == '\t') {
      of[i] |= blank;
    }
    if (visible || i >= 0x80 || (of[i] & blank) != 0) {
      of[i] |= c == '"' || c == '\\' ? in_value : in_value | in_quotes;
    }
  }
  return of;
}();

bool is(char c, std::uint8_t kind) noexcept { return (kinds[static_cast<unsigned char>(c)] & kind) != 0; }

const char* skip(const char* at, const char* end, std::uint8_t kind) noexcept {
  while (at != end && is(*at, kind)) {
    ++at;
  }
  return at;
}

/// As `skip` with `in_value`, but eight bytes at a time as long as none is a control character, which a tab is too.
/// Values are most of a head.
const char* skip_value(const char* at, const char* end) noexcept {
  constexpr std::uint64_t ones = UINT64_MAX / 255;  // each byte 1
  while (end - at >= 8) {
    std::uint64_t eight;
    std::memcpy(&eight, at, sizeof eight);
    const std::uint64_t deleted = eight ^ (ones * 0x7f);
    // The highest bit of each byte: one is set if a byte is below 0x20 or is 0x7f.
    if ((((eight - ones * 0x20) & ~eight) | ((deleted - ones) & ~deleted)) & (ones * 0x80)) {
      break;
    }
    at += 8;
  }
  return skip(at, end, in_value);
}

constexpr std::string_view version_form = "HTTP/d.d";

// A chunk of one byte has five bytes around it, so a client that sends each byte at once stays below this.
constexpr std::uint64_t max_overhead_per_byte = 8;

}  // namespace

std::size_t request_parser::parse(const char* head, std::size_t from, std::size_t size) {
  head_ = head;
  const char* at = head + from;
  const char* const end = head + size;
  while (at != end && refused_ == 0) {
    const char* const before = at;
    const bool is_data = state_ == state::length_data || state_ == state::chunk_data;
    if (is_data) {
      at = data(at, end);
    } else if (state_ <= state::request_line_end) {
      at = request_line(at, end);
    } else if (state_ <= state::fields_end) {
      at = field_line(at, end);
    } else {
      at = chunk_line(at, end);
    }
    if (in_body_ && !is_data) {
      overhead_ += static_cast<std::uint64_t>(at - before);
      if (overhead_ > limits_.header_limit + max_overhead_per_byte * into_.body.size()) {
        refuse(at, 431);
      }
    }
    if (state_ == state::head_done || state_ == state::done) {
      break;
    }
  }
  return static_cast<std::size_t>(at - head);
}

int request_parser::begin_body() noexcept {
  in_body_ = true;
  left_ = into_.length;
  if (into_.chunked) {
    state_ = state::size_begin;
  } else if (left_ > limits_.body_limit) {
    return 413;
  } else {
    state_ = left_ > 0 ? state::length_data : state::done;
  }
  return 0;
}

const char* request_parser::refuse(const char* at, int status) noexcept {
  refused_ = status;
  return at;
}

const char* request_parser::expect(const char* at, char byte, state next) noexcept {
  if (*at != byte) {
    return refuse(at);
  }
  state_ = next;
  return at + 1;
}

const char* request_parser::token(const char* at, const char* end, std::uint8_t kind) noexcept {
  const char* const stop = kind == in_value ? skip_value(at, end) : skip(at, end, kind);
  length_ += static_cast<std::uint32_t>(stop - at);
  return stop;
}

parsed_request::piece request_parser::take_token(const char* end) noexcept {
  const auto behind = static_cast<std::uint32_t>(end - head_);
  const std::uint32_t size = length_;
  length_ = 0;
  return {behind - size, size};
}

const char* request_parser::request_line(const char* at, const char* end) {
  switch (state_) {
    case state::method:
    case state::target: {
      const bool first = state_ == state::method;
      at = token(at, end, first ? in_token : in_target);
      if (at == end) {
        return at;
      }
      if (length_ == 0) {
        return refuse(at);
      }
      (first ? into_.method : into_.target) = take_token(at);
      return expect(at, ' ', first ? state::target : state::version);
    }
    case state::version:
      for (; at != end && length_ < version_form.size(); ++at, ++length_) {
        const char wanted = version_form[length_];
        if (wanted == 'd' ? *at < '0' || *at > '9' : *at != wanted) {
          return refuse(at);
        }
      }
      if (at == end) {
        return at;
      }
      into_.version = 10 * (at[-3] - '0') + (at[-1] - '0');
      length_ = 0;
      return expect(at, '\r', state::request_line_end);
    default:
      at = expect(at, '\n', state::field_begin);
      return refused_ == 0 && into_.version != 10 && into_.version != 11 ? refuse(at, 505) : at;
  }
}

const char* request_parser::field_line(const char* at, const char* end) {
  switch (state_) {
    case state::field_begin:
      if (*at == '\r') {
        state_ = state::fields_end;
        return at + 1;
      }
      state_ = state::name;
      [[fallthrough]];
    case state::name:
      at = token(at, end, in_token);
      if (at == end) {
        return at;
      }
      if (length_ == 0) {
        return refuse(at);  // also a blank, which would fold the line before
      }
      name_ = take_token(at);
      at = expect(at, ':', state::value_begin);
      if (at == end || refused_ != 0) {
        return at;
      }
      [[fallthrough]];
    case state::value_begin:
      at = skip(at, end, blank);
      if (at == end) {
        return at;
      }
      state_ = state::value;
      [[fallthrough]];
    case state::value:
      at = token(at, end, in_value);
      if (at == end) {
        return at;
      }
      if (*at == '\r') {
        add_field(at);
      }
      at = refused_ == 0 ? expect(at, '\r', state::value_end) : at;
      if (at == end || refused_ != 0) {
        return at;
      }
      [[fallthrough]];
    case state::value_end:
      return expect(at, '\n', state::field_begin);
    default:
      return expect(at, '\n', in_body_ ? state::done : state::head_done);
  }
}

void request_parser::add_field(const char* value_end) {
  auto value = take_token(value_end);
  if ((in_body_ ? ++trailers_ : into_.fields.size() + 1) > limits_.header_count_limit) {
    refused_ = 431;
    return;
  }
  if (in_body_) {
    return;  // its beginning may have left the buffer
  }
  while (value.size > 0 && is(head_[value.offset + value.size - 1], blank)) {
    --value.size;
  }
  into_.fields.push_back({name_, value});
}

const char* request_parser::data(const char* at, const char* end) {
  const auto taken = std::min(left_, static_cast<std::uint64_t>(end - at));
  into_.body.append(at, taken);
  left_ -= taken;
  if (left_ == 0) {
    state_ = state_ == state::chunk_data ? state::chunk_data_end : state::done;
  }
  return at + taken;
}

const char* request_parser::chunk_line(const char* at, const char* end) {
  // chunk-size *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) CRLF
  const char c = *at;
  switch (state_) {
    case state::size_begin:
    case state::size: {
      const int digit = detail::hex_value(c);
      if (digit >= 0) {
        left_ = state_ == state::size_begin ? 0 : left_;
        if (left_ > UINT64_MAX >> 4) {
          return refuse(at);
        }
        left_ = left_ << 4 | static_cast<std::uint64_t>(digit);
        state_ = state::size;
        return at + 1;
      }
      if (state_ == state::size_begin) {
        return refuse(at);
      }
      if (left_ > limits_.body_limit - into_.body.size()) {
        return refuse(at, 413);
      }
      state_ = state::extension_end;
      [[fallthrough]];
    }
    case state::extension_end:
      if (c == '\r') {
        state_ = state::size_end;
        return at + 1;
      }
      state_ = state::extension_space;
      [[fallthrough]];
    case state::extension_space:
      at = skip(at, end, blank);
      return at == end ? at : expect(at, ';', state::extension_begin);
    case state::extension_begin:
      at = skip(at, end, blank);
      state_ = at == end ? state_ : state::extension_name;
      return at;
    case state::extension_name:
    case state::extension_token: {
      at = token(at, end, in_token);
      if (at == end) {
        return at;
      }
      if (length_ == 0) {
        return refuse(at);
      }
      length_ = 0;
      const bool may_have_value = state_ == state::extension_name;
      state_ = may_have_value && *at != '\r' ? state::extension_name_space : state::extension_end;
      return at;
    }
    case state::extension_name_space:
      at = skip(at, end, blank);
      if (at == end) {
        return at;
      }
      return *at == ';' ? expect(at, ';', state::extension_begin) : expect(at, '=', state::extension_value_begin);
    case state::extension_value_begin:
      at = skip(at, end, blank);
      if (at == end) {
        return at;
      }
      state_ = *at == '"' ? state::extension_quoted : state::extension_token;
      return *at == '"' ? at + 1 : at;
    case state::extension_quoted:
      at = skip(at, end, in_quotes);
      if (at == end) {
        return at;
      }
      return *at == '\\' ? expect(at, '\\', state::extension_escaped) : expect(at, '"', state::extension_end);
    case state::extension_escaped:
      state_ = state::extension_quoted;
      return is(c, in_value) ? at + 1 : refuse(at);
    case state::size_end:
      return expect(at, '\n', left_ == 0 ? state::field_begin : state::chunk_data);
    case state::chunk_data_end:
      return expect(at, '\r', state::chunk_line_end);
    default:
      return expect(at, '\n', state::size_begin);
  }
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
