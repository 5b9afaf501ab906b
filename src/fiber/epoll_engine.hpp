// The engine that uses epoll, and an eventfd for notifications.
#pragma once

#include <sys/epoll.h>
#include <time.h>

#include "fiber/direct_io.hpp"
#include "pirn/fiber/expert/engine.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Moves a descriptor beyond the three standard ones, if it is one of them, since the program was started without: what
/// it prints would go there. Returns -1, with errno, if that fails or it is negative.
[[nodiscard]] int beyond_standards(int made) noexcept;

/// A descriptor that is closed with its owner.
class owned_descriptor {
 public:
  explicit owned_descriptor(int value) noexcept : value_(value) {}
  ~owned_descriptor();
  owned_descriptor(const owned_descriptor&) = delete;
  owned_descriptor& operator=(const owned_descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return value_; }

 private:
  int value_;
};

/// Returns the time from now until `deadline`, which is not `never`; zero if it has passed.
::timespec time_until(platform::time_point deadline) noexcept;

/// Readiness by epoll, edge-triggered. The base of `uring_engine`, whose ring watches the epoll instance.
class epoll_engine : public engine {
 public:
  explicit epoll_engine(half has = half::readiness_only);
  std::size_t poll(platform::time_point deadline) noexcept override;
  void interrupt_poll() noexcept final;
  /// Takes requests for files that are open for O_DIRECT.
  bool submit(completion& what) noexcept override { return direct_.submit(what, event_.get()); }

 protected:
  /// Signals what has happened since the last call. With a null limit it waits for something first, with another one
  /// for that time at most. Returns their number; with `events_at_once` there may be more.
  std::size_t signal_events(const ::timespec* limit) noexcept;
  static constexpr int events_at_once = 256;
  [[nodiscard]] int epoll() const noexcept { return epoll_.get(); }

 private:
  bool begin(readiness& handle, int descriptor, std::error_code& error) noexcept final;
  bool begin_writes(readiness& handle, int descriptor, std::error_code& error) noexcept final;
  [[nodiscard]] bool watch(int operation, readiness& handle, int descriptor, std::error_code& error) noexcept;
  void end(readiness& handle, int descriptor) noexcept final;
  void signal_event(const ::epoll_event& event) noexcept;
  [[nodiscard]] int wait(::epoll_event* events, int max_events, const ::timespec* limit) noexcept;
  [[nodiscard]] int wait_ms(::epoll_event* events, int max_events, int milliseconds) const noexcept;

  owned_descriptor epoll_;
  owned_descriptor event_;
  direct_io direct_;
  bool has_nanoseconds_ = true;  ///< used by the owning worker only
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
