// An HTTP/1.1 client for one connection, which fibers use in turn. The parser is Boost.Beast's; bodies are not copied.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <cstring>
#include <expected>
#include <string_view>

#include "client_error.hpp"
#include "transport.hpp"

namespace bench {

struct http_response {
  unsigned status = 0;
  bool keep_alive = false;
  std::uint64_t body_size = 0;
};

namespace {

/// The facts that the client needs about a response, without a list of its fields; parts of a chunked body pass
/// through.
class response_parser final : public boost::beast::http::basic_parser<false> {
 public:
  response_parser() {
    eager(false);
    body_limit(boost::none);
  }
  [[nodiscard]] unsigned status() const { return status_; }
  /// Returns the part of the body that the last `put` parsed.
  [[nodiscard]] bytes part() {
    const bytes last = part_;
    part_ = {};
    return last;
  }

 private:
  using string_view = boost::beast::string_view;
  using error_code = boost::beast::error_code;

  std::size_t keep(string_view body) {
    part_ = std::as_bytes(std::span(body.data(), body.size()));
    return body.size();
  }

  void on_request_impl(boost::beast::http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view, int, error_code&) override { status_ = static_cast<unsigned>(code); }
  void on_field_impl(boost::beast::http::field, string_view, string_view, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return keep(body); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override { return keep(body); }
  void on_finish_impl(error_code&) override {}

  unsigned status_ = 0;
  bytes part_;
};

class http_client {
 public:
  static constexpr std::size_t longest_copy = 8192;
  static constexpr std::size_t longest_request = 1024;

  explicit http_client(connection& to) : to_(to), from_(to) {}

  /// Requests a target once all earlier callers have their answers. `take(part)` gets each part of the body in place,
  /// until it returns.
  template <typename Take>
  [[nodiscard]] BENCH_INTERFACE std::expected<http_response, client_error> get(std::string_view target, Take&& take) {
    const turn mine(use_);
    return ask(target, take);
  }

 private:
  template <typename Take>
  std::expected<http_response, client_error> ask(std::string_view target, Take& take) {
    if (const auto sent = send_request(target); !sent) {
      return std::unexpected(sent.error());
    }
    response_parser parser;
    if (const auto header = read_header(parser); !header) {
      return std::unexpected(header.error());
    }
    http_response response = {parser.status(), parser.keep_alive(), 0};
    const auto read = parser.content_length() && !parser.is_done() ? read_sized(*parser.content_length(), take)
                                                                   : read_parsed(parser, take);
    if (!read) {
      return std::unexpected(read.error());
    }
    response.body_size = *read;
    return response;
  }

  using result = std::expected<void, client_error>;
  using size_result = std::expected<std::uint64_t, client_error>;

  result send_request(std::string_view target) {
    constexpr std::string_view before = "GET ";
    constexpr std::string_view after = " HTTP/1.1\r\nHost: storage\r\nAccept: */*\r\n\r\n";
    if (before.size() + target.size() + after.size() > longest_request) {
      return std::unexpected(client_error::too_long);
    }
    char* end = request_.data();
    for (const std::string_view part : {before, target, after}) {
      end = std::copy(part.begin(), part.end(), end);
    }
    if (!to_.send(std::as_bytes(std::span(request_.data(), end)))) {
      return std::unexpected(client_error::closed);
    }
    return {};
  }

  /// Lets the parser process the available bytes once: in place, or in a copy together with earlier bytes that were too
  /// few.
  result feed(response_parser& parser) {
    const bytes here = from_.available();
    if (here.empty()) {
      return end(parser);
    }
    const std::size_t fresh = std::min(here.size(), copy_.size() - kept_);
    bytes input = here;
    if (kept_ != 0) {
      std::memcpy(copy_.data() + kept_, here.data(), fresh);
      input = bytes(copy_.data(), kept_ + fresh);
    }
    boost::beast::error_code error;
    const std::size_t parsed = parser.put(boost::asio::const_buffer(input.data(), input.size()), error);
    if (error == boost::beast::http::error::need_more) {
      const bytes left = input.subspan(parsed);
      if (left.size() >= copy_.size()) {
        return std::unexpected(client_error::too_long);
      }
      std::memmove(copy_.data(), left.data(), left.size());
      kept_ = left.size();
      from_.consume(fresh);
    } else if (error) {
      return std::unexpected(error == boost::beast::http::error::header_limit ? client_error::too_long
                                                                              : client_error::malformed);
    } else {
      from_.consume(parsed - kept_);  // the kept bytes were too few to parse
      kept_ = 0;
    }
    return {};
  }

  /// The stream has ended, which is the end of some bodies.
  static result end(response_parser& parser) {
    boost::beast::error_code error;
    if (parser.is_header_done()) {
      parser.put_eof(error);
    }
    if (!parser.is_header_done() || error) {
      return std::unexpected(client_error::closed);
    }
    return {};
  }

  result read_header(response_parser& parser) {
    while (!parser.is_header_done()) {
      if (const auto fed = feed(parser); !fed) {
        return fed;
      }
    }
    return {};
  }

  /// A body of known length needs no parser.
  template <typename Take>
  size_result read_sized(std::uint64_t size, Take& take) {
    for (std::uint64_t left = size; left != 0;) {
      const bytes part = from_.take(left);
      if (part.empty()) {
        return std::unexpected(client_error::closed);
      }
      take(part);
      left -= part.size();
    }
    return size;
  }

  /// A body in chunks, or up to the end of the stream.
  template <typename Take>
  size_result read_parsed(response_parser& parser, Take& take) {
    std::uint64_t size = 0;
    while (!parser.is_done()) {
      if (const auto fed = feed(parser); !fed) {
        return std::unexpected(fed.error());
      }
      if (const bytes part = parser.part(); !part.empty()) {
        take(part);
        size += part.size();
      }
    }
    return size;
  }

  connection& to_;
  reader from_;
  turns use_;
  std::size_t kept_ = 0;
  std::array<char, longest_request> request_ = {};
  std::array<std::byte, longest_copy> copy_ = {};
};

}  // namespace
}  // namespace bench
