// Bodies of requests and responses in memory.
#pragma once

#include <cstddef>
#include <new>
#include <string>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http::detail {

/// Allocates pages from the kernel; `give_pages` gives them back. Throws std::bad_alloc.
[[nodiscard]] void* take_pages(std::size_t size);
void give_pages(void* at, std::size_t size) noexcept;

/// Takes large blocks from the kernel and gives them back to it, since a connection may be idle for long after a large
/// request. A block given back to malloc would stay with the process while a small block of another connection lies
/// behind it.
template <class T>
struct body_allocator {
  using value_type = T;
  static constexpr std::size_t large = std::size_t{64} * 1024;

  body_allocator() noexcept = default;
  template <class U>
  explicit body_allocator(const body_allocator<U>&) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    return static_cast<T*>(size < large ? ::operator new(size) : take_pages(size));
  }
  void deallocate(T* at, std::size_t count) noexcept {
    const std::size_t size = count * sizeof(T);
    size < large ? ::operator delete(at) : give_pages(at, size);
  }
  friend bool operator==(const body_allocator&, const body_allocator&) noexcept { return true; }
};

using body_string = std::basic_string<char, std::char_traits<char>, body_allocator<char>>;

}  // namespace http::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
