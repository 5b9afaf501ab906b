// Reports the memory accesses of a request to ThreadSanitizer. It intercepts calls of the C library, so it sees nothing
// of a request that the kernel carries out by a ring: neither the access nor that a send comes before a receive.
#pragma once

#include "pirn/fiber/expert/completion.hpp"

#if defined(PIRN_TSAN) && !defined(PIRN_SIM)
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

extern "C" {
void __tsan_read_range(void* begin, unsigned long size);
void __tsan_write_range(void* begin, unsigned long size);
}
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

#if defined(PIRN_TSAN) && !defined(PIRN_SIM)
/// The accesses of one request, as those of its fiber.
class kernel_access {
 public:
  explicit kernel_access(const kernel_request& what) noexcept : what_(what) {}

  /// Before the kernel sees the request.
  void begin() const noexcept {
    if (what_.what == code::open || what_.what == code::stat) {
      __tsan_read_range(what_.address, std::strlen(static_cast<const char*>(what_.address)) + 1);
    } else if (what_.what == code::send || what_.what == code::write_at) {
      if (what_.what == code::send) {
        __tsan_read_range(what_.address, what_.size);
      } else {
        each_part(~std::size_t{0}, __tsan_read_range);
      }
      // Does nothing, and fails for a socket, but releases what the descriptor stands for.
      static_cast<void>(!::pwrite(what_.descriptor, "", 0, 0));
    }
  }

  /// After its end with this result.
  void end(std::int64_t result) const noexcept {
    if (result < 0) {
      return;
    }
    if (what_.what == code::stat) {
      __tsan_write_range(what_.second, sizeof(struct ::statx));
    } else if (what_.what == code::receive || what_.what == code::read_at) {
      char nothing;
      static_cast<void>(!::read(what_.descriptor, &nothing, 0));  // does nothing but acquire it
      if (what_.what == code::receive) {
        __tsan_write_range(what_.address, std::min<std::size_t>(static_cast<std::size_t>(result), what_.size));
      } else {
        each_part(static_cast<std::size_t>(result), __tsan_write_range);
      }
    }
  }

 private:
  using code = kernel_request::code;
  /// Calls `note` with the memory of the first `bytes` of an array of iovec.
  void each_part(std::size_t bytes, void (*note)(void*, unsigned long)) const noexcept {
    const auto* const parts = static_cast<const ::iovec*>(what_.address);
    for (std::uint32_t i = 0; i < what_.size && bytes > 0; ++i) {
      const std::size_t used = std::min(bytes, parts[i].iov_len);
      note(parts[i].iov_base, used);
      bytes -= used;
    }
  }

  const kernel_request& what_;
};

/// Reports bytes that the kernel has received into a buffer of the ring.
inline void kernel_has_received(int descriptor, void* bytes, std::size_t size) noexcept {
  char nothing;
  static_cast<void>(!::read(descriptor, &nothing, 0));  // does nothing but acquire it
  __tsan_write_range(bytes, size);
}
#else
/// Does nothing without ThreadSanitizer.
inline void kernel_has_received(int /*descriptor*/, const void* /*bytes*/, std::size_t /*size*/) noexcept {}
/// Does nothing without ThreadSanitizer.
class kernel_access {
 public:
  explicit kernel_access(const kernel_request& /*what*/) noexcept {}
  void begin() const noexcept {}
  void end(std::int64_t /*result*/) const noexcept {}
};
#endif

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
