// Implements direct_io by raw system calls.
#include "fiber/direct_io.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "detail/refused.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

constexpr unsigned max_under_way = 128;  ///< more go to the blocking pool

/// The beginning of the memory at the address of a context, which the kernel writes and every user of it may read.
struct event_ring {
  std::uint32_t id, entries;
  platform::atomic<std::uint32_t> head, tail;
  std::uint32_t magic;
};
constexpr std::uint32_t ring_magic = 0xa10a10a1;

}  // namespace

direct_io::~direct_io() {
  if (context_ != 0) {
    ::syscall(SYS_io_destroy, context_);
  }
}

bool direct_io::open() noexcept {
  if (context_ == 0 && !refused_) {
    // EAGAIN: other programs have all contexts at present (fs.aio-max-nr).
    const bool failed = ::syscall(SYS_io_setup, max_under_way, &context_) != 0;
    refused_ = failed && errno != EAGAIN;
    return !failed;
  }
  return !refused_;
}

bool direct_io::submit(completion& what, int told) noexcept {
  const kernel_request& wanted = what.request();
  if (!wanted.direct || under_way_ == max_under_way || !open()) {
    return false;
  }
  ::iocb request{};
  request.aio_data = reinterpret_cast<std::uintptr_t>(&what);
  request.aio_lio_opcode = wanted.what == kernel_request::code::write_at ? IOCB_CMD_PWRITEV : IOCB_CMD_PREADV;
  request.aio_fildes = static_cast<std::uint32_t>(wanted.descriptor);
  request.aio_buf = reinterpret_cast<std::uintptr_t>(wanted.address);
  request.aio_nbytes = wanted.size;
  request.aio_offset = static_cast<std::int64_t>(wanted.offset);
  // A request that would wait in io_submit ends with EAGAIN and goes to the blocking pool: a write that makes the file
  // longer, or the first one after a tick of the clock, which changes the file's time stamp.
  request.aio_rw_flags = RWF_NOWAIT;
  request.aio_flags = IOCB_FLAG_RESFD;
  request.aio_resfd = static_cast<std::uint32_t>(told);
  ::iocb* const all[] = {&request};
  if (::syscall(SYS_io_submit, context_, 1, all) != 1) {
    return false;  // a kind of file without such requests, or refused: the blocking pool has the exact error
  }
  ++under_way_;
  return true;
}

bool direct_io::has_ended() const noexcept {
  const auto* const ring = reinterpret_cast<const event_ring*>(context_);
  return ring->magic != ring_magic ||
         ring->head.load(platform::memory_order_relaxed) != ring->tail.load(platform::memory_order_acquire);
}

std::size_t direct_io::reap() noexcept {
  const unsigned before = under_way_;
  for (bool more = true; more && under_way_ != 0 && has_ended();) {
    ::io_event events[32];
    ::timespec at_once{};
    const long count = ::syscall(SYS_io_getevents, context_, 0, std::size(events), events, &at_once);
    if (count < 0 && errno != EINTR) {
      platform::refused("io_getevents", errno, "requests that were begun would never end");
    }
    more = count < 0 || count == std::ssize(events);  // where the ring cannot be read, it does not say so
    for (long i = 0; i < count; ++i) {
      --under_way_;
      reinterpret_cast<completion*>(events[i].data)->complete(static_cast<std::int32_t>(events[i].res));
    }
  }
  return before - under_way_;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
