// The peers of `client`: they answer like servers, in negligible time, from memory that they do not copy.
#pragma once

#include <cstring>
#include <string>

#include "rpc_protocol.hpp"
#include "transport.hpp"

namespace bench {
namespace {

/// The payload of every answer: each byte differs from its neighbours, and each page from the one before.
class content {
 public:
  explicit content(std::size_t size) : bytes_(size) {
    std::uint64_t state = size;
    for (std::byte& each : bytes_) {
      state = state * 6364136223846793005 + 1442695040888963407;
      each = static_cast<std::byte>(state >> 56);
    }
  }
  [[nodiscard]] bytes whole() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Computes it over whole words, and then over the remaining bytes.
inline std::uint64_t checksum(bytes of, std::uint64_t begun = 0xcbf29ce484222325) {
  constexpr std::uint64_t prime = 0x100000001b3;
  for (; of.size() >= sizeof begun; of = of.subspan(sizeof begun)) {
    std::uint64_t word = 0;
    std::memcpy(&word, of.data(), sizeof word);
    begun = (std::rotl(begun, 5) ^ word) * prime;
  }
  for (const std::byte each : of) {
    begun = (std::rotl(begun, 5) ^ static_cast<std::uint64_t>(each)) * prime;
  }
  return begun;
}

/// Answers each GET with the content, and with the shortest header that this needs.
class http_server final : public peer {
 public:
  explicit http_server(const content& of) : content_(of) {
    header_ = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(of.whole().size()) + "\r\n\r\n";
  }

  std::size_t take(bytes part) override {
    const std::string_view request(reinterpret_cast<const char*>(part.data()), part.size());
    check(request.starts_with("GET /") && request.ends_with("\r\n\r\n"), "a request comes whole");
    return 1;
  }
  void answer(connection& to) override {
    to.answer(std::as_bytes(std::span(header_)));
    to.answer(content_.whole());
  }

 private:
  const content& content_;
  std::string header_;
};

/// Answers each call with the content, and with the method as status. It takes the first and the last of several
/// waiting calls in turn.
class rpc_server final : public peer {
 public:
  explicit rpc_server(const content& of) : content_(of) {}

  std::size_t take(bytes part) override {
    if (argument_left_ == 0) {
      check(part.size() == sizeof asked_ && waiting_.size() < headers_.size() / 2, "a header comes whole");
      std::memcpy(&asked_, part.data(), sizeof asked_);
      check(asked_.magic == frame_header::right_magic, "requests are framed");
      argument_left_ = asked_.size;
    } else {
      argument_left_ -= part.size();
    }
    if (argument_left_ != 0) {
      return 0;
    }
    waiting_.push_back(asked_);
    return 1;
  }
  void answer(connection& to) override {
    const bool first = ++answers_ % 2 == 0;
    const auto chosen = first ? waiting_.begin() : waiting_.end() - 1;
    frame_header& header = headers_[answers_ % headers_.size()];
    header = {.status = chosen->method, .id = chosen->id, .size = content_.whole().size()};
    waiting_.erase(chosen);
    to.answer(std::as_bytes(std::span(&header, 1)));
    to.answer(content_.whole());
  }

 private:
  const content& content_;
  frame_header asked_;
  std::uint64_t argument_left_ = 0;
  std::uint64_t answers_ = 0;
  std::vector<frame_header> waiting_;
  std::array<frame_header, 128> headers_;  // of answers that may be in flight
};

}  // namespace
}  // namespace bench
