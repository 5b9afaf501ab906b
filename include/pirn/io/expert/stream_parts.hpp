// The parts of a stream that an algorithm needs, and the view of bytes that a stream lends.
#pragma once

#include <string_view>
#include <utility>

#include "pirn/detail/contract.hpp"
#include "pirn/io/stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The half of a stream that is read, and everything else with its `read`, such as a `buffered_reader`.
template <class S>
concept readable_stream = requires(S& s, void* into, std::size_t size, time_limit deadline) {
  { s.read(into, size, deadline) } -> std::same_as<result<std::size_t>>;
};

/// The half of a stream that is written, and everything else with its `write_some`, such as a `buffered_writer`.
template <class S>
concept writable_stream = requires(S& s, std::span<const const_buffer> parts, time_limit deadline) {
  { s.write_some(parts, deadline) } -> std::same_as<result<std::size_t>>;
};

/// Bytes that have arrived, where the stream keeps them: to read them without a copy. Made by `lend`. A stream lends
/// one view at a time: until it has ended, other reads of the stream fail with std::errc::device_or_resource_busy. The
/// bytes stay valid until then, also if the stream or its peer is closed. One fiber uses it.
class read_view {
 public:
  /// The call of a lender that gets the bytes back of which `consumed` have been read. It neither suspends nor throws.
  using give_back = void (*)(void* lender, std::size_t consumed) noexcept;

  /// Makes an empty view: the end of the stream.
  read_view() noexcept = default;
  /// For implementers of `lend`: `done` is called once, when the view ends.
  read_view(std::span<const std::byte> bytes, void* lender, give_back done) noexcept
      : bytes_(bytes), lender_(lender), done_(done) {}
  read_view(read_view&& other) noexcept { swap(other); }
  read_view& operator=(read_view&& other) noexcept {
    read_view(std::move(other)).swap(*this);
    return *this;
  }
  ~read_view() { release(); }

  /// Returns the bytes that have not been consumed.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Returns the bytes that have not been consumed, as text.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  /// Whether no bytes are left; for a new view, whether the stream has ended.
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  /// Takes the first `count` bytes off the stream; later reads get the others. Aborts if there are not that many.
  void consume(std::size_t count) noexcept {
    if (count > bytes_.size()) [[unlikely]] {
      detail::fail_contract("consume of ", std::uint64_t{count}, " bytes of a read_view with ",
                            std::uint64_t{bytes_.size()});
    }
    bytes_ = bytes_.subspan(count);
    consumed_ += count;
  }
  /// Ends the view, as its destructor does: the stream makes room of what was consumed. Does not suspend.
  void release() noexcept {
    bytes_ = {};
    if (const give_back done = std::exchange(done_, nullptr)) {
      done(lender_, std::exchange(consumed_, 0));
    }
  }

 private:
  void swap(read_view& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(lender_, other.lender_);
    std::swap(done_, other.done_);
    std::swap(consumed_, other.consumed_);
  }

  std::span<const std::byte> bytes_;
  void* lender_ = nullptr;
  give_back done_ = nullptr;
  std::size_t consumed_ = 0;
};

/// A readable stream that lends its bytes. `lend` waits as `read` does, and returns an empty view at the end. It may
/// fail with std::errc::operation_not_supported if that depends on another stream, as in `any_stream`: use `read` then.
template <class S>
concept lending_stream = readable_stream<S> && requires(S& s, time_limit deadline) {
  { s.lend(deadline) } -> std::same_as<result<read_view>>;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
