// Pipes, and the standard input, output and error, as ends that are read or written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "pirn/io/descriptor.hpp"
#include "pirn/io/detail/whole_calls.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {
class program_start;
}  // namespace detail

/// A stream over an end of a pipe, or over a terminal, socket or file that other programs use too, such as the standard
/// input. Movable while no fiber uses it. Each call with a deadline is a suspension point, with the errors of
/// `descriptor`. No call raises SIGPIPE: a write without a reader fails with std::errc::broken_pipe. A call in the
/// wrong direction fails with std::errc::bad_file_descriptor.
///
/// No call makes an open file non-blocking that another program or number refers to.
class pipe_end final : public detail::whole_reads<pipe_end>, public detail::whole_writes<pipe_end> {
 public:
  /// Makes a closed end: every call fails with io_error::closed.
  pipe_end() noexcept = default;
  /// Makes a pipe: what is written to `second` is read from `first`.
  [[nodiscard]] static result<std::pair<pipe_end, pipe_end>> make_pair() noexcept;
  /// Takes over a pipe, terminal, socket or file. It is closed if that fails. A terminal or pipe is opened anew, under
  /// another number; of others, each call avoids to block.
  [[nodiscard]] static result<pipe_end> adopt(int native) noexcept;
  /// Returns a copy of one of the three standard descriptors (STDIN_FILENO ...), which itself is left as it is.
  [[nodiscard]] static result<pipe_end> standard(int native) noexcept;

  /// Reads at least one byte; 0 at the end: all writing ends are closed.
  [[nodiscard]] result<std::size_t> read(void* into, std::size_t size, time_limit deadline = platform::never) noexcept;
  using detail::whole_writes<pipe_end>::write_some;
  /// Writes at least one byte of `parts`, at most 16 of them in a call.
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts,
                                               time_limit deadline = platform::never) noexcept;
  /// Ends one direction: the reader reads what was written, then the end; a writer fails with std::errc::broken_pipe.
  /// A pipe has one direction and is closed with it; nothing happens for the other. One direction of a
  /// terminal cannot be ended: std::errc::operation_not_supported.
  result<> shutdown(shutdown_half half) noexcept;
  /// Ends pending calls with io_error::closed, then closes.
  void close() noexcept { opened_.close(); }
  /// Whether it was not closed.
  [[nodiscard]] bool is_open() const noexcept { return opened_.is_open(); }
  /// Returns the file descriptor's number, as `descriptor::native`.
  [[nodiscard]] int native() const noexcept { return opened_.native(); }

 private:
  friend detail::program_start;  // makes ends of pipes to programs
  /// How a call avoids to block the worker.
  enum class way : std::uint8_t {
    non_blocking,      ///< by the mode of the open file, which is ours alone
    by_flag,           ///< a socket: each call says so
    in_pool,           ///< a file: each call runs on a thread of the blocking pool
    in_pool_by_pages,  ///< a pipe that cannot be opened anew: so does each, and a write takes no more than there is
                       ///< room for
    in_pool_by_lines,  ///< a terminal that cannot: the same
  };
  pipe_end(descriptor opened, way how) noexcept : opened_(std::move(opened)), way_(how) {}
  [[nodiscard]] result<std::size_t> transfer(io_direction direction, std::span<::iovec> memory,
                                             time_limit deadline) noexcept;

  descriptor opened_;
  way way_ = way::non_blocking;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
