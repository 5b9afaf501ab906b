// Allocates small stacks out of larger chunks of memory, and keeps a list of the idle stacks of each size.
#include "pirn/stack/expert/small_stacks.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr std::size_t canary_bytes = sizeof(std::uintptr_t);
constexpr std::size_t classes = small_stacks::max_size / small_stacks::step;
// The address space that is taken at a time. Pages are touched one after the other, as stacks are handed out.
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
// The bytes below the first stack of a chunk, touched only by code that ends the process with a message.
constexpr std::size_t for_last_words = std::size_t{16} << 10;

/// The stacks of one size.
struct size_class {
  platform::spinlock lock;
  void* idle = nullptr;  ///< linked by their first words
  char* fresh = nullptr;
  char* end = nullptr;
};
constinit size_class all[classes + 1];

void* take_from(size_class& kind, std::size_t bytes) noexcept {
  const platform::spin_guard guard(kind.lock);
  if (kind.idle != nullptr) {
    void* const found = kind.idle;
    kind.idle = *static_cast<void**>(found);
    return found;
  }
  if (static_cast<std::size_t>(kind.end - kind.fresh) < bytes) {
    void* const chunk =
        mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (chunk == MAP_FAILED) {
      return nullptr;
    }
    kind.fresh = static_cast<char*>(chunk) + for_last_words;
    kind.end = static_cast<char*>(chunk) + chunk_bytes;
  }
  char* const found = kind.fresh;
  kind.fresh += bytes;
  return found;
}

}  // namespace

char small_stacks::mark = 0;

stack_result small_stacks::allocate(std::size_t size) noexcept {
  if (size > max_size - canary_bytes) {
    return {stack{}, stack_error::invalid_size};
  }
  const std::size_t number = std::max((size + canary_bytes + step - 1) / step, min_size / step);
  const std::size_t bytes = number * step;
  char* const base = static_cast<char*>(take_from(all[number], bytes));
  if (base == nullptr) {
    return {stack{}, stack_error::out_of_memory};
  }
  auto* const canary = reinterpret_cast<std::uintptr_t*>(base);
  *canary = canary_at(canary);
  return {stack(base + canary_bytes, base + bytes, &mark)};
}

stack_result small_stacks::allocate_with_band(std::size_t size) noexcept {
  // A multiple of the band, so that all of it is in one line of the cache.
  const std::size_t wanted = (std::min(size, max_size) + band - 1) / band * band + band - canary_bytes;
  const stack_result made = allocate(wanted);
  if (made) {
    auto* const end = reinterpret_cast<std::uintptr_t*>(end_of_band(made.value));
    for (auto* each = static_cast<std::uintptr_t*>(made.value.limit()); each != end; ++each) {
      *each = canary_at(each);
    }
  }
  return made;
}

void small_stacks::give_back(const stack& value) noexcept {
  char* const base = static_cast<char*>(value.limit()) - canary_bytes;
  size_class& kind = all[static_cast<std::size_t>(static_cast<char*>(value.top()) - base) / step];
  const platform::spin_guard guard(kind.lock);
  *reinterpret_cast<void**>(base) = kind.idle;
  kind.idle = base;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
