// Implements descriptor: the loop of a system call and a wait, the registration with an engine, adoption and closing.
#include "pirn/io/descriptor.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "detail/system.hpp"
#include "fiber/multishot_receive.hpp"
#include "io/attempt.hpp"
#include "pirn/fiber/detail/left_by_exit.hpp"
#include "pirn/io/expert/operation.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

using namespace std::chrono_literals;
using detail::can_reopen;
using detail::counted;
using detail::error_of_call;
using detail::last_error;
using detail::operation_budget;
using detail::result_of_call;
using detail::system_error_of;

// A close elsewhere cannot wake a plain thread in poll(2), so the thread checks at this interval.
constexpr auto plain_thread_look = 50ms;

std::error_code poll_on_thread(int native, io_direction direction, platform::time_point deadline) noexcept {
  const auto until = std::min(deadline, platform::now() + plain_thread_look);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(platform::between(platform::now(), until));
  pollfd interest{};
  interest.fd = native;
  interest.events = direction == io_direction::read ? POLLIN : POLLOUT;
  const auto left_ms = std::clamp<std::int64_t>(left.count(), 0, 1'000'000);
  const int ready = platform::system::poll(&interest, 1, static_cast<int>(left_ms));
  if (ready < 0 && errno != EINTR && errno != EAGAIN) {
    return last_error();
  }
  return ready <= 0 && platform::now() >= deadline ? make_error_code(io_error::timed_out) : std::error_code{};
}

}  // namespace

descriptor::descriptor(int native) noexcept
    : native_(native), process_(detail::count_forks()), users_(native >= 0 ? 0 : closed_bit) {}

descriptor::descriptor(descriptor&& other) noexcept { take(other); }

descriptor& descriptor::operator=(descriptor&& other) noexcept {
  if (this != &other) {
    close();
    take(other);
  }
  return *this;
}

void descriptor::leave_parent() noexcept {
  constexpr unsigned under_way = ~0u;  // by another thread
  unsigned before = process_.load(platform::memory_order_acquire);
  if (before == detail::process_forks.load(platform::memory_order_relaxed)) {
    return;  // another thread has done it
  }
  if (before == under_way || !process_.compare_exchange_strong(before, under_way, platform::memory_order_acquire)) {
    while (process_.load(platform::memory_order_acquire) == under_way) {
      platform::relax();
    }
    return;
  }
  // A thread of the parent may hold the locks for ever.
  std::construct_at(&attaching_);
  std::construct_at(&requests_);
  users_.store(users_.load(platform::memory_order_relaxed) & closed_bit, platform::memory_order_relaxed);
  handle_.store(nullptr, platform::memory_order_relaxed);
  engine_.reset();
  blocks_ = false;  // the parent may need the open file non-blocking still
  drained_tick_.store(no_tick, platform::memory_order_relaxed);
  if (detail::multishot_receive* const from = receives_.load(platform::memory_order_relaxed)) {
    from->leave_parent();
  }
  process_.store(detail::process_forks.load(platform::memory_order_relaxed), platform::memory_order_release);
}

void descriptor::take(descriptor& other) noexcept {
  other.notice_fork();
  process_.store(other.process_.load(platform::memory_order_relaxed), platform::memory_order_relaxed);
  native_.store(other.native_.exchange(-1, platform::memory_order_relaxed), platform::memory_order_relaxed);
  handle_.store(other.handle_.exchange(nullptr, platform::memory_order_acq_rel), platform::memory_order_release);
  engine_ = std::exchange(other.engine_, {});
  drained_tick_.store(other.drained_tick_.exchange(no_tick, platform::memory_order_relaxed),
                      platform::memory_order_relaxed);
  protocol_.store(other.protocol_.exchange(protocol::unknown, platform::memory_order_relaxed),
                  platform::memory_order_relaxed);
  receives_.store(other.receives_.exchange(nullptr, platform::memory_order_acq_rel), platform::memory_order_release);
  borrowed_ = std::exchange(other.borrowed_, false);
  blocks_ = std::exchange(other.blocks_, false);
  users_.store(other.users_.exchange(closed_bit, platform::memory_order_acq_rel), platform::memory_order_release);
}

namespace {

/// Lets others run, on this worker or another: those that an operation or a receive waits for to end it.
void let_others_end_it() noexcept {
  if (detail::worker* const here = detail::current_worker()) {
    here->poll_soon();  // a cancellation of its engine is to reach the kernel now
  }
  platform::relax();
  this_fiber::yield();
}

/// Replaces an open file that others may share by a new non-blocking one of the same terminal or pipe.
bool reopen(int native, int flags) noexcept {
  const int made = detail::open_again(native, flags);
  if (made < 0) {
    return false;
  }
  const int on_exec = platform::system::fcntl(native, F_GETFD);
  const bool done = ::dup3(made, native, (on_exec & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) >= 0;
  platform::system::close(made);
  return done;
}

/// Whether it is a file, or /dev/null and its like: the mode has no effect on them.
bool never_blocks(const struct ::stat& about) noexcept {
  constexpr unsigned memory_devices = 1;
  return S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) || S_ISBLK(about.st_mode) ||
         (S_ISCHR(about.st_mode) && major(about.st_rdev) == memory_devices);
}

bool is_standard(int native, const struct ::stat& about) noexcept {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    struct ::stat other;
    if (standard != native && ::fstat(standard, &other) == 0 && other.st_dev == about.st_dev &&
        other.st_ino == about.st_ino && ((::fcntl(standard, F_GETFL) ^ ::fcntl(native, F_GETFL)) & O_ACCMODE) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

result<descriptor> descriptor::adopt(int native) noexcept {
  descriptor owned(native);
  const int flags = platform::system::fcntl(native, F_GETFL);
  if (flags < 0) {
    return fail(last_error());
  }
  if ((flags & O_NONBLOCK) != 0) {
    return owned;
  }
  struct ::stat about;
  if (::fstat(native, &about) != 0) {
    return fail(last_error());
  }
  if (never_blocks(about) || (can_reopen(native, about) && reopen(native, flags))) {
    return owned;
  }
  if (is_standard(native, about)) {
    return fail(io_error::shared);
  }
  if (platform::system::fcntl(native, F_SETFL, flags | O_NONBLOCK) < 0) {
    return fail(last_error());
  }
  owned.blocks_ = true;
  return owned;
}

result<descriptor> descriptor::borrow(int native) noexcept {
  if (platform::system::fcntl(native, F_GETFL) < 0) {
    return fail(last_error());
  }
  descriptor lent(native);
  lent.borrowed_ = true;
  return lent;
}

void descriptor::close() noexcept {
  if (const int native = end(); native >= 0) {
    platform::system::close(native);
  }
}

int descriptor::end() noexcept {
  notice_fork();
  if ((users_.fetch_or(closed_bit, platform::memory_order_acq_rel) & closed_bit) != 0) {
    return -1;
  }
  // No receive is armed once there are no users, so this is the order of the questions.
  while (users_.load(platform::memory_order_acquire) != closed_bit || !ends_receiving()) {
    static_cast<void>(ends_receiving());
    if (readiness* const handle = handle_.load(platform::memory_order_acquire)) {
      handle->signal(io_direction::read);
      handle->signal(io_direction::write);
    }
    {
      const platform::spin_guard guard(attaching_);
      for (completion& each : requests_) {
        each.interrupt();
      }
    }
    if (detail::fibers_are_left()) [[unlikely]] {
      return -1;  // one of them may be this caller, which never leaves; the kernel closes it soon
    }
    let_others_end_it();
  }
  const bool ours = !std::exchange(borrowed_, false);
  const int native = release();
  return ours ? native : -1;
}

int descriptor::release() noexcept {
  notice_fork();
  while (!ends_receiving()) {
    let_others_end_it();
  }
  if (detail::multishot_receive* const ended = receives_.exchange(nullptr, platform::memory_order_acq_rel)) {
    // In a child of the process whose engine has it, it stays: the engine's threads may have held its locks.
    if (!ended->is_of_parent()) {
      ended->remove_owner();
    }
  }
  users_.store(closed_bit, platform::memory_order_release);
  if (readiness* const handle = handle_.exchange(nullptr, platform::memory_order_acq_rel)) {
    engine_->detach(handle);
    engine_.reset();
  }
  borrowed_ = false;
  const int native = native_.exchange(-1, platform::memory_order_relaxed);
  if (std::exchange(blocks_, false)) {
    const int flags = platform::system::fcntl(native, F_GETFL);
    platform::system::fcntl(native, F_SETFL, flags & ~O_NONBLOCK);
  }
  return native;
}

readiness* descriptor::attached(io_direction direction, std::error_code& error) noexcept {
  readiness* handle = handle_.load(platform::memory_order_acquire);
  if (handle != nullptr && handle->reported(direction)) [[likely]] {
    return handle;
  }
  const platform::spin_guard guard(attaching_);
  handle = handle_.load(platform::memory_order_acquire);
  if (handle != nullptr && handle->reported(direction)) {
    return handle;
  }
  if (handle != nullptr && handle->reported(io_direction::read)) {
    return engine_->report_writes(*handle, error) ? handle : nullptr;
  }
  const std::shared_ptr<engine>& mine = detail::current_worker()->io;
  if (handle == nullptr) {
    handle = mine->attach(native(), direction, error);
    handle_.store(handle, platform::memory_order_release);
  } else if (!mine->take_over(*handle, *engine_, direction, error)) {
    return nullptr;
  }
  engine_ = mine;
  return handle;
}

std::uint32_t descriptor::current_tick() const noexcept {
  const readiness* const handle = handle_.load(platform::memory_order_acquire);
  if (handle == nullptr || detail::current_worker() == nullptr) {
    return unknown_tick;
  }
  const std::uint32_t tick = handle->tick(io_direction::read);
  return readiness::clean(tick) ? tick : unknown_tick;
}

std::optional<std::uint32_t> descriptor::raw_tick(io_direction direction) const noexcept {
  const readiness* const handle = handle_.load(platform::memory_order_acquire);
  return handle != nullptr ? std::optional(handle->tick(direction)) : std::nullopt;
}

result<> descriptor::wait_ready(io_direction direction, platform::time_point deadline,
                                std::optional<std::uint32_t> seen_tick, caller who) noexcept {
  if (detail::current_worker() == nullptr) {
    if (const std::error_code error = poll_on_thread(native(), direction, deadline)) {
      return fail(error);
    }
  } else {
    std::error_code error;
    readiness* const handle = attached(direction, error);
    if (handle == nullptr) {
      return fail(error);
    }
    if (is_redirected(direction, who)) [[unlikely]] {
      return {};
    }
    // Without a tick there was no readiness before the attempt: another caller may have made it since, and may have
    // been told already.
    switch (handle->wait(direction, deadline, seen_tick.value_or(readiness::first_tick))) {
      case wake_reason::timed_out:
        return fail(io_error::timed_out);
      case wake_reason::stopped:
        return fail(io_error::stopped);
      case wake_reason::expired:
        return fail(io_error::expired);
      case wake_reason::notified:
        break;
    }
  }
  if (!is_open()) {
    return fail(io_error::closed);
  }
  return {};
}

result<> descriptor::wait(io_direction direction, time_limit deadline) noexcept {
  const operation_guard guard(*this);
  if (const std::error_code reason = reason_to_refuse(guard, direction, deadline)) {
    return fail(reason);
  }
  if (detail::multishot_receive* const from = receives_.load(platform::memory_order_acquire);
      from != nullptr && direction == io_direction::read) {
    return wait_lent(*from, deadline);
  }
  return wait_at_socket(direction, deadline, caller::any);
}

result<> descriptor::wait_at_socket(io_direction direction, platform::time_point deadline, caller who) noexcept {
  const std::optional<std::uint32_t> tick = raw_tick(direction);
  if (tick && !poll_on_thread(native(), direction, platform::time_point{})) {
    count_unsuspended(direction);
    return {};
  }
  result<> ready = wait_ready(direction, deadline, tick, who);
  if (!ready && ready.error() == std::errc::operation_not_permitted) {
    // The engine cannot watch it, as it never blocks: a file, a folder, /dev/null. poll(2) always reports those as
    // ready.
    count_unsuspended(direction);
    ready = {};
  }
  return ready;
}

bool descriptor::spends_budget(io_direction direction) noexcept {
  auto& count = unsuspended_[static_cast<int>(direction)];
  const auto row = static_cast<std::uint8_t>(count.load(platform::memory_order_relaxed) + 1);
  count.store(row % operation_budget, platform::memory_order_relaxed);
  return row == operation_budget;
}

void descriptor::count_unsuspended(io_direction direction) noexcept {
  if (spends_budget(direction)) [[unlikely]] {
    this_fiber::yield();
  }
}

result<std::int64_t> descriptor::invoke(syscall call, void* argument) const noexcept {
  const operation_guard guard(*this);
  if (!guard) {
    return fail(io_error::closed);
  }
  const std::int64_t outcome = call(native(), argument);
  if (outcome < 0) {
    return fail(system_error_of(static_cast<int>(-outcome)));
  }
  return outcome;
}

result<std::int64_t> descriptor::perform(io_direction direction, platform::time_point deadline, syscall call,
                                         void* argument, std::span<const ::iovec> memory) noexcept {
  if (is_redirected(direction, caller::any)) [[unlikely]] {
    return fail(std::make_error_code(std::errc::operation_not_supported));
  }
  return repeat(direction, deadline, call, argument, memory, caller::any);
}

bool descriptor::is_redirected(io_direction direction, caller who) const noexcept {
  return direction == io_direction::read && who == caller::any &&
         receives_.load(platform::memory_order_acquire) != nullptr;
}

result<std::int64_t> descriptor::repeat(io_direction direction, platform::time_point deadline, syscall call,
                                        void* argument, std::span<const ::iovec> memory, caller who) noexcept {
  this_fiber::preemption_point();
  const operation_guard guard(*this);
  if (const std::error_code reason = reason_to_refuse(guard, direction, deadline)) {
    return fail(reason);
  }
  auto& unsuspended = unsuspended_[static_cast<int>(direction)];
  if (const std::uint32_t tick = drained_tick_.load(platform::memory_order_relaxed);
      direction == io_direction::read && tick == current_tick()) {
    // No data has come since, and the readiness reports new data.
    unsuspended.store(0, platform::memory_order_relaxed);
    if (const result<> ready = wait_ready(direction, deadline, tick, who); !ready) {
      return fail(ready.error());
    }
  }
  for (;;) {
    const std::optional<std::uint32_t> seen_tick = raw_tick(direction);
    const std::int64_t outcome = call(native(), argument);
    if (outcome >= 0) [[likely]] {
      count_unsuspended(direction);
      return outcome;
    }
    if (outcome == -EINTR) {
      continue;
    }
    if (outcome != -EAGAIN && outcome != -EWOULDBLOCK) {
      count_unsuspended(direction);
      return fail(error_of_call(outcome, memory));
    }
    if (is_redirected(direction, who)) [[unlikely]] {
      return fail(std::make_error_code(std::errc::operation_not_supported));
    }
    unsuspended.store(0, platform::memory_order_relaxed);
    if (const result<> ready = wait_ready(direction, deadline, seen_tick, who); !ready) {
      return fail(ready.error());
    }
  }
}

result<std::size_t> descriptor::read(void* buffer, std::size_t size, time_limit deadline) noexcept {
  if (receives_.load(platform::memory_order_relaxed) != nullptr) [[unlikely]] {
    return receive_lent(buffer, size, deadline);
  }
  ::iovec memory{buffer, size};
  const syscall call = [](int native, void* argument) noexcept {
    const auto& into = *static_cast<const ::iovec*>(argument);
    return result_of_call(platform::system::read(native, into.iov_base, into.iov_len));
  };
  return read_by(call, &memory, memory, deadline);
}

result<std::size_t> descriptor::read_by(syscall call, void* argument, const ::iovec& into,
                                        platform::time_point deadline) noexcept {
  const result<std::size_t> got = counted(perform(io_direction::read, deadline, call, argument, {&into, 1}));
  const bool redirected =
      !got && got.error() == std::errc::operation_not_supported && is_redirected(io_direction::read, caller::any);
  return redirected ? receive_lent(into.iov_base, into.iov_len, deadline) : got;
}

bool descriptor::short_read_is_all(int native) noexcept {
  protocol known = protocol_.load(platform::memory_order_relaxed);
  if (known == protocol::unknown) [[unlikely]] {
    // One question for all: only TCP knows this option, and the protocol on top of it is named.
    char on_top[16];
    ::socklen_t size = sizeof on_top;
    const bool plain = platform::system::getsockopt(native, IPPROTO_TCP, TCP_ULP, on_top, &size) == 0 && size == 0;
    known = plain ? protocol::plain_tcp : protocol::other;
    protocol_.store(known, platform::memory_order_relaxed);
  }
  return known == protocol::plain_tcp;
}

std::int64_t descriptor::receive_at_once(int native, void* into, std::size_t size) noexcept {
  const std::uint32_t tick = current_tick();
  const std::int64_t got = result_of_call(platform::system::recv(native, into, size, 0));
  const bool took_all =
      got > 0 && static_cast<std::size_t>(got) < size && tick != unknown_tick && short_read_is_all(native);
  drained_tick_.store(took_all ? tick : no_tick, platform::memory_order_relaxed);
  return got;
}

result<std::size_t> descriptor::receive(void* buffer, std::size_t size, time_limit deadline) noexcept {
  if (receives_.load(platform::memory_order_relaxed) != nullptr) [[unlikely]] {
    return receive_lent(buffer, size, deadline);
  }
  if (const detail::worker* const here = detail::current_worker(); here != nullptr && here->io->completes()) {
    return counted(pirn::perform(operation::receive(*this, buffer, size), deadline));
  }
  struct request {
    descriptor& of;
    ::iovec into;
  } wanted{*this, {buffer, size}};
  const syscall call = [](int native, void* argument) noexcept {
    const auto& [of, into] = *static_cast<const request*>(argument);
    return of.receive_at_once(native, into.iov_base, into.iov_len);
  };
  return read_by(call, &wanted, wanted.into, deadline);
}

result<std::size_t> descriptor::write(const void* buffer, std::size_t size, time_limit deadline) noexcept {
  ::iovec memory{const_cast<void*>(buffer), size};
  const syscall call = [](int native, void* argument) noexcept {
    const auto& from = *static_cast<const ::iovec*>(argument);
    return result_of_call(platform::system::write(native, from.iov_base, from.iov_len));
  };
  return counted(perform(io_direction::write, deadline, call, &memory, {&memory, 1}));
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
