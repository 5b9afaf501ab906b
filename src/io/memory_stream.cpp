// Implements memory_stream: a ring of bytes for each direction, with readers and writers that wait for each other.
#include "pirn/io/memory_stream.hpp"

#include <algorithm>
#include <cstring>

#include "io/attempt.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

namespace {

constexpr std::size_t max_copy = 16 * 1024;  // under a spinlock

/// One direction. Its lock guards everything but the bytes of a view. The rule that keeps waiters from being forgotten
/// is in `unlock_and_wake`: a call that leaves bytes behind wakes a reader, and one that leaves room wakes a writer.
class memory_pipe {
 public:
  /// The state of a side: in use, ended by `shutdown`, or closed.
  enum class end : std::uint8_t { open, shut, closed };
  enum class side : std::uint8_t { reader, writer };

  explicit memory_pipe(std::size_t capacity)
      : ring_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

  result<std::size_t> read(std::byte* into, std::size_t size, platform::time_point deadline) noexcept {
    if (const std::error_code error = enter_to_read(size != 0, deadline)) {
      return leave(reader_, error);
    }
    const std::size_t count = reader_.state == end::open ? std::min({size, size_, max_copy}) : 0;
    for (std::size_t done = 0; done < count;) {
      const std::size_t part = std::min(count - done, capacity_ - first_);
      std::memcpy(into + done, ring_.get() + first_, part);
      drop(part);
      done += part;
    }
    return leave(reader_, count);
  }

  result<read_view> lend(const std::shared_ptr<memory_connection>& connection, platform::time_point deadline) noexcept {
    if (const std::error_code error = enter_to_read(true, deadline)) {
      return fail(leave(reader_, error).error());
    }
    const std::size_t count = reader_.state == end::open ? std::min(size_, capacity_ - first_) : 0;
    if (count != 0) {
      lent_ = connection;
    }
    const std::byte* const from = ring_.get() + first_;
    static_cast<void>(leave(reader_, count));
    return count != 0 ? read_view({from, count}, this, give_back) : read_view();
  }

  result<> wait_readable(platform::time_point deadline) noexcept {
    const std::error_code error =
        enter(reader_, readers_, "data in memory_stream", deadline, [this] { return size_ != 0 || has_ended(); });
    const result<std::size_t> left = error ? leave(reader_, error) : leave(reader_, 0);
    return left ? result<>() : fail(left.error());
  }

  result<std::size_t> write_some(std::span<const const_buffer> parts, platform::time_point deadline) noexcept {
    const bool any = std::ranges::any_of(parts, [](const const_buffer& part) { return part.size != 0; });
    if (const std::error_code error = enter(writer_, writers_, "room in memory_stream", deadline,
                                            [&] { return size_ < capacity_ || has_ended() || !any; })) {
      return leave(writer_, error);
    }
    if (has_ended()) {
      return leave(writer_, make_error_code(std::errc::broken_pipe));
    }
    std::size_t left = std::min(capacity_ - size_, max_copy);
    const std::size_t before = size_;
    for (const const_buffer& part : parts) {
      const std::size_t count = std::min(part.size, left);
      append(static_cast<const std::byte*>(part.data), count);
      left -= count;
      if (left == 0) {
        break;
      }
    }
    return leave(writer_, size_ - before);
  }

  /// Ends one side, and all waits. False if that side was closed before.
  bool finish(side which, end how) noexcept {
    lock_.lock();
    user& of = which == side::reader ? reader_ : writer_;
    const bool changes = of.state != end::closed;
    if (changes) {
      of.state = how;
    }
    waiter* const readers = readers_.claim_all();
    waiter* const writers = writers_.claim_all();
    lock_.unlock();
    wait_list::schedule_all(readers);
    wait_list::schedule_all(writers);
    return changes;
  }

  [[nodiscard]] bool is_closed(side which) const noexcept {
    const platform::spin_guard guard(lock_);
    return (which == side::reader ? reader_ : writer_).state == end::closed;
  }
  [[nodiscard]] result<std::size_t> unread() const noexcept {
    const platform::spin_guard guard(lock_);
    if (writer_.state == end::closed) {
      return fail(io_error::closed);
    }
    return reader_.state == end::open ? size_ : 0;
  }

 private:
  struct user {
    end state = end::open;
    std::uint8_t unsuspended = 0;  ///< calls in a row that did not wait
  };

  /// Whether no byte will pass from side to side any more; those in the ring can still be read.
  [[nodiscard]] bool has_ended() const noexcept { return reader_.state != end::open || writer_.state != end::open; }

  /// Takes the lock and waits until `ready()`. Holds the lock afterwards, also with an error.
  template <class Ready>
  [[nodiscard]] std::error_code enter(user& of, wait_list& queue, const char* what, platform::time_point deadline,
                                      const Ready& ready) noexcept {
    const std::error_code reason = reason_to_stop(deadline);
    lock_.lock();
    for (bool waited = false; of.state != end::closed; waited = true) {
      if (!waited && reason) {
        return reason;
      }
      if (ready()) {
        return {};
      }
      of.unsuspended = 0;
      const wake_reason why = queue.wait(lock_, {.deadline = deadline, .what = what, .object = this});
      lock_.lock();
      if (why != wake_reason::notified) {
        return error_of(why);
      }
    }
    return io_error::closed;
  }
  [[nodiscard]] std::error_code enter_to_read(bool any, platform::time_point deadline) noexcept {
    const std::error_code error = enter(reader_, readers_, "data in memory_stream", deadline,
                                        [&] { return size_ != 0 || has_ended() || lent_ != nullptr || !any; });
    return !error && lent_ != nullptr ? make_error_code(std::errc::device_or_resource_busy) : error;
  }

  /// Releases the lock and wakes a reader and a writer that can continue now. Does not suspend.
  void unlock_and_wake() noexcept {
    waiter* const reader = size_ != 0 && lent_ == nullptr ? readers_.claim_first() : nullptr;
    waiter* const writer = size_ < capacity_ ? writers_.claim_first() : nullptr;
    lock_.unlock();
    for (waiter* const each : {reader, writer}) {
      if (each != nullptr) {
        each->wake.schedule();
      }
    }
  }
  /// Ends a call: releases the lock, and yields now and then.
  result<std::size_t> leave(user& of, result<std::size_t> outcome) noexcept {
    of.unsuspended = static_cast<std::uint8_t>((of.unsuspended + 1) % operation_budget);
    const bool yields = of.unsuspended == 0;
    unlock_and_wake();
    if (yields) [[unlikely]] {
      this_fiber::yield();
    }
    return outcome;
  }
  result<std::size_t> leave(user& of, std::error_code error) noexcept {
    return leave(of, result<std::size_t>(std::unexpect, error));
  }

  void append(const std::byte* from, std::size_t count) noexcept {
    while (count != 0) {
      const std::size_t at = (first_ + size_) % capacity_;
      const std::size_t part = std::min(count, capacity_ - at);
      std::memcpy(ring_.get() + at, from, part);
      size_ += part;
      from += part;
      count -= part;
    }
  }
  void drop(std::size_t count) noexcept {
    first_ = (first_ + count) % capacity_;
    size_ -= count;
  }

  static void give_back(void* lender, std::size_t consumed) noexcept {
    auto& of = *static_cast<memory_pipe*>(lender);
    of.lock_.lock();
    of.drop(consumed);
    const std::shared_ptr<memory_connection> keeps_alive = std::move(of.lent_);
    of.unlock_and_wake();
  }

  mutable platform::spinlock lock_;
  wait_list readers_;
  wait_list writers_;
  user reader_;
  user writer_;
  const std::unique_ptr<std::byte[]> ring_;
  const std::size_t capacity_;
  std::size_t first_ = 0;  ///< where the `size_` bytes begin that have not been read
  std::size_t size_ = 0;
  std::shared_ptr<memory_connection> lent_;  ///< the connection while a view is held, which may outlive both ends
};

}  // namespace

/// `pipes[i]` carries what the end `i` reads.
struct memory_connection {
  explicit memory_connection(std::size_t capacity) : pipes{memory_pipe(capacity), memory_pipe(capacity)} {}
  memory_pipe pipes[2];
};

}  // namespace detail

using detail::memory_pipe;

memory_stream::memory_stream(std::shared_ptr<detail::memory_connection> connection, unsigned side) noexcept
    : connection_(std::move(connection)), side_(side) {}

std::pair<memory_stream, memory_stream> memory_stream::pair(std::size_t capacity) {
  const auto made = std::make_shared<detail::memory_connection>(std::max(capacity, std::size_t{1}));
  return {memory_stream(made, 0), memory_stream(made, 1)};
}

memory_stream::memory_stream(memory_stream&& other) noexcept
    : connection_(std::move(other.connection_)), side_(other.side_) {}

memory_stream& memory_stream::operator=(memory_stream&& other) noexcept {
  if (this != &other) {
    close();
    connection_ = std::move(other.connection_);
    side_ = other.side_;
  }
  return *this;
}

// A call keeps the connection: another fiber may close and destroy this end meanwhile.

result<std::size_t> memory_stream::read(void* buffer, std::size_t size, time_limit deadline) noexcept {
  const auto open = connection_;
  return open ? open->pipes[side_].read(static_cast<std::byte*>(buffer), size, deadline) : fail(io_error::closed);
}

result<std::size_t> memory_stream::write_some(std::span<const const_buffer> parts, time_limit deadline) noexcept {
  const auto open = connection_;
  return open ? open->pipes[1 - side_].write_some(parts, deadline) : fail(io_error::closed);
}

result<read_view> memory_stream::lend(time_limit deadline) noexcept {
  const auto open = connection_;
  return open ? open->pipes[side_].lend(open, deadline) : fail(io_error::closed);
}

result<> memory_stream::wait_readable(time_limit deadline) noexcept {
  const auto open = connection_;
  return open ? open->pipes[side_].wait_readable(deadline) : fail(io_error::closed);
}

result<> memory_stream::shutdown(shutdown_half which) noexcept {
  if (connection_ == nullptr) {
    return fail(io_error::closed);
  }
  bool is_open = true;
  if (which != shutdown_half::write) {
    is_open = connection_->pipes[side_].finish(memory_pipe::side::reader, memory_pipe::end::shut);
  }
  if (which != shutdown_half::read) {
    is_open = connection_->pipes[1 - side_].finish(memory_pipe::side::writer, memory_pipe::end::shut);
  }
  return is_open ? result<>() : fail(io_error::closed);
}

void memory_stream::close() noexcept {
  if (const auto open = connection_) {
    open->pipes[side_].finish(memory_pipe::side::reader, memory_pipe::end::closed);
    open->pipes[1 - side_].finish(memory_pipe::side::writer, memory_pipe::end::closed);
  }
}

bool memory_stream::is_open() const noexcept {
  return connection_ != nullptr && !connection_->pipes[side_].is_closed(memory_pipe::side::reader);
}

result<std::size_t> memory_stream::unacknowledged() const noexcept {
  return connection_ != nullptr ? connection_->pipes[1 - side_].unread() : fail(io_error::closed);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
