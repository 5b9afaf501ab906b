// Reads and writes of files that are open for O_DIRECT, by the kernel's older interface for requests (io_submit), which
// is allowed in containers that refuse io_uring. For other files it would block.
#pragma once

#include <linux/aio_abi.h>

#include "pirn/fiber/expert/completion.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The requests of one engine; used by its worker only.
class direct_io {
 public:
  direct_io() noexcept = default;
  /// There are no requests under way.
  ~direct_io();
  direct_io(const direct_io&) = delete;
  direct_io& operator=(const direct_io&) = delete;

  /// Begins a request, whose end the eventfd `told` reports. False if there are too many, or the kernel does not take
  /// it. A request that would have to wait ends with -EAGAIN.
  [[nodiscard]] bool submit(completion& what, int told) noexcept;
  /// Reports the requests that have ended, and returns their number.
  std::size_t reap() noexcept;

 private:
  [[nodiscard]] bool open() noexcept;
  [[nodiscard]] bool has_ended() const noexcept;

  ::aio_context_t context_ = 0;
  bool refused_ = false;
  unsigned under_way_ = 0;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
