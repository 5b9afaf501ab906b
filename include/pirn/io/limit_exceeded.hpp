// The error of a length from outside that exceeds a limit of the program.
#pragma once

#include <cstddef>
#include <optional>
#include <system_error>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Returns the error that says that something is longer than `limit` bytes, for instance a line. It compares equal to
/// std::errc::message_size, its message has the limit, and its value is never 0. A limit of more than 128 GiB counts as
/// that.
[[nodiscard]] std::error_code limit_exceeded(std::size_t limit) noexcept;
/// Returns the limit of an error that `limit_exceeded` has made; of any other error, nothing.
[[nodiscard]] std::optional<std::size_t> exceeded_limit(const std::error_code& error) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
