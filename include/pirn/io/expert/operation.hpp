// Operations: one call of the kernel each, made for a fiber by whatever engine its worker has. The classes of io and
// net are built on them.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "pirn/io/descriptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Whether the page cache has a part in `operation::read_at` and `write_at`.
enum class page_cache : std::uint8_t {
  first,   ///< what is cached is read at once, without a switch to another fiber
  bypass,  ///< the file was opened with O_DIRECT
};

/// Which parts of a file `operation::sync` writes to the disk.
enum class sync_scope : std::uint8_t { data, data_and_metadata };

/// One call of the kernel that may take time. Made by one of the functions below, and carried out by `perform`, once.
/// It refers to the memory and the descriptors that it is given; they must stay until `perform` returns.
class operation {
 public:
  // -- sockets; the descriptor is non-blocking
  /// Receives at least one byte, as recv(2); the result is the number of bytes, 0 at the end of a stream.
  [[nodiscard]] static operation receive(descriptor& from, void* into, std::size_t size, int flags = 0) noexcept {
    return {kind::receive, &from, {into, size}, flags};
  }
  /// Sends at least one byte of a non-empty buffer, as send(2) without SIGPIPE; the result is the number of bytes.
  [[nodiscard]] static operation send(descriptor& to, const void* data, std::size_t size, int flags = 0) noexcept {
    return {kind::send, &to, {const_cast<void*>(data), size}, flags | MSG_NOSIGNAL};
  }
  /// Receives a message, as recvmsg(2); the result is its number of bytes.
  [[nodiscard]] static operation receive_message(descriptor& from, ::msghdr& message, int flags = 0) noexcept {
    return {kind::receive_message, &from, {&message, 0}, flags};
  }
  /// Sends a message, as sendmsg(2) without SIGPIPE; the result is the number of bytes.
  [[nodiscard]] static operation send_message(descriptor& to, const ::msghdr& message, int flags = 0) noexcept {
    return {kind::send_message, &to, {const_cast<::msghdr*>(&message), 0}, flags | MSG_NOSIGNAL};
  }
  /// Accepts a connection, as accept4(2); the result is a non-blocking descriptor that the caller owns. The address is
  /// filled in unless it is null.
  [[nodiscard]] static operation accept(descriptor& listener, ::sockaddr* address = nullptr,
                                        ::socklen_t* size = nullptr) noexcept {
    operation made{kind::accept, &listener, {address, 0}, SOCK_NONBLOCK | SOCK_CLOEXEC};
    made.size_ = size;
    return made;
  }
  /// Connects, as connect(2), and waits until the connection stands; the result is 0. After an error the socket can
  /// only be closed.
  [[nodiscard]] static operation connect(descriptor& socket, const ::sockaddr* to, ::socklen_t size) noexcept {
    return {kind::connect, &socket, {const_cast<::sockaddr*>(to), size}, 0};
  }

  // -- anything that can be watched: sockets, pipes, terminals, eventfds
  /// Waits until the descriptor is ready in that direction, as `descriptor::wait`; the result is 0.
  [[nodiscard]] static operation poll(descriptor& of, io_direction direction) noexcept {
    return {kind::poll, &of, {}, static_cast<int>(direction)};
  }
  /// Reads at least one byte of a non-blocking descriptor, as readv(2); the result is the number of bytes, 0 at the
  /// end.
  [[nodiscard]] static operation read(descriptor& from, std::span<const ::iovec> into) noexcept {
    return {kind::read, &from, memory_of(into), 0};
  }
  /// Writes at least one byte to a non-blocking descriptor, as writev(2), which raises SIGPIPE where nothing reads.
  [[nodiscard]] static operation write(descriptor& to, std::span<const ::iovec> data) noexcept {
    return {kind::write, &to, memory_of(data), 0};
  }
  /// Moves up to `size` bytes between two non-blocking descriptors of which at least one is a pipe, as splice(2) with
  /// `flags`; the result is the number of bytes, 0 at the end.
  [[nodiscard]] static operation splice(descriptor& from, descriptor& to, std::size_t size,
                                        unsigned flags = 0) noexcept {
    operation made{kind::splice, &from, {nullptr, size}, static_cast<int>(flags)};
    made.to_ = &to;
    return made;
  }

  // -- files. Once begun, these run to their end: a stop or a deadline is noticed before and after.
  /// Reads from a position of a file, as preadv(2); the result is the number of bytes, fewer than wanted at the end of
  /// the file, or where only the first part is cached.
  [[nodiscard]] static operation read_at(descriptor& file, std::span<const ::iovec> into, std::uint64_t offset,
                                         page_cache cache = page_cache::first) noexcept {
    operation made{kind::read_at, &file, memory_of(into), static_cast<int>(cache)};
    made.offset_ = offset;
    return made;
  }
  /// Writes at a position of a file, as pwritev(2): at its end, whatever the position, if it is open for appending.
  [[nodiscard]] static operation write_at(descriptor& file, std::span<const ::iovec> data, std::uint64_t offset,
                                          page_cache cache = page_cache::first) noexcept {
    operation made{kind::write_at, &file, memory_of(data), static_cast<int>(cache)};
    made.offset_ = offset;
    return made;
  }
  /// Writes what the kernel holds of a file to its disk, as fsync(2) or fdatasync(2); the result is 0.
  [[nodiscard]] static operation sync(descriptor& file, sync_scope what = sync_scope::data_and_metadata) noexcept {
    return {kind::sync, &file, {}, static_cast<int>(what)};
  }
  /// Opens a file, as openat(2) with O_CLOEXEC; the result is a descriptor that the caller owns.
  [[nodiscard]] static operation open(const char* path, int flags, ::mode_t mode = 0, int folder = AT_FDCWD) noexcept {
    operation made{kind::open, nullptr, {const_cast<char*>(path), mode}, flags | O_CLOEXEC};
    made.folder_ = folder;
    return made;
  }
  /// Asks for the attributes of a file, as statx(2) with these flags and this mask; the result is 0.
  [[nodiscard]] static operation stat(const char* path, struct ::statx& into, int flags = 0,
                                      unsigned mask = STATX_BASIC_STATS, int folder = AT_FDCWD) noexcept {
    operation made{kind::stat, nullptr, {const_cast<char*>(path), mask}, flags};
    made.into_ = &into;
    made.folder_ = folder;
    return made;
  }
  /// As `stat` of a path, but of an open file.
  [[nodiscard]] static operation stat(descriptor& file, struct ::statx& into,
                                      unsigned mask = STATX_BASIC_STATS) noexcept {
    operation made{kind::stat, &file, {const_cast<char*>(""), mask}, AT_EMPTY_PATH};
    made.into_ = &into;
    return made;
  }
  /// Any other call that may block: `call(number, argument)` runs on a thread of the blocking pool, and returns its
  /// result or the negated number of its error. The number is that of `on`, which stays open meanwhile, or -1.
  [[nodiscard]] static operation call(descriptor::syscall call, void* argument, descriptor* on = nullptr) noexcept {
    operation made{kind::call, on, {argument, 0}, 0};
    made.call_ = call;
    return made;
  }

 private:
  friend class operation_runner;
  enum class kind : std::uint8_t {
    receive,
    send,
    receive_message,
    send_message,
    accept,
    connect,
    poll,
    read,
    write,
    splice,
    read_at,
    write_at,
    sync,
    open,
    stat,
    call,
  };
  operation(kind what, descriptor* on, ::iovec memory, int flags) noexcept
      : kind_(what), flags_(flags), on_(on), memory_(memory) {}
  [[nodiscard]] static ::iovec memory_of(std::span<const ::iovec> parts) noexcept {
    return {const_cast<::iovec*>(parts.data()), parts.size()};
  }

  kind kind_;
  int flags_;
  descriptor* on_;
  ::iovec memory_;  ///< bytes; or an address of something else, and a number
  std::uint64_t offset_ = 0;
  union {
    ::socklen_t* size_;
    descriptor* to_;
    struct ::statx* into_;
    descriptor::syscall call_;
    void* unused_ = nullptr;
  };
  int folder_ = AT_FDCWD;
};

/// Carries out an operation and returns its result, which is never negative. Suspends the calling fiber meanwhile; a
/// plain thread blocks. Fails with io_error::timed_out, expired, stopped or closed as the operations of `descriptor`
/// do, otherwise with the kernel's error. An operation that has done its work returns that, even if a stop or a
/// deadline comes at the same moment: no byte and no descriptor is lost.
[[nodiscard]] result<std::int64_t> perform(const operation& what, time_limit deadline = platform::never) noexcept;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
