// The bytes that have arrived at a socket and are not consumed yet, and the receive of io_uring that brings them. It
// stays armed and takes a buffer of the worker's ring only when there are bytes, so a connection that waits has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pirn/detail/intrusive_list.hpp"
#include "pirn/detail/platform.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class engine;

namespace detail {

class receive_buffers;
class runtime_state;

/// Bytes that have arrived, in a buffer.
struct arrived_bytes {
  arrived_bytes* next = nullptr;  ///< those that have arrived after them
  std::byte* first = nullptr;
  std::uint32_t left = 0;           ///< how many are not consumed
  receive_buffers* home = nullptr;  ///< the owner of the buffer; null for one from `make_receive_buffer`
};

/// The buffers of an engine.
class receive_buffers {
 public:
  virtual ~receive_buffers() = default;
  /// Takes a buffer back. Any thread.
  virtual void give_back(arrived_bytes& of) noexcept = 0;
};

/// Returns a buffer for one receive without an engine, or null without memory.
[[nodiscard]] arrived_bytes* make_receive_buffer() noexcept;
inline constexpr std::size_t receive_buffer_size = 16 * 1024;
/// Gives a buffer back to where it came from.
void end_receive_buffer(arrived_bytes& of) noexcept;

/// The bytes of a socket that its reader has not consumed. Its descriptor owns it, and so does the view that it lends.
/// The lock is that of `waiters`; everything is under it but what is said to be of the engine.
class multishot_receive {
 public:
  explicit multishot_receive(int socket) noexcept : descriptor(socket) {}
  multishot_receive(const multishot_receive&) = delete;
  multishot_receive& operator=(const multishot_receive&) = delete;

  void add_owner() noexcept { owners_.fetch_add(1, platform::memory_order_relaxed); }
  /// Destroys it with its last owner. It is not armed then.
  void remove_owner() noexcept;

  /// For engines, in a fiber of their worker that has set `receiving`: the receive is about to be submitted.
  void begin(engine& in, const std::shared_ptr<receive_buffers>& buffers) noexcept;
  /// For engines, in that thread: bytes have arrived, or the receive has ended (`more` is false) with a result of the
  /// kernel: 0 for the end of the stream, or a negated error. It may be gone after its end.
  void arrived(arrived_bytes* bytes, std::int32_t result, bool more) noexcept;
  /// Appends bytes that were received without an engine, with the lock held.
  void append(arrived_bytes& bytes) noexcept;
  /// Makes its engine end it, with the lock held, if it is armed. `arrived` reports the end.
  void end() noexcept;
  /// Takes the first `count` bytes off, with the lock held.
  void consume(std::size_t count) noexcept;

  wait_queue waiters;  ///< readers

  [[nodiscard]] arrived_bytes* front() const noexcept { return first_; }
  /// Whether a reader need not wait: bytes, the end or an error are there.
  [[nodiscard]] bool has_news() const noexcept { return first_ != nullptr || at_end || error != 0; }
  /// The engine whose receive is armed, or null.
  [[nodiscard]] engine* armed_in() const noexcept { return armed_in_; }
  /// Whether it is armed in the parent of this process, which was made by fork.
  [[nodiscard]] bool is_of_parent() const noexcept;
  /// In a process made by fork: forgets the readers of the parent. A receive that is armed stays so, in the parent.
  void leave_parent() noexcept;
  /// Ends the process with a message if it is.
  void check_not_of_parent() const noexcept;

  bool lent = false;  ///< a view refers to the first bytes
  /// A caller is at the socket itself, to receive or to wait. The others wait here meanwhile: bytes that two receive at
  /// once would lose their order, and one that waits at the socket does not hear of what another one has taken.
  bool receiving = false;
  bool at_end = false;     ///< the peer has ended its half
  std::int32_t error = 0;  ///< a number to report once
  /// The next bytes are received without the engine, until a receive has found fewer than it could: buffers have run
  /// out, or the reader is behind.
  bool direct = false;

  const int descriptor;                 ///< the socket
  std::uint32_t slot = 0;               ///< of the engine: its number of the request
  list_links<multishot_receive> links;  ///< of the engine: those to be ended, under its lock
  bool to_be_ended = false;             ///< whether it is in that list

 private:
  ~multishot_receive();

  platform::atomic<std::uint32_t> owners_{1};
  engine* armed_in_ = nullptr;
  const runtime_state* owner_ = nullptr;  ///< that of the engine
  bool ending_ = false;                   ///< its engine knows that it is to end
  std::uint32_t queued_ = 0;
  arrived_bytes* first_ = nullptr;
  arrived_bytes* last_ = nullptr;
  std::shared_ptr<receive_buffers> buffers_;  ///< those of the bytes
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
