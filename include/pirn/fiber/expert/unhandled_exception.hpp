// The handler of exceptions of fibers that are not joined. Included by fiber.hpp.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

#include "pirn/detail/abi.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Receives an exception of a fiber that no joiner takes, because the fiber was detached or its handle destroyed.
using unhandled_exception_handler = void (*)(std::uint64_t id, std::string_view name, std::exception_ptr what) noexcept;
/// Replaces the handler of the process and returns the old one; the initial one writes a line to standard error. A
/// handler must not suspend. It may run on any fiber's stack, or on a worker's thread as if that were a plain one.
unhandled_exception_handler set_unhandled_exception_handler(unhandled_exception_handler handler) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
