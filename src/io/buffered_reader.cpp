// Implements buffered_reader: the buffer, its growth within limits, and the calls that search in it.
#include "pirn/io/buffered_reader.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "pirn/io/limit_exceeded.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr std::size_t min_room = 16;

std::size_t saturated_sum(std::size_t a, std::size_t b) noexcept {
  return a <= std::numeric_limits<std::size_t>::max() - b ? a + b : std::numeric_limits<std::size_t>::max();
}

/// Where a piece ends, and how many bytes its end takes.
struct piece {
  std::size_t length;
  std::size_t end;
};

/// Looks for the newline at or after `from`; Without one, `end` is 0, and `length` is the least that the line will
/// have.
piece find_line(std::string_view text, std::size_t from) noexcept {
  const std::size_t newline = text.find('\n', from);
  const bool found = newline != std::string_view::npos;
  const std::size_t before = found ? newline : text.size();
  const std::size_t returns = before > 0 && text[before - 1] == '\r' ? 1 : 0;  // may be part of the end
  return {before - returns, found ? returns + 1 : 0};
}

}  // namespace

struct buffered_reader::state {
  state(std::size_t most, detail::erased_stream stream) noexcept
      : from(std::move(stream)), room(std::max(most, min_room)) {}

  [[nodiscard]] std::string_view text() const noexcept {
    return size != 0 ? std::string_view(memory.get() + first, size) : std::string_view();
  }
  void consume(std::size_t count) noexcept {
    first += count;
    size -= count;
  }
  [[nodiscard]] std::error_code set_capacity(std::size_t wanted) noexcept {
    std::unique_ptr<char[]> made(new (std::nothrow) char[wanted]);
    if (made == nullptr) {
      return make_error_code(std::errc::not_enough_memory);
    }
    if (size != 0) {
      std::memcpy(made.get(), memory.get() + first, size);
    }
    memory = std::move(made);
    capacity = wanted;
    first = 0;
    return {};
  }
  /// Begins a call: no text that an earlier call has returned is in use any more.
  [[nodiscard]] std::error_code begin() noexcept {
    if (lent) {
      return make_error_code(std::errc::device_or_resource_busy);
    }
    if (capacity > room && size <= room) {
      static_cast<void>(set_capacity(room));  // for lack of memory it stays large
    }
    return {};
  }
  /// Reads at least one byte behind those in the buffer, which grows up to `most` bytes. Returns 0 at the end.
  [[nodiscard]] result<std::size_t> fill(std::size_t most, time_limit deadline) {
    if (size == capacity) {
      const std::size_t twice = std::min(saturated_sum(capacity, capacity), most);
      if (const std::error_code error = set_capacity(std::max(twice, room))) {
        return fail(error);
      }
    } else if (first != 0) {
      std::memmove(memory.get(), memory.get() + first, size);
      first = 0;
    }
    const std::size_t end = first + size;
    const result<std::size_t> got = from.read(memory.get() + end, capacity - end, deadline);
    size += got.value_or(0);
    return got;
  }
  /// Reads a piece of at most `limit` bytes, whose end has at most `longest_end`. `find` is as `find_line`.
  template <class Find>
  [[nodiscard]] result<std::string_view> read_piece(std::size_t limit, std::size_t longest_end, time_limit deadline,
                                                    const Find& find) {
    if (const std::error_code error = begin()) {
      return fail(error);
    }
    const std::size_t most = std::max(room, saturated_sum(limit, longest_end));
    for (std::size_t searched = 0;;) {
      const std::string_view all = text();
      const piece found = find(all, searched);
      if (found.length > limit) {
        return fail(limit_exceeded(limit));
      }
      if (found.end != 0) {
        consume(found.length + found.end);
        return all.substr(0, found.length);
      }
      searched = size;
      const result<std::size_t> got = fill(most, deadline);
      if (!got) {
        return fail(got.error());
      }
      if (*got == 0) {
        return fail(io_error::end_of_stream);
      }
    }
  }

  detail::erased_stream from;
  const std::size_t room;
  std::unique_ptr<char[]> memory;
  std::size_t capacity = 0;
  std::size_t first = 0;  ///< where the `size` bytes begin that have not been read
  std::size_t size = 0;
  bool lent = false;
};

buffered_reader::buffered_reader() noexcept = default;
buffered_reader::buffered_reader(std::size_t room, detail::erased_stream from)
    : state_(std::make_unique<state>(room, std::move(from))) {}
buffered_reader::buffered_reader(buffered_reader&& other) noexcept = default;
buffered_reader& buffered_reader::operator=(buffered_reader&& other) noexcept = default;
buffered_reader::~buffered_reader() = default;

result<std::size_t> buffered_reader::read(void* into, std::size_t size, time_limit deadline) {
  if (state_ == nullptr) {
    return fail(io_error::closed);
  }
  if (const std::error_code error = state_->begin()) {
    return fail(error);
  }
  if (size == 0) {
    return 0;
  }
  if (state_->size == 0 && size >= state_->room) {
    return state_->from.read(into, size, deadline);
  }
  if (state_->size == 0) {
    if (const result<std::size_t> got = state_->fill(state_->room, deadline); !got || *got == 0) {
      return got;
    }
  }
  const std::size_t count = std::min(size, state_->size);
  std::memcpy(into, state_->text().data(), count);
  state_->consume(count);
  return count;
}

result<std::string_view> buffered_reader::read_line(std::size_t limit, time_limit deadline) {
  return state_ != nullptr ? state_->read_piece(limit, 2, deadline, find_line) : fail(io_error::closed);
}

result<std::string_view> buffered_reader::read_until(char delimiter, std::size_t limit, time_limit deadline) {
  if (state_ == nullptr) {
    return fail(io_error::closed);
  }
  return state_->read_piece(limit, 1, deadline, [delimiter](std::string_view text, std::size_t from) -> piece {
    const std::size_t at = text.find(delimiter, from);
    return at != std::string_view::npos ? piece{at, 1} : piece{text.size(), 0};
  });
}

result<std::string_view> buffered_reader::peek(std::size_t count, time_limit deadline) {
  if (state_ == nullptr) {
    return fail(io_error::closed);
  }
  if (const std::error_code error = state_->begin()) {
    return fail(error);
  }
  if (count > std::max(state_->room, state_->size)) {
    return fail(limit_exceeded(state_->room));
  }
  while (state_->size < count) {
    const result<std::size_t> got = state_->fill(state_->room, deadline);
    if (!got) {
      return fail(got.error());
    }
    if (*got == 0) {
      return fail(io_error::end_of_stream);
    }
  }
  return state_->text().substr(0, count);
}

result<> buffered_reader::skip(std::size_t count, time_limit deadline) {
  if (state_ == nullptr) {
    return fail(io_error::closed);
  }
  if (const std::error_code error = state_->begin()) {
    return fail(error);
  }
  for (;;) {
    const std::size_t dropped = std::min(count, state_->size);
    state_->consume(dropped);
    count -= dropped;
    if (count == 0) {
      return {};
    }
    const result<std::size_t> got = state_->fill(state_->room, deadline);
    if (!got) {
      return fail(got.error());
    }
    if (*got == 0) {
      return fail(io_error::end_of_stream);
    }
  }
}

result<read_view> buffered_reader::lend(time_limit deadline) {
  if (state_ == nullptr) {
    return fail(io_error::closed);
  }
  if (const std::error_code error = state_->begin()) {
    return fail(error);
  }
  if (state_->size == 0) {
    const result<std::size_t> got = state_->fill(state_->room, deadline);
    if (!got) {
      return fail(got.error());
    }
    if (*got == 0) {
      return read_view();
    }
  }
  state_->lent = true;
  return read_view(std::as_bytes(std::span(state_->text())), state_.get(),
                   [](void* lender, std::size_t consumed) noexcept {
                     auto& of = *static_cast<state*>(lender);
                     of.consume(consumed);
                     of.lent = false;
                   });
}

std::size_t buffered_reader::buffered() const noexcept { return state_ != nullptr ? state_->size : 0; }
std::size_t buffered_reader::capacity() const noexcept { return state_ != nullptr ? state_->capacity : 0; }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
