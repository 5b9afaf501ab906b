// The buffers that a ring fills: an array that the kernel reads, and their memory.
#pragma once

#include <memory>

#include "fiber/multishot_receive.hpp"
#include "fiber/uring.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Outlives its ring while bytes in it are not consumed.
class provided_buffers final : public receive_buffers {
 public:
  /// The largest number of buffers, and how many there are at first and come with each `grow`. The memory is that of
  /// pages that were used.
  static constexpr std::uint32_t max_count = 8192;
  static constexpr std::uint32_t step = 1024;
  static constexpr std::uint32_t size = 4096;

  /// Returns null without memory.
  [[nodiscard]] static std::shared_ptr<provided_buffers> make() noexcept;
  ~provided_buffers() override;
  provided_buffers(const provided_buffers&) = delete;
  provided_buffers& operator=(const provided_buffers&) = delete;

  /// Gives the kernel more buffers, since it has run out of them, unless there are as many as there may be. For the
  /// worker.
  void grow() noexcept;
  /// The array for the kernel.
  [[nodiscard]] uring::provided_buffer* array() const noexcept { return array_; }
  /// Returns the buffer with that number, into which the kernel has written `bytes` bytes.
  [[nodiscard]] arrived_bytes& filled(std::uint32_t number, std::uint32_t bytes) noexcept;
  void give_back(arrived_bytes& of) noexcept override;

 private:
  provided_buffers() = default;
  [[nodiscard]] std::byte* memory_of(std::uint32_t number) const noexcept;

  platform::spinlock lock_;  ///< of the tail
  uring::provided_buffer* array_ = nullptr;
  std::byte* memory_ = nullptr;
  std::uint16_t tail_ = 0;
  std::uint32_t count_ = 0;  ///< those that there are; changed by the worker
  arrived_bytes all_[max_count];
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
