// What io_uring allows: an echo server that is a bare loop around one ring and does nothing else. It receives by
// multishot requests into provided buffers, and sends from these; the kernel is entered once for all of it.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <vector>

#include "../echo_listen.hpp"

namespace {

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

constexpr std::uint8_t op_accept = 13, op_send = 26, op_recv = 27, select_buffer = 1 << 5;
constexpr std::uint16_t multishot_accept = 1, multishot_recv = 2;
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

struct part {
  std::uint16_t buffer;
  std::uint32_t bytes, sent;
};
struct connection {
  std::deque<part> unsent;  ///< the first one is being sent
  bool receives = false;
};

enum class job : std::uint8_t { accept, receive, send };

class server {
 public:
  explicit server(int listener) : listener_(listener), memory_(std::size_t{buffers} * buffer_size) {
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

  [[noreturn]] void run() {
    accept();
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

  submission& next(job what, int socket) {
    while (tail_ - load(sq_head_) == entries) {
      enter(0);
    }
    submission& made = submissions_[tail_++ & sq_mask_];
    made = {};
    made.descriptor = socket;
    made.user_data = std::uint64_t{static_cast<std::uint8_t>(what)} << 32 | static_cast<std::uint32_t>(socket);
    return made;
  }

  void give_back(std::uint16_t buffer) {
    provided_buffer& place = provided_[provided_tail_++ & (buffers - 1)];
    place.address = reinterpret_cast<std::uintptr_t>(memory_.data() + std::size_t{buffer} * buffer_size);
    place.length = buffer_size;
    place.number = buffer;
  }

  void accept() {
    submission& made = next(job::accept, listener_);
    made.opcode = op_accept;
    made.priority = multishot_accept;
    made.operation_flags = SOCK_CLOEXEC;
  }

  void receive(int socket) {
    submission& made = next(job::receive, socket);
    made.opcode = op_recv;
    made.priority = multishot_recv;
    made.flags = select_buffer;
    connections_[static_cast<std::size_t>(socket)].receives = true;
  }

  void send(int socket) {
    const part& first = connections_[static_cast<std::size_t>(socket)].unsent.front();
    submission& made = next(job::send, socket);
    made.opcode = op_send;
    made.address =
        reinterpret_cast<std::uintptr_t>(memory_.data() + std::size_t{first.buffer} * buffer_size + first.sent);
    made.length = first.bytes - first.sent;
    made.operation_flags = MSG_NOSIGNAL;
  }

  void end(const completion& of) {
    const int socket = static_cast<int>(of.user_data & 0xffffffff);
    switch (static_cast<job>(of.user_data >> 32)) {
      case job::accept:
        if (of.result >= 0) {
          connections_.resize(std::max(connections_.size(), static_cast<std::size_t>(of.result) + 1));
          receive(of.result);
        }
        if ((of.flags & more_follow) == 0) {
          accept();
        }
        return;
      case job::receive:
        received(socket, of);
        return;
      case job::send:
        sent(socket, of.result);
    }
  }

  void received(int socket, const completion& of) {
    connection& from = connections_[static_cast<std::size_t>(socket)];
    from.receives = (of.flags & more_follow) != 0;
    if (of.result > 0) {
      from.unsent.push_back({static_cast<std::uint16_t>(of.flags >> 16), static_cast<std::uint32_t>(of.result), 0});
      if (from.unsent.size() == 1) {
        send(socket);
      }
    } else if ((of.flags & has_buffer) != 0) {
      give_back(static_cast<std::uint16_t>(of.flags >> 16));
    }
    if (!from.receives && (of.result > 0 || of.result == -ENOBUFS)) {
      receive(socket);
    }
    close_if_over(socket);
  }

  void sent(int socket, std::int32_t result) {
    connection& to = connections_[static_cast<std::size_t>(socket)];
    part& first = to.unsent.front();
    first.sent = result > 0 ? first.sent + static_cast<std::uint32_t>(result) : first.bytes;
    if (first.sent == first.bytes) {
      give_back(first.buffer);
      to.unsent.pop_front();
    }
    if (!to.unsent.empty()) {
      send(socket);
    }
    close_if_over(socket);
  }

  void close_if_over(int socket) {
    connection& over = connections_[static_cast<std::size_t>(socket)];
    if (!over.receives && over.unsent.empty()) {
      ::close(socket);
    }
  }

  const int listener_;
  int ring_ = -1;
  std::vector<char> memory_;
  std::vector<connection> connections_;
  std::uint32_t *sq_head_ = nullptr, *sq_tail_ = nullptr, *cq_head_ = nullptr, *cq_tail_ = nullptr;
  std::uint32_t sq_mask_ = 0, cq_mask_ = 0, tail_ = 0;
  submission* submissions_ = nullptr;
  completion* completions_ = nullptr;
  provided_buffer* provided_ = nullptr;
  std::uint16_t provided_tail_ = 0;
};

}  // namespace

int main(int, char** argv) { server(bench::listen_at(argv[1])).run(); }
