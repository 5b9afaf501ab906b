// The calls of every stream, so that a protocol is written once for TCP, for memory and for what lies on either.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pirn/io/error.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A piece of memory to write from.
struct const_buffer {
  const void* data;  ///< the first byte
  std::size_t size;  ///< the number of bytes
};

/// Which half of a connection.
enum class shutdown_half : std::uint8_t { read, write, both };

/// A connection that carries bytes in order in both directions. `read` waits for at least one byte and returns how many
/// there are, 0 at the end. `write_some` waits for room for at least one byte and returns how many it took. `shutdown`
/// ends a half: the peer reads what was written, then the end. `close` ends calls that wait, with io_error::closed, and
/// all later ones. `tcp_stream`, `memory_stream` and `any_stream` are streams, and so is any class with these calls.
/// One fiber may read while another writes.
template <class S>
concept stream = requires(S& s, void* into, std::size_t size, std::span<const const_buffer> parts, time_limit deadline,
                          shutdown_half half) {
  { s.read(into, size, deadline) } -> std::same_as<result<std::size_t>>;
  { s.write_some(parts, deadline) } -> std::same_as<result<std::size_t>>;
  { s.shutdown(half) } -> std::same_as<result<>>;
  s.close();
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
