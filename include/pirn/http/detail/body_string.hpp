// Bodies of requests and responses in memory.
#pragma once

#include <cstddef>
#include <new>
#include <string>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http::detail {

/// Pages from the kernel, which get them back from `give_pages`. Throws std::bad_alloc.
[[nodiscard]] void* take_pages(std::size_t size);
void give_pages(void* at, std::size_t size) noexcept;

/// Large blocks come from the kernel and go back there: a connection may be idle for long after a large request, and
/// what is returned to malloc stays with the process where a small block of another connection lies behind it.
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
