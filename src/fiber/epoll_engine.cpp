// The engine that uses epoll, and an eventfd for notifications.
#include "fiber/epoll_engine.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "detail/refused.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

int beyond_standards(int made) noexcept {
  if (made < 0 || made > STDERR_FILENO) {
    return made;
  }
  const int moved = ::fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(made);
  errno = error;
  return moved;
}

owned_descriptor::~owned_descriptor() {
  if (value_ >= 0) {
    ::close(value_);
  }
}

::timespec time_until(platform::time_point deadline) noexcept {
  const auto left = platform::between(platform::now(), deadline);
  const auto left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  ::timespec limit{};
  if (left_ns > 0) {
    limit.tv_sec = static_cast<::time_t>(left_ns / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(left_ns % 1'000'000'000);
  }
  return limit;
}

epoll_engine::epoll_engine(half has)
    : engine(has),
      epoll_(beyond_standards(::epoll_create1(EPOLL_CLOEXEC))),
      event_(beyond_standards(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
  if (epoll_.get() < 0 || event_.get() < 0) {
    throw std::system_error(errno, std::system_category(), "pirn: cannot create an epoll engine");
  }
  ::epoll_event interest{};
  interest.events = EPOLLIN | EPOLLET;
  interest.data.ptr = nullptr;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &interest) != 0) {
    throw std::system_error(errno, std::system_category(), "pirn: cannot watch an eventfd");
  }
}

std::size_t epoll_engine::poll(platform::time_point deadline) noexcept {
  forget_detached();
  std::size_t events;
  if (deadline == platform::never) {
    events = signal_events(nullptr);
  } else {
    const ::timespec limit = time_until(deadline);
    events = signal_events(&limit);
  }
  return events + direct_.reap();
}

std::size_t epoll_engine::signal_events(const ::timespec* limit) noexcept {
  ::epoll_event events[events_at_once];
  const int count = wait(events, events_at_once, limit);
  if (count < 0 && errno != EINTR) {
    platform::refused("epoll_wait", errno,
                      errno == EBADF ? "the program has closed the engine's descriptor, which it does not own"
                                     : "a worker without ready fibers would spin forever");
  }
  for (int i = 0; i < count; ++i) {
    signal_event(events[i]);
  }
  return static_cast<std::size_t>(std::max(count, 0));
}

void epoll_engine::signal_event(const ::epoll_event& event) noexcept {
  auto* const handle = static_cast<readiness*>(event.data.ptr);
  if (handle == nullptr) {
    std::uint64_t ignored;
    static_cast<void>(::read(event_.get(), &ignored, sizeof ignored));
    return;
  }
  const std::uint32_t what = event.events;
  if ((what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0) {
    handle->signal_hup_or_error();
  }
  if ((what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0) {
    handle->signal(io_direction::read);
  }
  if ((what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    handle->signal(io_direction::write);
  }
}

void epoll_engine::interrupt_poll() noexcept {
  const std::uint64_t one = 1;
  // When the counter is full (EAGAIN) the poll ends anyway.
  if (::write(event_.get(), &one, sizeof one) < 0 && errno != EAGAIN) {
    platform::refused("a write to an eventfd", errno,
                      errno == EBADF ? "the program has closed the engine's descriptor, which it does not own"
                                     : "the worker to be woken would sleep forever");
  }
}

bool epoll_engine::begin(readiness& handle, int descriptor, std::error_code& error) noexcept {
  return watch(EPOLL_CTL_ADD, handle, descriptor, error);
}

bool epoll_engine::begin_writes(readiness& handle, int descriptor, std::error_code& error) noexcept {
  return watch(EPOLL_CTL_MOD, handle, descriptor, error);
}

bool epoll_engine::watch(int operation, readiness& handle, int descriptor, std::error_code& error) noexcept {
  ::epoll_event interest{};
  interest.events = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLET;
  if (handle.reports_writes()) {
    interest.events |= EPOLLOUT;
  }
  interest.data.ptr = &handle;
  if (::epoll_ctl(epoll_.get(), operation, descriptor, &interest) != 0) {
    error = {errno, std::system_category()};
    return false;
  }
  return true;
}

void epoll_engine::end(readiness& /*handle*/, int descriptor) noexcept {
  ::epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, &unused);
}

int epoll_engine::wait(::epoll_event* events, int max_events, const ::timespec* limit) noexcept {
  if (limit == nullptr) {
    return wait_ms(events, max_events, -1);
  }
  if (limit->tv_sec == 0 && limit->tv_nsec == 0) {
    return wait_ms(events, max_events, 0);
  }
  if (has_nanoseconds_) {
    const int count = ::epoll_pwait2(epoll_.get(), events, max_events, limit, nullptr);
    if (count >= 0 || errno == EINTR) {
      return count;
    }
    // Linux before 5.11 answers ENOSYS; a sandbox that does not know the call EPERM, EACCES or anything else.
    has_nanoseconds_ = false;
  }
  constexpr ::time_t max_seconds = 1000;
  const auto left_ms =
      limit->tv_sec >= max_seconds ? max_seconds * 1000 : limit->tv_sec * 1000 + (limit->tv_nsec + 999'999) / 1'000'000;
  return wait_ms(events, max_events, static_cast<int>(left_ms));
}

/// Waits by either of two calls, since a sandbox may know only one.
int epoll_engine::wait_ms(::epoll_event* events, int max_events, int milliseconds) const noexcept {
  const int count = ::epoll_wait(epoll_.get(), events, max_events, milliseconds);
  return count >= 0 || errno == EINTR ? count : ::epoll_pwait(epoll_.get(), events, max_events, milliseconds, nullptr);
}

}  // namespace detail

std::unique_ptr<engine> make_epoll_engine() { return std::make_unique<detail::epoll_engine>(); }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
