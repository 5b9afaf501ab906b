// A bare loop around one ring of io_uring, for programs that show what it allows: multishot receives into provided
// buffers, and one system call for all that a turn of the loop asks for.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace bench::bare {

// The kernel's interface, with numbers of our own, since Debian's header is older than the kernel may be.
struct submission {
  std::uint8_t opcode, flags;
  std::uint16_t priority;
  std::int32_t descriptor;
  std::uint64_t offset, address;
  std::uint32_t length, operation_flags;
  std::uint64_t user_data;
  std::uint16_t buffer_group, personality;
  std::int32_t second_descriptor;
  std::uint64_t unused[2];
};
struct completion {
  std::uint64_t user_data;
  std::int32_t result;
  std::uint32_t flags;
};
struct parameters {
  std::uint32_t sq_entries, cq_entries, flags, thread_cpu, thread_idle, features, wq, unused[3];
  std::uint32_t sq_head, sq_tail, sq_mask, sq_size, sq_flags, sq_dropped, sq_array, sq_unused;
  std::uint64_t sq_address;
  std::uint32_t cq_head, cq_tail, cq_mask, cq_size, cq_overflow, cq_completions, cq_flags, cq_unused;
  std::uint64_t cq_address;
};
struct provided_buffer {
  std::uint64_t address;
  std::uint32_t length;
  std::uint16_t number, tail;  ///< the tail is that of the ring, in its first entry
};
struct buffer_ring {
  std::uint64_t address;
  std::uint32_t entries;
  std::uint16_t group, flags;
  std::uint64_t unused[3];
};

constexpr std::uint8_t op_fsync = 3, op_accept = 13, op_write = 23, op_send = 26, op_recv = 27, select_buffer = 1 << 5,
                       link_next = 1 << 2;
constexpr std::uint16_t multishot_accept = 1, multishot_recv = 2;
constexpr std::uint32_t data_only = 1;  ///< of a sync
constexpr std::uint32_t clamp = 1 << 4, set_cq_size = 1 << 3, submit_all = 1 << 7, single_issuer = 1 << 12,
                        defer_taskrun = 1 << 13, no_sqarray = 1 << 16;
constexpr std::uint32_t has_buffer = 1, more_follow = 2;
constexpr unsigned entries = 4096, buffers = 2048, buffer_size = 16384, register_buffers = 22;

template <class T>
T load(const T* from) {
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
template <class T>
void store(T* to, T value) {
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/// The ring and its buffers. What an operation is for is a number of the program's.
class ring {
 public:
  ring() : memory_(std::size_t{buffers} * buffer_size) {
    parameters made{};
    made.flags = clamp | set_cq_size | submit_all | single_issuer | defer_taskrun | no_sqarray;
    made.cq_entries = 4 * entries;
    ring_ = static_cast<int>(::syscall(425, entries, &made));
    if (ring_ < 0) {
      std::fprintf(stderr, "the kernel refuses such a ring: %s\n", std::strerror(errno));
      std::exit(77);
    }
    auto* const base = static_cast<std::byte*>(map(made.cq_completions + made.cq_entries * sizeof(completion), 0));
    const auto word = [base](std::uint32_t at) { return reinterpret_cast<std::uint32_t*>(base + at); };
    sq_head_ = word(made.sq_head);
    sq_tail_ = word(made.sq_tail);
    sq_mask_ = *word(made.sq_mask);
    cq_head_ = word(made.cq_head);
    cq_tail_ = word(made.cq_tail);
    cq_mask_ = *word(made.cq_mask);
    completions_ = reinterpret_cast<completion*>(base + made.cq_completions);
    submissions_ = static_cast<submission*>(map(made.sq_entries * sizeof(submission), 0x10000000));
    provided_ = static_cast<provided_buffer*>(
        ::mmap(nullptr, buffers * sizeof(provided_buffer), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const buffer_ring all{reinterpret_cast<std::uintptr_t>(provided_), buffers, 0, 0, {}};
    if (::syscall(427, ring_, register_buffers, &all, 1) != 0) {
      std::fprintf(stderr, "the kernel takes no buffers: %s\n", std::strerror(errno));
      std::exit(77);
    }
    for (unsigned i = 0; i < buffers; ++i) {
      give_back(static_cast<std::uint16_t>(i));
    }
  }

  /// Sends what was asked for to the kernel and takes completions by `end(completion)`, for ever.
  template <class End>
  [[noreturn]] void run(End end) {
    for (;;) {
      store(&provided_->tail, provided_tail_);
      enter(1);
      std::uint32_t head = *cq_head_;
      for (const std::uint32_t tail = load(cq_tail_); head != tail; ++head) {
        end(completions_[head & cq_mask_]);
      }
      store(cq_head_, head);
    }
  }

  /// Returns an operation on a descriptor, to be filled in.
  submission& next(std::uint8_t what, int descriptor) {
    while (tail_ - load(sq_head_) == entries) {
      enter(0);
    }
    submission& made = submissions_[tail_++ & sq_mask_];
    made = {};
    made.descriptor = descriptor;
    made.user_data = std::uint64_t{what} << 32 | static_cast<std::uint32_t>(descriptor);
    return made;
  }

  void give_back(std::uint16_t buffer) {
    provided_buffer& place = provided_[provided_tail_++ & (buffers - 1)];
    place.address = reinterpret_cast<std::uintptr_t>(this->buffer(buffer));
    place.length = buffer_size;
    place.number = buffer;
  }

  /// The bytes of a buffer that a receive has taken.
  [[nodiscard]] char* buffer(std::uint16_t number) { return memory_.data() + std::size_t{number} * buffer_size; }

  void accept(std::uint8_t what, int listener) {
    submission& made = next(what, listener);
    made.opcode = op_accept;
    made.priority = multishot_accept;
    made.operation_flags = 02000000;  // SOCK_CLOEXEC
  }

  void receive(std::uint8_t what, int socket) {
    submission& made = next(what, socket);
    made.opcode = op_recv;
    made.priority = multishot_recv;
    made.flags = select_buffer;
  }

  void send(std::uint8_t what, int socket, const char* text, std::uint32_t size) {
    submission& made = next(what, socket);
    made.opcode = op_send;
    made.address = reinterpret_cast<std::uintptr_t>(text);
    made.length = size;
    made.operation_flags = 0x4000;  // MSG_NOSIGNAL
  }

 private:
  void* map(std::size_t size, std::int64_t at) {
    void* const made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_, at);
    if (made == MAP_FAILED) {
      std::perror("cannot map the ring");
      std::exit(EXIT_FAILURE);
    }
    return made;
  }

  void enter(unsigned wait) {
    store(sq_tail_, tail_);
    constexpr unsigned get_events = 1;
    ::syscall(426, ring_, tail_ - load(sq_head_), wait, get_events, nullptr, 0);
  }

  int ring_ = -1;
  std::vector<char> memory_;
  std::uint32_t *sq_head_ = nullptr, *sq_tail_ = nullptr, *cq_head_ = nullptr, *cq_tail_ = nullptr;
  std::uint32_t sq_mask_ = 0, cq_mask_ = 0, tail_ = 0;
  submission* submissions_ = nullptr;
  completion* completions_ = nullptr;
  provided_buffer* provided_ = nullptr;
  std::uint16_t provided_tail_ = 0;
};

}  // namespace bench::bare
