// Reads lines and other pieces of a stream whose ends lie anywhere in what arrives.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "pirn/io/detail/erased_stream.hpp"
#include "pirn/io/detail/whole_calls.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Reads from a stream through a buffer. It owns the stream, or refers to one that must outlive it; bytes that it has
/// read ahead are lost to other readers of that stream. Calls fail with the stream's errors, which lose no byte: they
/// may be repeated. Calls that the buffer can answer neither suspend nor look at their deadline or a stop. Texts that
/// calls return lie in the buffer until the next call. The buffer has `room` bytes from the first read on, and more
/// only while a longer line is in it. One fiber at a time may use it. Movable while no view of it is held.
class buffered_reader final : public detail::whole_reads<buffered_reader> {
 public:
  static constexpr std::size_t default_room = 4096;  ///< the size of the buffer if none is given

  /// Makes an empty one: every call fails with io_error::closed. A moved-from one is empty too.
  buffered_reader() noexcept;
  /// Refers to `from`. Its buffer has `room` bytes, at least 16. Throws std::bad_alloc.
  template <readable_stream S>
    requires(!std::same_as<S, buffered_reader>)
  explicit buffered_reader(S& from, std::size_t room = default_room)
      : buffered_reader(room, detail::erased_stream::refer(from)) {}
  /// As the constructor that refers, but owns `from`. Throws also what its move throws.
  template <class S>
    requires(!std::is_reference_v<S> && !std::same_as<S, buffered_reader> && readable_stream<S>)
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): no reference, by the constraint
  explicit buffered_reader(S&& from, std::size_t room = default_room)
      : buffered_reader(room, detail::erased_stream::own(std::forward<S>(from))) {}
  buffered_reader(buffered_reader&& other) noexcept;
  buffered_reader& operator=(buffered_reader&& other) noexcept;
  ~buffered_reader();

  /// Reads at least one byte: those in the buffer, or else those of one read of the stream. Returns 0 at the end, and
  /// for a `size` of 0.
  [[nodiscard]] result<std::size_t> read(void* into, std::size_t size, time_limit deadline = platform::never);
  /// Reads up to the next newline, and returns the line without it and without a carriage return before it. A line of
  /// more than `limit` bytes fails with `limit_exceeded`, as soon as that is certain, and stays in the buffer. So does
  /// an unfinished line at the end of the stream, with io_error::end_of_stream; `buffered` is 0 where no line had
  /// begun.
  [[nodiscard]] result<std::string_view> read_line(std::size_t limit, time_limit deadline = platform::never);
  /// As `read_line`, but up to `delimiter`, and returns all before it.
  [[nodiscard]] result<std::string_view> read_until(char delimiter, std::size_t limit,
                                                    time_limit deadline = platform::never);
  /// Returns the next `count` bytes and leaves them to the next read. Fails with `limit_exceeded` if `count` is more
  /// than `room` and than is buffered, and with io_error::end_of_stream if the stream ends before.
  [[nodiscard]] result<std::string_view> peek(std::size_t count, time_limit deadline = platform::never);
  /// Reads `count` bytes and drops them. After an error some of them may have been dropped.
  [[nodiscard]] result<> skip(std::size_t count, time_limit deadline = platform::never);
  /// As `read`, without a copy out of the buffer: see `read_view`. The reader must outlive the view.
  [[nodiscard]] result<read_view> lend(time_limit deadline = platform::never);

  /// Returns the number of bytes that are in the buffer: the next read gets them without a wait.
  [[nodiscard]] std::size_t buffered() const noexcept;
  /// Returns the size of the buffer at present: 0 before the first read, `room` later, and for a longer line at most
  /// its limit and two bytes for its end. It shrinks back in the next call after that line.
  [[nodiscard]] std::size_t capacity() const noexcept;

 private:
  struct state;
  buffered_reader(std::size_t room, detail::erased_stream from);
  std::unique_ptr<state> state_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
