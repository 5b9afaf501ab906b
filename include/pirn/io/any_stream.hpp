// A stream of any type, for code that is not a template.
#pragma once

#include <functional>

#include "pirn/io/detail/erased_stream.hpp"
#include "pirn/io/detail/whole_calls.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Owns a stream of any type, or refers to one. Its calls are those of that stream, by a call through a pointer, with
/// their errors, suspension points and threads; they throw only what that stream's throw. Movable while no fiber uses
/// it, without a move of the stream.
class any_stream final : public detail::whole_reads<any_stream>, public detail::whole_writes<any_stream> {
 public:
  /// Makes an empty one: every call that moves bytes fails with io_error::closed. A moved-from one is empty too.
  any_stream() noexcept = default;
  /// Owns `from`, on the heap. Throws std::bad_alloc, and what the move of `from` throws.
  // The constraint does not ask whether S can be moved: the answer may depend on this constructor, if S has a
  // constructor that takes an any_stream.
  template <class S>
    requires(!std::is_reference_v<S> && !std::same_as<S, any_stream> && stream<S>)
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload): what it is for
  any_stream(S&& from) : stream_(detail::erased_stream::own(std::forward<S>(from))) {}
  /// Refers to a stream, which must outlive it: `any_stream(std::ref(connection))`.
  template <stream S>
  // NOLINTNEXTLINE(google-explicit-constructor): what it is for
  any_stream(std::reference_wrapper<S> lent) noexcept : stream_(detail::erased_stream::refer(lent.get())) {}

  /// Reads at least one byte; 0 means that the peer has ended its half.
  [[nodiscard]] result<std::size_t> read(void* buffer, std::size_t size, time_limit deadline = platform::never) {
    return stream_.read(buffer, size, deadline);
  }
  using detail::whole_writes<any_stream>::write_some;
  /// As `write_some` of one buffer, but takes several parts. It may take only the first of them.
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts,
                                               time_limit deadline = platform::never) {
    return stream_.write_some(parts, deadline);
  }
  /// As `read`, without a copy: see `read_view`. Fails with std::errc::operation_not_supported if the stream lends
  /// none; a `buffered_reader` lends from any stream.
  [[nodiscard]] result<read_view> lend(time_limit deadline = platform::never) { return stream_.lend(deadline); }
  /// Ends one half or both.
  result<> shutdown(shutdown_half which) { return stream_.shutdown(which); }
  /// Ends pending calls with io_error::closed, then closes the stream, also one that it refers to.
  void close() { stream_.close(); }
  /// Whether it has a stream, open or closed.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(stream_); }

 private:
  detail::erased_stream stream_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
