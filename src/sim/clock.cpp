// The C library's clocks in an exploration, which show its time. std::chrono's clocks read them, and a thread that
// sleeps, in `blocking` for instance, sleeps in them.
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "sim/execution.hpp"
#include "sim/process_guard.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

using std::chrono::nanoseconds;

/// The calendar time at which an execution begins: the first of January 2000.
constexpr nanoseconds first_day = std::chrono::seconds(946'684'800);
constexpr nanoseconds second = std::chrono::seconds(1);

enum class clock_kind : std::uint8_t { elapsed, calendar, other };

constexpr clock_kind kind_of(clockid_t clock) noexcept {
  switch (clock) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return clock_kind::elapsed;
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return clock_kind::calendar;
    default:
      return clock_kind::other;  // the time spent by the CPU, for example
  }
}

/// Returns the offset of a clock from the time of the exploration.
constexpr nanoseconds origin_of(clock_kind kind) noexcept {
  return kind == clock_kind::calendar ? first_day - beginning.time_since_epoch() : nanoseconds(0);
}

nanoseconds read(clock_kind kind) noexcept { return current->read_clock().time_since_epoch() + origin_of(kind); }

// A thread that reads the clock this often at one moment waits for time to pass, but time does not pass while it runs.
// So it sleeps for a moment, or for an eighth of the time that it has waited already.
constexpr unsigned reads_of_a_loop = 16;
constexpr unsigned internal_reads_of_a_loop = 256;
constexpr platform::duration shortest_sleep = std::chrono::microseconds(10);

/// Sleeps until `when`, in a thread of an exploration that no other thread wakes.
void sleep_until(platform::time_point when) noexcept {
  platform::signal_atomic<std::uint32_t> nobody{0};
  while (platform::checked::watching && current->now() < when && platform::futex_wait(nobody, 0, when)) {
  }
}

constexpr timespec to_timespec(nanoseconds time) noexcept {
  return {static_cast<time_t>(time / second), static_cast<long>((time % second).count())};
}

/// Converts a time; one that is too late becomes the latest possible time.
constexpr nanoseconds from_timespec(const timespec& time) noexcept {
  constexpr nanoseconds max = nanoseconds::max() / 4;
  return time.tv_sec < max / second ? time.tv_sec * second + nanoseconds(time.tv_nsec) : max;
}

constexpr bool valid(const timespec& time) noexcept {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < second.count();
}

/// Returns the result of clock_nanosleep, an error number.
int sleep(clock_kind kind, bool absolute, const timespec& time, timespec* left) noexcept {
  if (!valid(time)) {
    return EINVAL;
  }
  const nanoseconds given = from_timespec(time);
  sleep_until(absolute ? platform::time_point(given - origin_of(kind)) : current->now() + given);
  if (left != nullptr && !absolute) {
    *left = {};
  }
  return 0;
}

}  // namespace

// These functions are in this file so that every program contains the definitions below, which it may call through the
// standard library only.
void execution::begin_clock() noexcept {
  now_ = read_at_ = loop_began_ = beginning;
  reads_ = internal_reads_ = 0;
}

platform::time_point execution::read_clock_internal() {
  if (std::exchange(internal_read_step_, steps_) != steps_) {
    internal_reads_ = 0;
  }
  return ++internal_reads_ < internal_reads_of_a_loop ? now_ : read_clock();
}

platform::time_point execution::read_clock() {
  if (now_ != read_at_) {
    read_at_ = loop_began_ = now_;
    reads_ = 0;
  }
  if (++reads_ == reads_of_a_loop) {
    reads_ = 0;
    sleep_until(now_ + std::max<platform::duration>(shortest_sleep, (now_ - loop_began_) / 8));
    read_at_ = now_;
  }
  return now_;
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

extern "C" {

__attribute__((weak)) int clock_gettime(clockid_t clock, timespec* into) noexcept {
  using namespace pirn::sim::detail;
  if (const clock_kind kind = kind_of(clock); current != nullptr && kind != clock_kind::other) {
    *into = to_timespec(read(kind));
    return 0;
  }
  using reading = int(clockid_t, timespec*);
  static reading* const next = next_of<reading>("clock_gettime");
  return next != nullptr ? next(clock, into) : static_cast<int>(syscall(SYS_clock_gettime, clock, into));
}

__attribute__((weak)) int gettimeofday(timeval* __restrict into, void* __restrict zone) noexcept {
  timespec now;
  if (zone != nullptr) {
    *static_cast<struct timezone*>(zone) = {};
  }
  const int outcome = clock_gettime(CLOCK_REALTIME, &now);
  *into = {now.tv_sec, now.tv_nsec / 1000};
  return outcome;
}

__attribute__((weak)) int timespec_get(timespec* into, int base) noexcept {
  return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, into) == 0 ? base : 0;
}

__attribute__((weak)) time_t time(time_t* into) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (into != nullptr) {
    *into = now.tv_sec;
  }
  return now.tv_sec;
}

__attribute__((weak)) int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  using namespace pirn::sim::detail;
  const clock_kind kind = kind_of(clock);
  if (current != nullptr && kind != clock_kind::other) {
    return sleep(kind, (flags & TIMER_ABSTIME) != 0, *time, left);
  }
  using sleeping = int(clockid_t, int, const timespec*, timespec*);
  static sleeping* const next = next_of<sleeping>("clock_nanosleep");
  if (next != nullptr) {
    return next(clock, flags, time, left);
  }
  return syscall(SYS_clock_nanosleep, clock, flags, time, left) == 0 ? 0 : errno;
}

__attribute__((weak)) int nanosleep(const timespec* time, timespec* left) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, left);
  errno = error != 0 ? error : errno;
  return error != 0 ? -1 : 0;
}

__attribute__((weak)) int usleep(useconds_t time) {
  const timespec asked = {static_cast<time_t>(time / 1'000'000), static_cast<long>(time % 1'000'000) * 1000};
  return nanosleep(&asked, nullptr);
}

__attribute__((weak)) unsigned sleep(unsigned time) {
  timespec asked = {static_cast<time_t>(time), 0};
  return nanosleep(&asked, &asked) == 0 ? 0 : static_cast<unsigned>(asked.tv_sec);
}
}
