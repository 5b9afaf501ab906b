// The engine that uses epoll, and an eventfd for notifications.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "detail/refused.hpp"
#include "pirn/fiber/expert/engine.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

/// A descriptor that is closed with its owner.
class owned_descriptor {
 public:
  explicit owned_descriptor(int value) noexcept : value_(value) {}
  ~owned_descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  owned_descriptor(const owned_descriptor&) = delete;
  owned_descriptor& operator=(const owned_descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return value_; }

 private:
  int value_;
};

}  // namespace

class epoll_engine final : public engine {
 public:
  epoll_engine() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (epoll_.get() < 0 || event_.get() < 0) {
      throw std::system_error(errno, std::system_category(), "pirn: cannot create an epoll engine");
    }
    epoll_event interest{};
    interest.events = EPOLLIN | EPOLLET;
    interest.data.ptr = nullptr;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &interest) != 0) {
      throw std::system_error(errno, std::system_category(), "pirn: cannot watch an eventfd");
    }
  }

  void poll(platform::time_point deadline) noexcept override {
    forget_detached();
    constexpr int max_events = 256;
    epoll_event events[max_events];
    const int count = wait(events, max_events, deadline);
    if (count < 0 && errno != EINTR) {
      platform::refused("epoll_wait", errno,
                        errno == EBADF ? "the program has closed the engine's descriptor, which it does not own"
                                       : "a worker without ready fibers would spin forever");
    }
    for (int i = 0; i < count; ++i) {
      auto* const handle = static_cast<readiness*>(events[i].data.ptr);
      if (handle == nullptr) {
        std::uint64_t ignored;
        static_cast<void>(::read(event_.get(), &ignored, sizeof ignored));
        continue;
      }
      const std::uint32_t what = events[i].events;
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
  }

  void unpark_worker() noexcept override {
    const std::uint64_t one = 1;
    // When the counter is full (EAGAIN) the poll ends anyway.
    if (::write(event_.get(), &one, sizeof one) < 0 && errno != EAGAIN) {
      platform::refused("a write to an eventfd", errno,
                        errno == EBADF ? "the program has closed the engine's descriptor, which it does not own"
                                       : "the worker to be woken would sleep forever");
    }
  }

 private:
  bool begin(readiness& handle, int descriptor, std::error_code& error) noexcept override {
    epoll_event interest{};
    interest.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;
    interest.data.ptr = &handle;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &interest) != 0) {
      error = {errno, std::system_category()};
      return false;
    }
    return true;
  }

  void end(readiness& /*handle*/, int descriptor) noexcept override {
    epoll_event unused{};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, &unused);
  }

  int wait(epoll_event* events, int max_events, platform::time_point deadline) noexcept {
    if (deadline == platform::never) {
      return wait_ms(events, max_events, -1);
    }
    const auto left = platform::between(platform::now(), deadline);
    const auto left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    if (left_ns <= 0) {
      return wait_ms(events, max_events, 0);
    }
    if (has_nanoseconds_) {
      timespec limit{};
      limit.tv_sec = static_cast<time_t>(left_ns / 1'000'000'000);
      limit.tv_nsec = static_cast<long>(left_ns % 1'000'000'000);
      const int count = ::epoll_pwait2(epoll_.get(), events, max_events, &limit, nullptr);
      if (count >= 0 || errno == EINTR) {
        return count;
      }
      // Linux before 5.11 answers ENOSYS; a sandbox that does not know the call EPERM, EACCES or anything else.
      has_nanoseconds_ = false;
    }
    const auto left_ms = (left_ns + 999'999) / 1'000'000;  // rounded up
    return wait_ms(events, max_events, left_ms > 1'000'000 ? 1'000'000 : static_cast<int>(left_ms));
  }

  /// Waits by either of two calls, since a sandbox may know only one.
  int wait_ms(epoll_event* events, int max_events, int milliseconds) const noexcept {
    const int count = ::epoll_wait(epoll_.get(), events, max_events, milliseconds);
    return count >= 0 || errno == EINTR ? count
                                        : ::epoll_pwait(epoll_.get(), events, max_events, milliseconds, nullptr);
  }

  owned_descriptor epoll_;
  owned_descriptor event_;
  bool has_nanoseconds_ = true;  ///< used by the owning worker only
};

std::unique_ptr<engine> make_epoll_engine() { return std::make_unique<epoll_engine>(); }

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
