// Allocates and frees the pages of large bodies.
#include "pirn/http/detail/body_string.hpp"

#include <sys/mman.h>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http::detail {

void* take_pages(std::size_t size) {
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return at;
}

void give_pages(void* at, std::size_t size) noexcept { ::munmap(at, size); }

}  // namespace http::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
