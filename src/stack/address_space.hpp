// The system calls that map, protect and release the memory of stacks. Each cause of a failure has its own error.
#pragma once

#include <sys/uio.h>

#include <cstddef>

#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

std::size_t page_size() noexcept;
/// Reserves address space that is inaccessible at first; null with `error` set if the kernel refuses.
char* reserve_range(std::size_t bytes, stack_error& error) noexcept;
void release_range(char* begin, std::size_t bytes) noexcept;
/// Makes a range readable and writable, or inaccessible. Costs a mapping wherever neighbours differ.
stack_error make_usable(char* begin, std::size_t bytes) noexcept;
stack_error make_inaccessible(char* begin, std::size_t bytes) noexcept;
/// Makes every access to the range fault, without a mapping; guard_refused where the kernel cannot (before 6.13) or
/// will not (locked memory).
stack_error install_guard(char* begin, std::size_t bytes) noexcept;
/// As `install_guard` for several ranges, by one system call. False if it is not certain that all have a guard.
[[nodiscard]] bool install_guards(const iovec* ranges, std::size_t count) noexcept;
/// Gives the memory of ranges back and keeps the ranges, by one system call where the kernel can (Linux 6.15): that
/// costs half as much, also for other threads, which flush their translations once. Locked memory stays.
void give_memory_back(const iovec* ranges, std::size_t count) noexcept;
/// Returns the whole pages of a stack that lie below `lowest`; the range may be empty.
iovec pages_below(const stack& value, const void* lowest) noexcept;
/// As `pages_below`, for a stack that a program may have given to a context, which then looks for a word at its end:
/// without the page that has this word. Reads there, which is a page fault if the page has no memory.
iovec pages_above_end_below(const stack& value, const void* lowest) noexcept;
/// Populates the range with memory now.
void get_memory(char* begin, std::size_t bytes) noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
