// Calls that repeat others until everything is done, for each class that is a stream.
#pragma once

#include <algorithm>

#include "pirn/io/expert/stream_parts.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Writes all of `parts`, as many as it can at a time, and adds the number of written bytes to `written`.
template <class Stream>
[[nodiscard]] std::error_code write_parts(Stream& to, std::span<const const_buffer> parts, time_limit deadline,
                                          std::size_t& written) {
  std::size_t skip = 0;  // bytes of the first part that have been written
  for (;;) {
    while (!parts.empty() && skip >= parts.front().size) {
      skip -= parts.front().size;
      parts = parts.subspan(1);
    }
    if (parts.empty()) {
      return {};
    }
    const_buffer next[16];
    const std::size_t count = std::min(parts.size(), std::size(next));
    std::copy_n(parts.begin(), count, next);
    next[0] = {static_cast<const std::byte*>(next[0].data) + skip, next[0].size - skip};
    const result<std::size_t> put = to.write_some(std::span<const const_buffer>(next, count), deadline);
    if (!put) {
      return put.error();
    }
    if (*put == 0) {
      return make_error_code(std::errc::io_error);  // a stream that breaks its contract, else this would not end
    }
    skip += *put;
    written += *put;
  }
}

// NOLINTBEGIN(bugprone-crtp-constructor-accessibility): they have no state that could be constructed wrongly
/// For a class with `read`.
template <class Stream>
class whole_reads {
 public:
  /// Reads `size` bytes; fails with io_error::end_of_stream if the stream ends before. After an error some of them may
  /// have been read.
  [[nodiscard]] result<> read_exactly(void* buffer, std::size_t size, time_limit deadline = platform::never) {
    auto* next = static_cast<std::byte*>(buffer);
    while (size > 0) {
      const result<std::size_t> got = static_cast<Stream&>(*this).read(next, size, deadline);
      if (!got) {
        return fail(got.error());
      }
      if (*got == 0) {
        return fail(io_error::end_of_stream);
      }
      next += *got;
      size -= *got;
    }
    return {};
  }
};

/// For a class with `write_some` of several parts.
template <class Stream>
class whole_writes {
 public:
  /// Writes at least one byte of a non-empty buffer.
  [[nodiscard]] result<std::size_t> write_some(const void* buffer, std::size_t size,
                                               time_limit deadline = platform::never) {
    const const_buffer whole{buffer, size};
    return static_cast<Stream&>(*this).write_some(std::span<const const_buffer>(&whole, 1), deadline);
  }
  /// Writes everything. After an error some of it may have been written; `write_all` says how much. Succeeds without a
  /// look at the stream if there is nothing to write.
  [[nodiscard]] result<> write(std::span<const const_buffer> parts, time_limit deadline = platform::never) {
    std::size_t written = 0;
    if (const std::error_code error = write_parts(static_cast<Stream&>(*this), parts, deadline, written)) {
      return fail(error);
    }
    return {};
  }
  /// As `write` of several parts, but of one.
  [[nodiscard]] result<> write(const void* buffer, std::size_t size, time_limit deadline = platform::never) {
    const const_buffer whole{buffer, size};
    return write(std::span<const const_buffer>(&whole, 1), deadline);
  }
  [[nodiscard]] result<> write(std::string_view text, time_limit deadline = platform::never) {
    return write(text.data(), text.size(), deadline);
  }
};
// NOLINTEND(bugprone-crtp-constructor-accessibility)

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
