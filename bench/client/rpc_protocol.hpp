// The frames of the RPC of `client`, in both directions: a header of 24 bytes, little-endian, and a payload.
#pragma once

#include <bit>
#include <cstdint>

namespace bench {

static_assert(std::endian::native == std::endian::little, "frame headers are sent as they are in memory");

struct frame_header {
  static constexpr std::uint32_t right_magic = 0x6e726970;

  std::uint32_t magic = right_magic;
  std::uint16_t method = 0;  ///< of a request
  std::uint16_t status = 0;  ///< of an answer: 0 for success
  std::uint64_t id = 0;      ///< chosen by the client; the answer has it too
  std::uint64_t size = 0;    ///< of the payload, in bytes
};
static_assert(sizeof(frame_header) == 24);

}  // namespace bench
