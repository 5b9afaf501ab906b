// Reading files whose size is a claim: those of /sys have less in them, others are cut while they are read, disks fail.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/io/error.hpp"

namespace pirn::inline PIRN_ABI::http {

/// Files up to this size are read before anything is said about them; larger ones are read while they are sent, and
/// what they turn out to lack ends the connection.
inline constexpr std::size_t small_file = std::size_t{32} * 1024;

/// Reads up to `size` bytes at `offset`: fewer only where the file ends. Blocks the worker while the disk is read.
result<std::size_t> read_at(int file, std::uint64_t offset, char* into, std::size_t size) noexcept;

/// The same into a string, which is then as long as what was read.
template <class String>
result<> read_at(int file, std::uint64_t offset, std::size_t size, String& into) {
  into.resize(size);
  const auto got = read_at(file, offset, into.data(), size);
  into.resize(got.value_or(0));
  return got ? result<>() : fail(got.error());
}

}  // namespace pirn::inline PIRN_ABI::http
