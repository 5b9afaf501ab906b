// Writes many small pieces to a stream in few calls.
#pragma once

#include <cstddef>
#include <memory>

#include "pirn/io/detail/erased_stream.hpp"
#include "pirn/io/detail/whole_calls.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Writes to a stream through a buffer. It owns the stream, or refers to one that must outlive it. Bytes reach the
/// stream when the buffer is full and by `flush`: the destructor drops those left, since it cannot report an error.
/// Calls fail with the stream's errors, which neither lose nor repeat a byte: `flush` continues where it ended. Calls
/// for which the buffer has room neither suspend nor look at their deadline or a stop. One fiber at a time may use it.
/// Movable in between.
class buffered_writer final : public detail::whole_writes<buffered_writer> {
 public:
  static constexpr std::size_t default_room = 4096;  ///< the size of the buffer if none is given

  /// Makes an empty one: every call fails with io_error::closed, but a write of no bytes. A moved-from one is empty
  /// too.
  buffered_writer() noexcept;
  /// Refers to `to`. Its buffer, made by the first write, has `room` bytes, at least 16. Throws std::bad_alloc.
  template <writable_stream S>
    requires(!std::same_as<S, buffered_writer>)
  explicit buffered_writer(S& to, std::size_t room = default_room)
      : buffered_writer(room, detail::erased_stream::refer(to)) {}
  /// As the constructor that refers, but owns `to`. Throws also what its move throws.
  template <class S>
    requires(!std::is_reference_v<S> && !std::same_as<S, buffered_writer> && writable_stream<S>)
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): no reference, by the constraint
  explicit buffered_writer(S&& to, std::size_t room = default_room)
      : buffered_writer(room, detail::erased_stream::own(std::forward<S>(to))) {}
  buffered_writer(buffered_writer&& other) noexcept;
  buffered_writer& operator=(buffered_writer&& other) noexcept;
  ~buffered_writer();

  using detail::whole_writes<buffered_writer>::write_some;
  /// As `write_some` of one buffer, but takes several parts: all into the buffer if they fit, else as many as one call
  /// of the stream takes behind the bytes in the buffer, without a copy. Takes none if it fails.
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts,
                                               time_limit deadline = platform::never);
  /// Writes all bytes of the buffer to the stream. After an error the others are still there.
  [[nodiscard]] result<> flush(time_limit deadline = platform::never);
  /// Returns the number of bytes that have not reached the stream.
  [[nodiscard]] std::size_t buffered() const noexcept;

 private:
  struct state;
  buffered_writer(std::size_t room, detail::erased_stream to);
  std::unique_ptr<state> state_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
