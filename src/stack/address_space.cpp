// The system calls that map, protect and release the memory of stacks, and the diagnosis of their failures.
#include "stack/address_space.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "pirn/context/detail/stack_end.hpp"
#include "pirn/detail/platform.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef PIDFD_SELF_THREAD_GROUP
#define PIDFD_SELF_THREAD_GROUP (-10001)
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {
/// Counts the lines of a file of /proc; 0 if it cannot be read.
std::size_t count_lines(const char* path) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  std::size_t lines = 0;
  char buffer[512];  // the caller may be running on a small stack
  for (ssize_t got = 0; (got = read(file, buffer, sizeof buffer)) > 0;) {
    for (ssize_t i = 0; i < got; ++i) {
      lines += buffer[i] == '\n' ? 1 : 0;
    }
  }
  close(file);
  return lines;
}

std::size_t read_number(const char* path) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return SIZE_MAX;
  }
  char buffer[32] = {};
  const ssize_t got = read(file, buffer, sizeof buffer - 1);
  close(file);
  return got > 0 ? static_cast<std::size_t>(std::strtoull(buffer, nullptr, 10)) : SIZE_MAX;
}

/// ENOMEM of mmap, mprotect and madvise has several causes and the kernel does not say which: finds the exhausted
/// limit.
stack_error why_no_mapping() noexcept {
  constexpr std::size_t slack = 8;  // some of the listed lines are not counted by the kernel, and a split needs two
  if (count_lines("/proc/self/maps") + slack >= read_number("/proc/sys/vm/max_map_count")) {
    return stack_error::mapping_limit;
  }
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      return stack_error::address_space;
    }
  }
  return stack_error::out_of_memory;
}

stack_error protect(char* begin, std::size_t bytes, int protection) noexcept {
  if (mprotect(begin, bytes, protection) == 0) {
    return stack_error::none;
  }
  return errno == ENOMEM ? why_no_mapping() : stack_error::guard_refused;
}
}  // namespace

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

char* reserve_range(std::size_t bytes, stack_error& error) noexcept {
  // Inaccessible at first, so that memory locked by mlockall is not filled until a stack is made.
  void* range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (range == MAP_FAILED) {
    // Inaccessible memory is not charged, so a lack of memory is not the cause; locked memory is (EAGAIN).
    error = stack_error::out_of_memory;
    if (errno == ENOMEM) {
      error = why_no_mapping();
      error = error == stack_error::out_of_memory ? stack_error::address_space : error;
    }
    return nullptr;
  }
  // A huge page would give every stack 2 MiB of memory; kernels without them refuse the advice, which does no harm.
  madvise(range, bytes, MADV_NOHUGEPAGE);
  return static_cast<char*>(range);
}

void release_range(char* begin, std::size_t bytes) noexcept { munmap(begin, bytes); }

stack_error make_usable(char* begin, std::size_t bytes) noexcept {
  return protect(begin, bytes, PROT_READ | PROT_WRITE);
}

stack_error make_inaccessible(char* begin, std::size_t bytes) noexcept { return protect(begin, bytes, PROT_NONE); }

stack_error install_guard(char* begin, std::size_t bytes) noexcept {
  int result = 0;
  do {
    result = madvise(begin, bytes, MADV_GUARD_INSTALL);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0) {
    return stack_error::none;
  }
  return errno == ENOMEM ? stack_error::out_of_memory : stack_error::guard_refused;
}

namespace {
/// Advises for all ranges by one system call. False if the kernel cannot, or has not done all.
bool advise_at_once(const iovec* ranges, std::size_t count, int advice) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += ranges[i].iov_len;
  }
  const long done = syscall(SYS_process_madvise, PIDFD_SELF_THREAD_GROUP, ranges, count, advice, 0);
  return done >= 0 && static_cast<std::size_t>(done) == bytes;
}
}  // namespace

bool install_guards(const iovec* ranges, std::size_t count) noexcept {
  static platform::atomic<bool> at_once{true};
  if (!at_once.load(platform::memory_order_relaxed)) {
    return false;
  }
  const bool done = advise_at_once(ranges, count, MADV_GUARD_INSTALL);
  if (!done) {
    at_once.store(false, platform::memory_order_relaxed);  // an older kernel; or a lack of memory: one by one is safe
  }
  return done;
}

void give_memory_back(const iovec* ranges, std::size_t count) noexcept {
  static platform::atomic<bool> at_once{true};
  if (at_once.load(platform::memory_order_relaxed)) {
    if (advise_at_once(ranges, count, MADV_DONTNEED)) {
      return;
    }
    at_once.store(false, platform::memory_order_relaxed);  // an older kernel, or memory that is locked
  }
  for (std::size_t i = 0; i < count; ++i) {
    madvise(ranges[i].iov_base, ranges[i].iov_len, MADV_DONTNEED);
  }
}

iovec pages_below(const stack& value, const void* lowest) noexcept {
  const std::uintptr_t page = page_size();
  const auto begin = (reinterpret_cast<std::uintptr_t>(value.limit()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(std::min<const void*>(lowest, value.top())) / page * page;
  return {reinterpret_cast<void*>(begin), end > begin ? end - begin : 0};
}

__attribute__((no_sanitize("address", "thread"))) iovec pages_above_end_below(const stack& value,
                                                                              const void* lowest) noexcept {
  iovec pages = pages_below(value, lowest);
  const auto limit = reinterpret_cast<std::uintptr_t>(value.limit());
  if (pages.iov_len != 0 && pages.iov_base == value.limit() && !stack_end::overwritten(limit)) {
    pages.iov_base = static_cast<char*>(pages.iov_base) + page_size();
    pages.iov_len -= page_size();
  }
  return pages;
}

void get_memory(char* begin, std::size_t bytes) noexcept {
  if (bytes != 0 && madvise(begin, bytes, MADV_POPULATE_WRITE) != 0) {
    for (std::size_t at = 0; at < bytes; at += page_size()) {
      static_cast<volatile char*>(begin)[at] = 0;
    }
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
