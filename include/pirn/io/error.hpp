// Errors of io and of the layers above: values, never errno, never exceptions.
#pragma once

#include <cstdint>
#include <expected>
#include <system_error>
#include <type_traits>

#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Why a call failed where the kernel has no error for it; the first four are those of `wait_error`. Errors of the
/// kernel come as std::errc in the system category.
enum class io_error : std::uint8_t {
  timed_out = 1,        ///< the deadline passed; compares equal to std::errc::timed_out
  stopped = 2,          ///< the fiber was asked to stop; compares equal to std::errc::operation_canceled
  closed = 3,           ///< the object was closed, before or during the call
  expired = 4,          ///< the deadline of a scope passed; compares equal to std::errc::timed_out
  end_of_stream = 5,    ///< the peer ended the stream before all requested bytes had come
  stack_overflow = 6,   ///< the kernel was given memory in the guard of a stack: the stack is too small
  bad_syntax = 7,       ///< a text is malformed, for instance not an address
  shared = 8,           ///< standard input, output or error is the same open file, which must not become non-blocking
  name_not_found = 9,   ///< no host has that name
  no_such_record = 10,  ///< the name exists, and has no address or no record of the wanted kind
  name_server_failed = 11,  ///< the name servers refused or failed, or their answer cannot be read
  name_server_silent = 12,  ///< no name server answered
};

/// The category of io_error, "pirn.io".
const std::error_category& io_category() noexcept;
/// Returns the error code of a value, in that category.
inline std::error_code make_error_code(io_error error) noexcept { return {static_cast<int>(error), io_category()}; }
inline std::error_code make_error_code(wait_error error) noexcept { return {static_cast<int>(error), io_category()}; }

/// The result of every call of io, net and http.
template <class T = void>
using result = std::expected<T, std::error_code>;

/// Makes an error for a result: `return fail(io_error::closed);`.
inline std::unexpected<std::error_code> fail(std::error_code why) noexcept { return std::unexpected(why); }
inline std::unexpected<std::error_code> fail(io_error why) noexcept { return std::unexpected(make_error_code(why)); }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn

template <>
struct std::is_error_code_enum<pirn::io_error> : std::true_type {};
template <>
struct std::is_error_code_enum<pirn::wait_error> : std::true_type {};
