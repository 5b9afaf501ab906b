// Boost.Beast's request parser, remembering where the pieces of a request lie instead of copying them.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pirn/http/message.hpp"

namespace pirn::inline PIRN_ABI::http {

/// The pieces of one request as offsets from its first byte, since the buffer may move while it is read. Reused from
/// request to request.
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
  std::string body;
  std::uint32_t hosts = 0;
  piece host;                   ///< the value of the last one
  bool has_encoding = false;    ///< Transfer-Encoding
  bool other_encoding = false;  ///< one that is more than "chunked"
  bool expects = false;         ///< Expect

  void clear() noexcept {
    fields.clear();
    body.clear();
    hosts = 0;
    has_encoding = other_encoding = expects = false;
  }
};

/// A piece of the request that begins at `head`.
inline std::string_view text_of(parsed_request::piece piece, const char* head) noexcept {
  return {head + piece.offset, piece.size};
}

class request_parser final : public boost::beast::http::basic_parser<true> {
 public:
  using error_code = boost::beast::error_code;
  using string_view = boost::beast::string_view;

  request_parser(parsed_request& into, std::size_t field_limit, std::uint64_t body_bytes)
      : into_(into), field_limit_(field_limit) {
    into_.clear();
    body_limit(body_bytes);
    header_limit(UINT32_MAX);  // the connection's buffer is the limit
  }

  /// Parses on from `data`, which lies in the buffer [base, base + size) that begins with the request.
  std::size_t parse(const char* base, std::size_t size, const char* data, error_code& error) {
    base_ = base;
    end_ = base + size;
    return put({data, static_cast<std::size_t>(end_ - data)}, error);
  }

 private:
  using verb = boost::beast::http::verb;
  using field_name = boost::beast::http::field;

  [[nodiscard]] parsed_request::piece piece_of(string_view text) const noexcept {
    return {static_cast<std::uint32_t>(text.data() - base_), static_cast<std::uint32_t>(text.size())};
  }

  void on_request_impl(verb, string_view method, string_view target, int version, error_code&) override {
    into_.method = piece_of(method);
    into_.target = piece_of(target);
    into_.version = version;
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(field_name name, string_view name_text, string_view value, error_code& error) override {
    if (in_body_) {
      return;  // a trailer
    }
    if (into_.fields.size() == field_limit_) {
      error = boost::beast::http::error::header_limit;
      return;
    }
    if (!value.empty() && (value.data() < base_ || value.data() >= end_)) {
      error = boost::beast::http::error::bad_obs_fold;  // put together from several lines: RFC 9112, 5.2
      return;
    }
    into_.fields.push_back({piece_of(name_text), value.empty() ? parsed_request::piece{} : piece_of(value)});
    if (name == field_name::host) {
      ++into_.hosts;
      into_.host = into_.fields.back().value;
    }
    if (name == field_name::transfer_encoding) {
      into_.has_encoding = true;
      into_.other_encoding |= !same_token({value.data(), value.size()}, "chunked");
    }
    into_.expects |= name == field_name::expect;
  }
  void on_header_impl(error_code&) override { in_body_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view text, error_code&) override {
    into_.body.append(text.data(), text.size());
    return text.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view text, error_code&) override {
    into_.body.append(text.data(), text.size());
    return text.size();
  }
  void on_finish_impl(error_code&) override {}

  parsed_request& into_;
  std::size_t field_limit_;
  const char* base_ = nullptr;
  const char* end_ = nullptr;
  bool in_body_ = false;
};

}  // namespace pirn::inline PIRN_ABI::http
