// Implements buffered_writer: bytes wait in its buffer, and what does not fit goes to the stream together with them.
#include "pirn/io/buffered_writer.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {
constexpr std::size_t min_room = 16;
constexpr std::size_t max_parts = 16;
}  // namespace

struct buffered_writer::state {
  state(std::size_t wanted, detail::erased_stream stream) noexcept
      : to(std::move(stream)), room(std::max(wanted, min_room)) {}

  /// Appends parts that fit.
  [[nodiscard]] std::error_code append(std::span<const const_buffer> parts) noexcept {
    if (memory == nullptr) {
      memory.reset(new (std::nothrow) std::byte[room]);
      if (memory == nullptr) {
        return make_error_code(std::errc::not_enough_memory);
      }
    }
    if (first != 0) {
      std::memmove(memory.get(), memory.get() + first, size);
      first = 0;
    }
    for (const const_buffer& part : parts) {
      if (part.size != 0) {
        std::memcpy(memory.get() + size, part.data, part.size);
        size += part.size;
      }
    }
    return {};
  }
  /// Makes one call of the stream for the bytes in the buffer, of which there may be none, and `parts` behind them.
  /// Returns how many bytes of `parts` it took.
  [[nodiscard]] result<std::size_t> write_through(std::span<const const_buffer> parts, time_limit deadline) {
    const_buffer all[max_parts];
    std::size_t count = 0;
    if (size != 0) {
      all[count++] = {memory.get() + first, size};
    }
    for (const const_buffer& part : parts) {
      if (count == max_parts) {
        break;
      }
      if (part.size != 0) {
        all[count++] = part;
      }
    }
    const result<std::size_t> put = to.write_some({all, count}, deadline);
    if (!put) {
      return put;
    }
    if (*put == 0) {
      return fail(make_error_code(std::errc::io_error));  // a stream that breaks its contract
    }
    const std::size_t own = std::min(*put, size);
    first += own;
    size -= own;
    return *put - own;
  }

  detail::erased_stream to;
  const std::size_t room;
  std::unique_ptr<std::byte[]> memory;
  std::size_t first = 0;  ///< where the `size` bytes begin that have not reached the stream
  std::size_t size = 0;
};

buffered_writer::buffered_writer() noexcept = default;
buffered_writer::buffered_writer(std::size_t room, detail::erased_stream to)
    : state_(std::make_unique<state>(room, std::move(to))) {}
buffered_writer::buffered_writer(buffered_writer&& other) noexcept = default;
buffered_writer& buffered_writer::operator=(buffered_writer&& other) noexcept = default;
buffered_writer::~buffered_writer() = default;

result<std::size_t> buffered_writer::write_some(std::span<const const_buffer> parts, time_limit deadline) {
  std::size_t total = 0;
  for (const const_buffer& part : parts) {
    total += part.size;
  }
  if (total == 0) {
    return 0;
  }
  if (state_ == nullptr) {
    return fail(io_error::closed);
  }
  while (total > state_->room - state_->size) {
    if (const result<std::size_t> put = state_->write_through(parts, deadline); !put || *put != 0) {
      return put;
    }
  }
  if (const std::error_code error = state_->append(parts)) {
    return fail(error);
  }
  return total;
}

result<> buffered_writer::flush(time_limit deadline) {
  if (state_ == nullptr) {
    return fail(io_error::closed);
  }
  while (state_->size != 0) {
    if (const result<std::size_t> put = state_->write_through({}, deadline); !put) {
      return fail(put.error());
    }
  }
  return {};
}

std::size_t buffered_writer::buffered() const noexcept { return state_ != nullptr ? state_->size : 0; }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
