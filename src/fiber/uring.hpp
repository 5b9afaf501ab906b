// The kernel's interface of io_uring, as far as the engine uses it, with numbers of our own: the headers of older
// systems lack the newer ones. A `ring` is one pair of queues.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace uring {

/// One request, as the kernel reads it.
struct submission {
  std::uint8_t opcode;
  std::uint8_t flags;
  std::uint16_t priority;
  std::int32_t descriptor;
  std::uint64_t offset;  ///< or a second address
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t operation_flags;
  std::uint64_t user_data;
  std::uint16_t buffer_group;
  std::uint16_t personality;
  std::int32_t second_descriptor;
  std::uint64_t unused[2];
};
static_assert(sizeof(submission) == 64);

/// The end of a request, as the kernel writes it.
struct completion_entry {
  std::uint64_t user_data;
  std::int32_t result;
  std::uint32_t flags;
};
static_assert(sizeof(completion_entry) == 16);

enum opcode : std::uint8_t {
  op_readv = 1,
  op_writev = 2,
  op_fsync = 3,
  op_poll_add = 6,
  op_async_cancel = 14,
  op_openat = 18,
  op_statx = 21,
  op_send = 26,
  op_recv = 27,
};
inline constexpr std::uint8_t skip_success = 1 << 6;  ///< of a submission: no completion unless it fails
inline constexpr std::uint32_t poll_multishot = 1;    ///< in the length of a poll
inline constexpr std::uint32_t fsync_data = 1;        ///< in the flags of an fsync
inline constexpr std::uint32_t more_follow = 1 << 1;  ///< of a completion

inline constexpr std::uint8_t select_buffer = 1 << 5;       ///< of a submission: into a buffer of its group
inline constexpr std::uint16_t receive_multishot = 1 << 1;  ///< in the priority of a receive
inline constexpr std::uint32_t has_buffer = 1 << 0;         ///< of a completion
inline constexpr unsigned buffer_shift = 16;                ///< of the buffer's number in the flags of a completion

/// A buffer for the kernel to fill, in an array that it reads. `tail` is that of the array in the first one.
struct provided_buffer {
  std::uint64_t address;
  std::uint32_t length;
  std::uint16_t number;
  std::uint16_t tail;
};
static_assert(sizeof(provided_buffer) == 16);

/// Features that a kernel may lack. PIRN_URING_WITHOUT names those that a test masks.
struct features {
  bool available = true;          ///< whether rings can be made at all
  bool submit_all = true;         ///< 5.18
  bool skip_success = true;       ///< 5.17
  bool coop_taskrun = true;       ///< 5.19
  bool single_issuer = true;      ///< 6.0
  bool defer_taskrun = true;      ///< 6.1
  bool no_sqarray = true;         ///< 6.6
  bool registered_ring = true;    ///< 5.18
  bool no_iowait = true;          ///< 6.15
  bool multishot_poll = true;     ///< 5.13
  bool send = true;               ///< 5.6
  bool multishot_receive = true;  ///< 6.0, with buffers that are provided by an array (5.19)
};

/// A submission and a completion queue, shared with the kernel. All functions are for one thread, except for those
/// before `enable`.
class ring {
  /// A word that the kernel reads or writes too.
  using shared_word = platform::atomic<std::uint32_t>;
  static_assert(sizeof(shared_word) == sizeof(std::uint32_t));

 public:
  ring() noexcept = default;
  ~ring();
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  /// Makes the queues with the features that both `wanted` and the kernel have. False, with a text of static duration
  /// that says why, if the kernel refuses or is too old.
  [[nodiscard]] bool open(const features& wanted, const char*& why) noexcept;
  /// Lets the calling thread, and only it, use the ring. Returns the number of an error, or 0.
  [[nodiscard]] int enable() noexcept;

  /// Returns a cleared place for a request, or null if the queue is full: then `enter` makes room.
  [[nodiscard]] submission* next() noexcept;
  /// The requests that the kernel has not seen.
  [[nodiscard]] std::uint32_t pending() const noexcept {
    return tail_ - sq_head_->load(platform::memory_order_acquire);
  }
  /// Whether the kernel has ended requests, or would end some if it were entered.
  [[nodiscard]] bool has_news() const noexcept;
  [[nodiscard]] bool has_completions() const noexcept {
    return cq_head_->load(platform::memory_order_relaxed) != cq_tail_->load(platform::memory_order_acquire);
  }
  /// Passes on what is pending, lets the kernel finish what it can, and waits for a completion unless there is one:
  /// until `limit`, if given, has passed. Returns the number of an error, or 0, also after the limit.
  int enter(bool wait, const ::timespec* limit) noexcept;
  /// Calls `each` with every completion.
  template <class Each>
  void reap(Each each) noexcept {
    std::uint32_t head = cq_head_->load(platform::memory_order_relaxed);
    while (head != cq_tail_->load(platform::memory_order_acquire)) {
      const completion_entry entry = completions_[head & cq_mask_];
      cq_head_->store(++head, platform::memory_order_release);
      each(entry);
    }
  }
  /// Returns how often the kernel had to keep completions elsewhere, as the queue was full. Any thread.
  [[nodiscard]] std::uint64_t overflows() const noexcept { return overflows_.load(platform::memory_order_relaxed); }
  /// Whether a completion is lost, since the kernel had no memory to keep it.
  [[nodiscard]] bool lost_one() const noexcept { return cq_overflow_->load(platform::memory_order_relaxed) != 0; }
  [[nodiscard]] const features& has() const noexcept { return has_; }
  /// Lets the kernel take buffers from an array of `count`, a power of 2, which stays until the ring is closed. False
  /// if it cannot: then the ring has no multishot receive.
  [[nodiscard]] bool provide(provided_buffer* array, std::uint32_t count) noexcept;
  void give_up_multishot_receive() noexcept { has_.multishot_receive = false; }

 private:
  int descriptor_ = -1;
  int registered_ = -1;  ///< its number for the thread that has enabled it, which is
  ::pid_t enabled_by_ = 0;
  features has_;
  void* queues_ = nullptr;
  std::size_t queues_size_ = 0;
  submission* submissions_ = nullptr;
  std::size_t submissions_size_ = 0;
  shared_word* sq_head_ = nullptr;
  shared_word* sq_tail_ = nullptr;
  shared_word* sq_flags_ = nullptr;
  shared_word* cq_head_ = nullptr;
  shared_word* cq_tail_ = nullptr;
  shared_word* cq_overflow_ = nullptr;
  completion_entry* completions_ = nullptr;
  std::uint32_t sq_mask_ = 0;
  std::uint32_t sq_entries_ = 0;
  std::uint32_t cq_mask_ = 0;
  platform::atomic<std::uint64_t> overflows_{0};
  std::uint32_t tail_ = 0;  ///< of the submissions; the kernel's word follows it in `enter`
};

/// Returns the features that PIRN_URING_WITHOUT leaves. Names that it does not know are an error of the test.
[[nodiscard]] features features_left() noexcept;

}  // namespace uring
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
