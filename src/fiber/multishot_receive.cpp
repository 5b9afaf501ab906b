// Keeps the bytes that engines receive in order, and ends a receive whose reader is too slow.
#include "fiber/multishot_receive.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>
#include <utility>

#include "fiber/runtime_state.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/expert/engine.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

// A reader that is so far behind transfers much, for which direct receives are better. So one connection seldom takes
// all buffers of its worker; if one does, the others receive directly too.
constexpr std::uint32_t max_queued = platform::exploring ? 2 : 4;

/// Buffers of a thread without an owner, since the C library takes long for such sizes. With a tool that detects a use
/// of memory that was given back, all go back to the C library.
class unused_buffers {
 public:
  unused_buffers() = default;
  ~unused_buffers() {
    while (first_ != nullptr) {
      std::free(std::exchange(first_, first_->next));
    }
  }
  unused_buffers(const unused_buffers&) = delete;
  unused_buffers& operator=(const unused_buffers&) = delete;

  [[nodiscard]] arrived_bytes* take() noexcept {
    arrived_bytes* const taken = first_;
    if (taken != nullptr) {
      first_ = taken->next;
      --count_;
    }
    return taken;
  }
  /// False if there are enough.
  [[nodiscard]] bool keep(arrived_bytes& buffer) noexcept {
    if (count_ == max_count) {
      return false;
    }
    buffer.next = std::exchange(first_, &buffer);
    ++count_;
    return true;
  }

 private:
#if defined(PIRN_ASAN) || defined(PIRN_VALGRIND)
  static constexpr unsigned max_count = 0;
#else
  static constexpr unsigned max_count = 4;  // most exist only for a turn
#endif
  arrived_bytes* first_ = nullptr;
  unsigned count_ = 0;
};

}  // namespace

// This and the next function are not inlined, not even by link-time optimization: the address of a thread-local
// variable must not be kept across a suspension.
PIRN_NOINLINE arrived_bytes* make_receive_buffer() noexcept {
  void* memory = platform::per_thread<unused_buffers>::here().take();
  if (memory == nullptr) {
    memory = std::malloc(sizeof(arrived_bytes) + receive_buffer_size);
  }
  if (memory == nullptr) {
    return nullptr;
  }
  auto* const made = ::new (memory) arrived_bytes;
  made->first = static_cast<std::byte*>(memory) + sizeof(arrived_bytes);
  return made;
}

PIRN_NOINLINE void end_receive_buffer(arrived_bytes& of) noexcept {
  if (of.home != nullptr) {
    of.home->give_back(of);
  } else if (!platform::per_thread<unused_buffers>::here().keep(of)) {
    std::free(&of);
  }
}

multishot_receive::~multishot_receive() {
  if (to_be_ended) [[unlikely]] {
    fail_contract("the bytes of a socket are destroyed while their engine is to end its receive");
  }
  while (first_ != nullptr) {
    end_receive_buffer(*std::exchange(first_, first_->next));
  }
}

void multishot_receive::remove_owner() noexcept {
  if (owners_.fetch_sub(1, platform::memory_order_acq_rel) == 1) {
    delete this;
  }
}

void multishot_receive::begin(engine& in, const std::shared_ptr<receive_buffers>& buffers) noexcept {
  const platform::spin_guard guard(waiters.own_lock());
  armed_in_ = &in;
  owner_ = &current_worker()->owner;
  receiving = false;
  ending_ = false;
  buffers_ = buffers;
}

bool multishot_receive::is_of_parent() const noexcept { return armed_in_ != nullptr && is_forked(*owner_); }

void multishot_receive::leave_parent() noexcept {
  std::construct_at(&waiters);  // a thread of the parent may hold the lock for ever
  receiving = false;
}

void multishot_receive::check_not_of_parent() const noexcept {
  if (armed_in_ != nullptr) {
    check_not_forked(*owner_);
  }
}

void multishot_receive::arrived(arrived_bytes* bytes, std::int32_t result, bool more) noexcept {
  waiters.lock();
  if (bytes != nullptr) {
    append(*bytes);
  }
  if (more) {
    if (queued_ >= max_queued) {
      direct = true;
      end();
    }
  } else {
    if (to_be_ended) {
      armed_in_->forget_end(*this);
    }
    armed_in_ = nullptr;
    if (result == -ENOBUFS) {
      direct = true;
    } else if (result == 0) {
      at_end = true;
    } else if (result < 0 && result != -ECANCELED && result != -EINTR && result != -EAGAIN) {
      error = -result;
    }
  }
  waiters.notify_all_and_unlock();
}

void multishot_receive::append(arrived_bytes& bytes) noexcept {
  bytes.next = nullptr;
  (first_ != nullptr ? last_->next : first_) = &bytes;
  last_ = &bytes;
  ++queued_;
}

void multishot_receive::end() noexcept {
  if (armed_in_ != nullptr && !std::exchange(ending_, true)) {
    armed_in_->end_receive(*this);
  }
}

void multishot_receive::consume(std::size_t count) noexcept {
  arrived_bytes& from = *first_;
  from.first += count;
  from.left -= static_cast<std::uint32_t>(count);
  if (from.left == 0) {
    first_ = from.next;
    --queued_;
    end_receive_buffer(from);
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
