// A stream, or a half of one, whose type is known only where the object is made.
#pragma once

#include <memory>
#include <type_traits>

#include "pirn/io/expert/stream_parts.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The calls of a stream at an address. A call that its class does not have is null.
struct stream_calls {
  result<std::size_t> (*read)(void* stream, void* into, std::size_t size, time_limit deadline) = nullptr;
  result<std::size_t> (*write_some)(void* stream, std::span<const const_buffer> parts, time_limit deadline) = nullptr;
  result<> (*shutdown)(void* stream, shutdown_half half) = nullptr;
  void (*close)(void* stream) = nullptr;
  result<read_view> (*lend)(void* stream, time_limit deadline) = nullptr;
  void (*destroy)(void* stream) noexcept = nullptr;  ///< of an owned stream only
};

template <class S, bool Owned>
[[nodiscard]] constexpr stream_calls make_stream_calls() noexcept {
  stream_calls calls;
  if constexpr (readable_stream<S>) {
    calls.read = [](void* s, void* into, std::size_t size, time_limit deadline) {
      return static_cast<S*>(s)->read(into, size, deadline);
    };
  }
  if constexpr (writable_stream<S>) {
    calls.write_some = [](void* s, std::span<const const_buffer> parts, time_limit deadline) {
      return static_cast<S*>(s)->write_some(parts, deadline);
    };
  }
  if constexpr (stream<S>) {
    calls.shutdown = [](void* s, shutdown_half half) { return static_cast<S*>(s)->shutdown(half); };
    calls.close = [](void* s) { static_cast<S*>(s)->close(); };
  }
  if constexpr (lending_stream<S>) {
    calls.lend = [](void* s, time_limit deadline) { return static_cast<S*>(s)->lend(deadline); };
  }
  if constexpr (Owned) {
    calls.destroy = [](void* s) noexcept { delete static_cast<S*>(s); };
  }
  return calls;
}
template <class S, bool Owned>
inline constexpr stream_calls calls_of_stream = make_stream_calls<S, Owned>();

/// Owns a stream or refers to one. Calls of an empty one fail with io_error::closed. Moving it moves no stream.
class erased_stream {
 public:
  erased_stream() noexcept = default;
  /// Refers to a stream, which must outlive it.
  template <class S>
  [[nodiscard]] static erased_stream refer(S& stream) noexcept {
    return {const_cast<std::remove_const_t<S>*>(std::addressof(stream)), calls_of_stream<S, false>};
  }
  /// Moves a stream to the heap. Throws std::bad_alloc, and what moving it throws.
  template <class S>
  [[nodiscard]] static erased_stream own(S&& stream) {
    static_assert(!std::is_reference_v<S> && std::is_move_constructible_v<S>,
                  "pirn: to own a stream takes an rvalue that can be moved; std::ref of any_stream refers to one");
    return {new S(std::forward<S>(stream)), calls_of_stream<S, true>};
  }
  erased_stream(erased_stream&& other) noexcept
      : stream_(std::exchange(other.stream_, nullptr)), calls_(std::exchange(other.calls_, nullptr)) {}
  erased_stream& operator=(erased_stream&& other) noexcept {
    erased_stream taken(std::move(other));
    std::swap(stream_, taken.stream_);
    std::swap(calls_, taken.calls_);
    return *this;
  }
  ~erased_stream() {
    if (stream_ != nullptr && calls_->destroy != nullptr) {
      calls_->destroy(stream_);
    }
  }

  [[nodiscard]] explicit operator bool() const noexcept { return stream_ != nullptr; }
  [[nodiscard]] result<std::size_t> read(void* into, std::size_t size, time_limit deadline) {
    return stream_ != nullptr ? calls_->read(stream_, into, size, deadline) : fail(io_error::closed);
  }
  [[nodiscard]] result<std::size_t> write_some(std::span<const const_buffer> parts, time_limit deadline) {
    return stream_ != nullptr ? calls_->write_some(stream_, parts, deadline) : fail(io_error::closed);
  }
  result<> shutdown(shutdown_half half) {
    return stream_ != nullptr ? calls_->shutdown(stream_, half) : fail(io_error::closed);
  }
  void close() {
    if (stream_ != nullptr) {
      calls_->close(stream_);
    }
  }
  [[nodiscard]] result<read_view> lend(time_limit deadline) {
    if (stream_ == nullptr) {
      return fail(io_error::closed);
    }
    return calls_->lend != nullptr ? calls_->lend(stream_, deadline)
                                   : fail(make_error_code(std::errc::operation_not_supported));
  }

 private:
  erased_stream(void* stream, const stream_calls& calls) noexcept : stream_(stream), calls_(&calls) {}

  void* stream_ = nullptr;
  const stream_calls* calls_ = nullptr;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
