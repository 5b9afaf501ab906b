// Copying from one stream to another, and writing that says how much was written.
#pragma once

#include <concepts>

#include "pirn/io/detail/erased_stream.hpp"
#include "pirn/io/detail/whole_calls.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// How far a copy has come.
struct copy_result {
  std::size_t read = 0;        ///< the bytes that were taken from the source
  std::size_t written = 0;     ///< the bytes that the target has accepted
  std::error_code error;       ///< why it ended early, if it did
  bool target_failed = false;  ///< whether `error` is of the target; otherwise of the source, or of memory for the copy

  /// Whether all was copied.
  [[nodiscard]] explicit operator bool() const noexcept { return !error; }
};

namespace detail {
[[nodiscard]] copy_result copy(erased_stream from, erased_stream to, platform::time_point deadline);
}  // namespace detail

/// Copies from a stream to another until the end of the first, which it does not pass on: `to.shutdown` does, or
/// `flush` of a `buffered_writer`. `deadline` is that of the whole copy. The first error of either ends it. Bytes that
/// were read and not written are lost then, unless `from` lends (`read_view`); otherwise the copy needs memory for
/// 16 KiB and may fail with std::errc::not_enough_memory. Suspends where `from` and `to` do, and throws only what these
/// throw.
template <readable_stream From, writable_stream To>
[[nodiscard]] copy_result copy(From& from, To& to, time_limit deadline = platform::never) {
  return detail::copy(detail::erased_stream::refer(from), detail::erased_stream::refer(to), deadline);
}

/// As `copy` of two types, for a time of std::chrono. Without it an unqualified call would select std::copy, which
/// argument dependent lookup finds; where the deadline is a `time_limit` it still does, so qualify that call.
template <readable_stream S, template <class...> class Time, class... Of>
  requires writable_stream<S> && std::convertible_to<Time<Of...>, time_limit>
[[nodiscard]] copy_result copy(S& from, S& to, Time<Of...> deadline) {
  return copy<S, S>(from, to, time_limit(deadline));
}

/// Writes all of `parts`, as `write` of a stream does. The result says how much was written, also after an error;
/// `read` equals `written`.
template <writable_stream To>
[[nodiscard]] copy_result write_all(To& to, std::span<const const_buffer> parts,
                                    time_limit deadline = platform::never) {
  copy_result done;
  done.error = detail::write_parts(to, parts, deadline, done.written);
  done.read = done.written;
  done.target_failed = static_cast<bool>(done.error);
  return done;
}
/// As `write_all` of several parts, but of one text.
template <writable_stream To>
[[nodiscard]] copy_result write_all(To& to, std::string_view text, time_limit deadline = platform::never) {
  const const_buffer whole{text.data(), text.size()};
  return write_all(to, std::span<const const_buffer>(&whole, 1), deadline);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
