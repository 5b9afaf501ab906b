// Makes, enters and destroys a ring by raw system calls.
#include "fiber/uring.hpp"

#include <linux/time_types.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fiber/epoll_engine.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace uring {

namespace {

constexpr unsigned wanted_entries = 256;

constexpr std::uint32_t setup_clamp = 1u << 4;
constexpr std::uint32_t setup_r_disabled = 1u << 6;
constexpr std::uint32_t setup_submit_all = 1u << 7;
constexpr std::uint32_t setup_coop_taskrun = 1u << 8;
constexpr std::uint32_t setup_taskrun_flag = 1u << 9;
constexpr std::uint32_t setup_single_issuer = 1u << 12;
constexpr std::uint32_t setup_defer_taskrun = 1u << 13;
constexpr std::uint32_t setup_no_sqarray = 1u << 16;

constexpr std::uint32_t feature_single_mmap = 1u << 0;
constexpr std::uint32_t feature_no_drop = 1u << 1;
constexpr std::uint32_t feature_ext_arg = 1u << 8;
constexpr std::uint32_t feature_rsrc_tags = 1u << 10;     // Linux 5.13, which has multishot polls too
constexpr std::uint32_t feature_skip_success = 1u << 11;  // Linux 5.17
constexpr std::uint32_t feature_no_iowait = 1u << 17;

constexpr std::uint32_t enter_get_events = 1u << 0;
constexpr std::uint32_t enter_ext_arg = 1u << 3;
constexpr std::uint32_t enter_registered_ring = 1u << 4;
constexpr std::uint32_t enter_no_iowait = 1u << 7;

constexpr unsigned register_enable_rings = 12;
constexpr unsigned register_ring_fds = 20;
constexpr unsigned unregister_ring_fds = 21;
constexpr unsigned register_buffers = 22;

constexpr std::uint32_t sq_cq_overflow = 1u << 1;
constexpr std::uint32_t sq_taskrun = 1u << 2;

constexpr std::uint64_t offset_rings = 0;
constexpr std::uint64_t offset_submissions = 0x10000000;

struct sq_offsets {
  std::uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, unused;
  std::uint64_t user_address;
};
struct cq_offsets {
  std::uint32_t head, tail, ring_mask, ring_entries, overflow, entries, flags, unused;
  std::uint64_t user_address;
};
struct parameters {
  std::uint32_t sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd, unused[3];
  sq_offsets sq;
  cq_offsets cq;
};
static_assert(sizeof(parameters) == 120);

struct wait_argument {
  std::uint64_t signals;
  std::uint32_t signals_size;
  std::uint32_t min_wait;
  std::uint64_t limit;
};
struct buffer_array {
  std::uint64_t address;
  std::uint32_t entries;
  std::uint16_t group, flags;
  std::uint64_t unused[3];
};
struct ring_update {
  std::uint32_t offset, unused;
  std::uint64_t data;
};

// The numbers are those of every architecture but alpha.
constexpr long call_setup = 425;
constexpr long call_enter = 426;
constexpr long call_register = 427;

long register_call(int ring, unsigned what, const void* argument, unsigned count) noexcept {
  return ::syscall(call_register, ring, what, argument, count);
}

}  // namespace

features features_left() noexcept {
  features left;
  const struct {
    const char* name;
    bool features::* which;
  } names[] = {
      {"all", &features::available},
      {"submit_all", &features::submit_all},
      {"skip_success", &features::skip_success},
      {"coop_taskrun", &features::coop_taskrun},
      {"single_issuer", &features::single_issuer},
      {"defer_taskrun", &features::defer_taskrun},
      {"no_sqarray", &features::no_sqarray},
      {"registered_ring", &features::registered_ring},
      {"no_iowait", &features::no_iowait},
      {"multishot_poll", &features::multishot_poll},
      {"send", &features::send},
      {"multishot_receive", &features::multishot_receive},
  };
  const char* const without = std::getenv("PIRN_URING_WITHOUT");
  std::string_view rest = without != nullptr ? without : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    for (const auto& each : names) {
      if (rest.substr(0, end) == each.name) {
        left.*each.which = false;
      }
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  left.defer_taskrun = left.defer_taskrun && left.single_issuer;  // the kernel wants both
  return left;
}

bool ring::open(const features& wanted, const char*& why) noexcept {
  if (!wanted.available) {
    why = "PIRN_URING_WITHOUT forbids it";
    return false;
  }
  has_ = wanted;
  parameters made{};
  // The newest flags are given up first. An unknown one is EINVAL.
  for (;;) {
    made = {};
    made.flags = setup_clamp | (has_.submit_all ? setup_submit_all : 0) |
                 (has_.single_issuer ? setup_single_issuer | setup_r_disabled : 0) |
                 (has_.defer_taskrun  ? setup_defer_taskrun | setup_taskrun_flag
                  : has_.coop_taskrun ? setup_coop_taskrun | setup_taskrun_flag
                                      : 0) |
                 (has_.no_sqarray ? setup_no_sqarray : 0);
    descriptor_ = detail::beyond_standards(static_cast<int>(::syscall(call_setup, wanted_entries, &made)));
    if (descriptor_ >= 0 || errno != EINVAL) {
      break;
    }
    if (has_.no_sqarray) {
      has_.no_sqarray = false;
    } else if (has_.defer_taskrun) {
      has_.defer_taskrun = false;
    } else if (has_.single_issuer) {
      has_.single_issuer = false;
    } else if (has_.coop_taskrun) {
      has_.coop_taskrun = false;
    } else if (has_.submit_all) {
      has_.submit_all = false;
    } else {
      break;
    }
  }
  if (descriptor_ < 0) {
    const int error = errno;
    why = error == ENOSYS   ? "the kernel has no io_uring"
          : error == EPERM  ? "io_uring is forbidden (by kernel.io_uring_disabled, or by the container)"
          : error == EINVAL ? "the kernel's io_uring is too old: Linux 5.11 is needed"
          : error == ENOMEM ? "the kernel has no memory for a ring (RLIMIT_MEMLOCK)"
                            : "the kernel refuses a ring";
    return false;
  }
  constexpr std::uint32_t needed = feature_single_mmap | feature_no_drop | feature_ext_arg;
  if ((made.features & needed) != needed) {
    why = "the kernel's io_uring is too old: Linux 5.11 is needed";
    return false;
  }
  has_.multishot_poll = has_.multishot_poll && (made.features & feature_rsrc_tags) != 0;
  has_.skip_success = has_.skip_success && (made.features & feature_skip_success) != 0;
  has_.no_iowait = has_.no_iowait && (made.features & feature_no_iowait) != 0;
  const std::size_t sq_end = made.sq.array + (has_.no_sqarray ? 0 : made.sq_entries * sizeof(std::uint32_t));
  queues_size_ = std::max<std::size_t>(sq_end, made.cq.entries + made.cq_entries * sizeof(completion_entry));
  submissions_size_ = made.sq_entries * sizeof(submission);
  constexpr int protection = PROT_READ | PROT_WRITE;
  constexpr int flags = MAP_SHARED | MAP_POPULATE;
  queues_ = ::mmap(nullptr, queues_size_, protection, flags, descriptor_, offset_rings);
  void* const entries = ::mmap(nullptr, submissions_size_, protection, flags, descriptor_, offset_submissions);
  if (queues_ == MAP_FAILED || entries == MAP_FAILED) {
    why = "there is no memory for a ring";
    queues_ = queues_ == MAP_FAILED ? nullptr : queues_;
    submissions_ = entries == MAP_FAILED ? nullptr : static_cast<submission*>(entries);
    return false;
  }
  submissions_ = static_cast<submission*>(entries);
  auto* const base = static_cast<std::byte*>(queues_);
  const auto at = [base](std::uint32_t offset) { return reinterpret_cast<std::uint32_t*>(base + offset); };
  const auto shared = [base](std::uint32_t offset) { return reinterpret_cast<shared_word*>(base + offset); };
  sq_head_ = shared(made.sq.head);
  sq_tail_ = shared(made.sq.tail);
  sq_flags_ = shared(made.sq.flags);
  sq_mask_ = *at(made.sq.ring_mask);
  sq_entries_ = made.sq_entries;
  cq_head_ = shared(made.cq.head);
  cq_tail_ = shared(made.cq.tail);
  cq_mask_ = *at(made.cq.ring_mask);
  cq_overflow_ = shared(made.cq.overflow);
  completions_ = reinterpret_cast<completion_entry*>(base + made.cq.entries);
  if (!has_.no_sqarray) {
    for (std::uint32_t i = 0; i < made.sq_entries; ++i) {
      at(made.sq.array)[i] = i;
    }
  }
  return true;
}

ring::~ring() {
  // The number is one of that thread's table, which ends with the thread. In another one it may be another ring's.
  if (registered_ >= 0 && enabled_by_ == ::gettid()) {
    ring_update which{static_cast<std::uint32_t>(registered_), 0, 0};
    static_cast<void>(register_call(descriptor_, unregister_ring_fds, &which, 1));
  }
  if (submissions_ != nullptr) {
    ::munmap(submissions_, submissions_size_);
  }
  if (queues_ != nullptr) {
    ::munmap(queues_, queues_size_);
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

int ring::enable() noexcept {
  if (has_.single_issuer && register_call(descriptor_, register_enable_rings, nullptr, 0) != 0) {
    return errno;
  }
  ring_update place{~0u, 0, static_cast<std::uint64_t>(descriptor_)};
  if (has_.registered_ring && register_call(descriptor_, register_ring_fds, &place, 1) == 1) {
    registered_ = static_cast<int>(place.offset);
    enabled_by_ = ::gettid();
  } else {
    has_.registered_ring = false;
  }
  return 0;
}

bool ring::provide(provided_buffer* array, std::uint32_t count) noexcept {
  const buffer_array all{reinterpret_cast<std::uintptr_t>(array), count, 0, 0, {}};
  has_.multishot_receive = has_.multishot_receive && register_call(descriptor_, register_buffers, &all, 1) == 0;
  return has_.multishot_receive;
}

submission* ring::next() noexcept {
  if (pending() == sq_entries_) {
    return nullptr;
  }
  submission* const place = &submissions_[tail_++ & sq_mask_];
  *place = {};
  return place;
}

bool ring::has_news() const noexcept {
  return has_completions() || (sq_flags_->load(platform::memory_order_relaxed) & (sq_taskrun | sq_cq_overflow)) != 0;
}

int ring::enter(bool wait, const ::timespec* limit) noexcept {
  if ((sq_flags_->load(platform::memory_order_relaxed) & sq_cq_overflow) != 0) {
    overflows_.store(overflows_.load(platform::memory_order_relaxed) + 1, platform::memory_order_relaxed);
  }
  sq_tail_->store(tail_, platform::memory_order_release);
  __kernel_timespec kernel_limit{};
  wait_argument argument{};
  if (limit != nullptr) {
    kernel_limit.tv_sec = limit->tv_sec;
    kernel_limit.tv_nsec = limit->tv_nsec;
    argument.limit = reinterpret_cast<std::uintptr_t>(&kernel_limit);
  }
  const std::uint32_t flags = enter_get_events | (wait ? enter_ext_arg : 0) |
                              (registered_ >= 0 ? enter_registered_ring : 0) |
                              (wait && has_.no_iowait ? enter_no_iowait : 0);
  const long entered = ::syscall(call_enter, registered_ >= 0 ? registered_ : descriptor_, pending(), wait ? 1 : 0,
                                 flags, wait ? &argument : nullptr, wait ? sizeof argument : 0);
  return entered >= 0 || errno == ETIME ? 0 : errno;
}

}  // namespace uring
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
