// The messages and the category of stack_error, and the functions that measure and trim the memory of one stack.
#include "pirn/stack/stack.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "stack/address_space.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

const char* to_string(stack_error error) noexcept {
  switch (error) {
    case stack_error::none:
      return "a stack was allocated";
    case stack_error::out_of_memory:
      return "no memory for a stack: the kernel (overcommit, cgroup or locked-memory limit) or the heap refused; use "
             "fewer or smaller stacks, or give the process more memory";
    case stack_error::address_space:
      return "no address space for a stack: RLIMIT_AS or RLIMIT_DATA (ulimit -v, ulimit -d) is reached or no free "
             "range "
             "is left; raise the limit, or use fewer stacks or smaller guards";
    case stack_error::mapping_limit:
      return "no mapping for a stack's guard: vm.max_map_count is reached; raise it (sysctl vm.max_map_count=N), or "
             "run "
             "on Linux 6.13 without locked memory, where guards need no mapping";
    case stack_error::pool_limit:
      return "the stack pool's own limit is reached: raise max_stacks or max_bytes in its options, or wait for a stack "
             "to come back";
    case stack_error::guard_refused:
      return "the requested kind of guard is not available: lightweight guards need Linux 6.13 and memory that is not "
             "locked, and a guard is whole pages unless guard_kind::none is requested";
    case stack_error::too_small:
      return "the stack is too small for the data that must lie on it: ask for a larger stack_size";
    case stack_error::no_image_memory:
      return "no memory for the image that a coroutine keeps while another one uses their copy_stack: its allocator "
             "refused; keep fewer or smaller images (image_statistics says how large they are), or give it more memory";
    case stack_error::stack_in_use:
      return "a coroutine runs on this copy_stack, so neither it nor the code that it resumes can resume another "
             "coroutine of the same copy_stack: let its resumer do that, or use two copy_stacks";
    case stack_error::invalid_size:
      return "the size of a stack is zero, or out of range: ask for 1 byte to 64 GiB, and for a copy_stack 512 bytes "
             "to 4 GiB";
  }
  return "unknown stack error";
}

namespace {
class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pirn.stack"; }
  [[nodiscard]] std::string message(int value) const override { return to_string(static_cast<stack_error>(value)); }
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<stack_error>(value)) {
      case stack_error::none:
        return {};
      case stack_error::too_small:
      case stack_error::invalid_size:
        return std::errc::invalid_argument;
      case stack_error::guard_refused:
        return std::errc::not_supported;
      case stack_error::stack_in_use:
        return std::errc::device_or_resource_busy;
      default:
        return std::errc::not_enough_memory;
    }
  }
};

/// Calls `visit(address, page size)` for each page of [limit, top) that has memory, highest first. Ends at a gap of
/// `gap_chunks` without memory: otherwise a stack of many GiB would take as many thousand calls.
template <class Visit>
void each_resident_page(const stack& value, Visit visit) noexcept {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  constexpr std::uintptr_t chunk_pages = 256;  // bytes on the caller's stack, which may be small
  constexpr unsigned gap_chunks = 16;
  unsigned char resident[chunk_pages];
  const auto begin = reinterpret_cast<std::uintptr_t>(value.limit()) / page * page;
  auto end = (reinterpret_cast<std::uintptr_t>(value.top()) + page - 1) / page * page;
  for (unsigned empty = 0; end > begin && empty < gap_chunks;) {
    const std::uintptr_t pages = (end - begin) / page < chunk_pages ? (end - begin) / page : chunk_pages;
    end -= pages * page;
    if (mincore(reinterpret_cast<void*>(end), pages * page, resident) != 0) {
      return;
    }
    ++empty;
    for (std::uintptr_t i = pages; i-- > 0;) {
      if ((resident[i] & 1) != 0) {
        visit(end + i * page, page);
        empty = 0;
      }
    }
  }
}
}  // namespace

const std::error_category& stack_category() noexcept {
  static const category instance;
  return instance;
}

std::error_code make_error_code(stack_error error) noexcept { return {static_cast<int>(error), stack_category()}; }

std::size_t high_water(const stack& value) noexcept {
  std::size_t depth = 0;
  const auto top = reinterpret_cast<std::uintptr_t>(value.top());
  const auto limit = reinterpret_cast<std::uintptr_t>(value.limit());
  each_resident_page(value, [&](std::uintptr_t at, std::uintptr_t) { depth = top - (at > limit ? at : limit); });
  return depth;
}

std::size_t resident_bytes(const stack& value) noexcept {
  std::size_t bytes = 0;
  each_resident_page(value, [&](std::uintptr_t, std::uintptr_t page) { bytes += page; });
  return bytes;
}

bool trim(const stack& value, const void* lowest) noexcept {
  const iovec unused = detail::pages_above_end_below(value, lowest);
  return unused.iov_len == 0 || madvise(unused.iov_base, unused.iov_len, MADV_DONTNEED) == 0;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
