// The functions of platform.hpp: fences, random seeds, OS threads, CPUs, futexes and the current worker.
#include "pirn/detail/platform.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "detail/refused.hpp"

// The function that the compiler calls for a thread_local object. Objects that are made during the destruction of
// others are destroyed too.
extern "C" int cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) noexcept
    asm("__cxa_thread_atexit");
extern "C" [[gnu::visibility("hidden")]] void* dso_handle asm("__dso_handle");

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

namespace detail {
// Read by an asm, which link-time optimization does not see.
__attribute__((used)) __thread void* current_worker_slot = nullptr;

namespace {
bool register_membarrier() noexcept {
#if defined(PIRN_TSAN)
  return false;
#else
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

/// Executes the heavy side. The light sides have run without a fence, so nothing can replace this one.
void fence_others() noexcept {
  constexpr int max_tries = 1000;
  for (int i = 0; syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0; ++i) {
    const int error = errno;
    if (error == EPERM && i == 0) {
      register_membarrier();  // the kernel has forgotten, or a sandbox refuses
    } else if (error == ENOMEM && i < max_tries) {
      yield_thread();
    } else {
      refused("membarrier", error,
              "it was allowed when the program began, and pirn has relied on it since; a sandbox that is entered later "
              "must allow it, or must be entered before the program starts");
    }
  }
}
}  // namespace

// Made before any global of a user, which may start a runtime: both sides of a pair must agree on it.
[[gnu::init_priority(101)]] const fence_kind fences{register_membarrier()};

/// Executes a full fence in a form that ThreadSanitizer follows: a read-modify-write of one location.
void full_fence() noexcept {
  static std::atomic<unsigned> everyone{0};
  everyone.fetch_add(1, std::memory_order_seq_cst);
}

namespace {
constinit thread_local thread_object* newest_of_thread = nullptr;

void destroy_object(void* raw) noexcept {
  for (thread_object** link = &newest_of_thread; *link != nullptr; link = &(*link)->older) {
    if (*link == raw) {
      thread_object& ended = **link;
      *link = ended.older;
      ended.destroy(ended);
      return;
    }
  }
}

/// Makes a key for late objects: a destructor of another pthread key makes them, after the last destructor of a
/// thread_local object.
pthread_key_t key_of_late_objects() noexcept {
  pthread_key_t key{};
  const bool made = pthread_key_create(&key, [](void*) noexcept {
                      while (newest_of_thread != nullptr) {
                        destroy_object(newest_of_thread);
                      }
                    }) == 0;
  return made ? key : static_cast<pthread_key_t>(-1);  // setting it fails: an object that is made so late stays
}
}  // namespace

void destroy_with_thread(thread_object& object) noexcept {
  static const pthread_key_t key = key_of_late_objects();
  object.older = newest_of_thread;
  newest_of_thread = &object;
  cxa_thread_atexit(&destroy_object, &object, &dso_handle);
  pthread_setspecific(key, &object);
}
}  // namespace detail

void heavy_fence() noexcept {
  detail::full_fence();
  if (detail::fences.asymmetric) {
    detail::fence_others();
  }
}

bool fences_are_asymmetric() noexcept { return detail::fences.asymmetric; }

void spinlock::lock_contended() noexcept {
  constexpr int spins_before_yield = 64;
  int spins = 0;
  do {
    while (held_.load(std::memory_order_relaxed)) {
      if (++spins % spins_before_yield == 0) {
        yield_thread();
      } else {
        relax();
      }
    }
  } while (held_.exchange(true, std::memory_order_acquire));
}

time_point now() noexcept { return clock::now(); }

std::uint64_t random_seed() noexcept {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
    seed = static_cast<std::uint64_t>(now().time_since_epoch().count()) ^ static_cast<std::uint64_t>(getpid());
  }
  return seed;
}

namespace {
struct thread_start {
  void (*entry)(void*);
  void* argument;
};

void* run_thread(void* raw) {
  const std::unique_ptr<thread_start> start(static_cast<thread_start*>(raw));
  start->entry(start->argument);
  return nullptr;
}
}  // namespace

std::error_code thread::start(void (*entry)(void*), void* argument, const char* name) noexcept {
  std::unique_ptr<thread_start> start(new (std::nothrow) thread_start{entry, argument});
  if (!start) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
  const int error = pthread_create(&handle_, nullptr, &run_thread, start.get());
  if (error != 0) {
    return {error, std::system_category()};
  }
  static_cast<void>(start.release());
  pthread_setname_np(handle_, name);  // only a label: a name that the kernel refuses changes nothing
  return {};
}

void thread::join() noexcept {
  if (const int error = pthread_join(handle_, nullptr)) {
    refused("pthread_join", error, "a thread of pirn may still use memory that its joiner is about to free");
  }
}

namespace {
/// A set of CPUs with any numbers; a cpu_set_t ends with CPU 1023.
class cpu_set {
 public:
  explicit cpu_set(std::size_t cpus) noexcept
      : bytes_(CPU_ALLOC_SIZE(cpus)), words_(static_cast<cpu_set_t*>(std::calloc(1, bytes_))) {}
  ~cpu_set() { std::free(words_); }
  cpu_set(cpu_set&& other) noexcept : bytes_(other.bytes_), words_(std::exchange(other.words_, nullptr)) {}
  cpu_set& operator=(cpu_set&&) = delete;
  explicit operator bool() const noexcept { return words_ != nullptr; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] cpu_set_t* get() const noexcept { return words_; }

 private:
  std::size_t bytes_;
  cpu_set_t* words_;
};
constexpr std::size_t max_cpus = std::size_t{1} << 20;

/// Returns the CPUs that the calling thread may run on; no CPU if the kernel does not say.
cpu_set allowed_cpus() noexcept {
  std::size_t cpus = CPU_SETSIZE;
  for (;;) {
    cpu_set found(cpus);
    // EINVAL: the kernel's own sets are larger.
    if (!found || sched_getaffinity(0, found.bytes(), found.get()) == 0 || errno != EINVAL || cpus >= max_cpus) {
      return found;
    }
    cpus *= 2;
  }
}
}  // namespace

std::error_code thread::pin(unsigned cpu) noexcept {
  if (cpu >= max_cpus) {
    return std::make_error_code(std::errc::invalid_argument);
  }
  const cpu_set only(std::size_t{cpu} + 1);
  if (!only) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
  CPU_SET_S(cpu, only.bytes(), only.get());
  return {pthread_setaffinity_np(handle_, only.bytes(), only.get()), std::system_category()};
}

unsigned available_cpus() noexcept {
  const cpu_set allowed = allowed_cpus();
  const int count = allowed ? CPU_COUNT_S(allowed.bytes(), allowed.get()) : 0;
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

std::optional<unsigned> available_cpu(unsigned index) noexcept {
  const cpu_set allowed = allowed_cpus();
  for (unsigned cpu = 0; allowed && cpu < allowed.bytes() * CHAR_BIT; ++cpu) {
    if (CPU_ISSET_S(cpu, allowed.bytes(), allowed.get()) && index-- == 0) {
      return cpu;
    }
  }
  return std::nullopt;
}

long times_preempted() noexcept {
  rusage used{};
  return getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_nivcsw : 0;
}

int thread_id() noexcept { return static_cast<int>(syscall(SYS_gettid)); }

void yield_thread() noexcept { sched_yield(); }
void yield_thread_hint() noexcept { sched_yield(); }

unsigned thread_count() noexcept {
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  char text[1024];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) {
    return 0;
  }
  text[length] = '\0';
  // The second field is a name in brackets, which may have any characters in it. The number of threads is the 20th.
  constexpr int fields_behind_the_name = 18;
  const char* at = std::strrchr(text, ')');
  for (int i = 0; at != nullptr && i < fields_behind_the_name; ++i) {
    at = std::strchr(at + 1, ' ');
  }
  return at != nullptr ? static_cast<unsigned>(std::strtoul(at, nullptr, 10)) : 0;
}

bool futex_wait(const signal_atomic<std::uint32_t>& word, std::uint32_t expected, time_point deadline) noexcept {
  timespec limit{};
  timespec* limit_or_none = nullptr;
  if (deadline != never) {
    const auto since_epoch = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
    limit.tv_sec = static_cast<time_t>(since_epoch / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(since_epoch % 1'000'000'000);
    limit_or_none = &limit;
    if (since_epoch < 0) {
      return false;
    }
  }
  // FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC, the clock of steady_clock.
  const long result =
      syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, limit_or_none, nullptr, FUTEX_BITSET_MATCH_ANY);
  if (result == 0) {
    return true;
  }
  switch (const int error = errno) {
    case ETIMEDOUT:
      return false;
    case EAGAIN:
    case EINTR:
      return true;
    default:
      refused("futex", error, "a thread that has to wait would spin forever");
  }
}

void futex_wake(const signal_atomic<std::uint32_t>* word, int count) noexcept {
  // No thread waits any more on a word that is gone (EFAULT), or where something else lies by now (EINVAL).
  if (syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0) < 0 && errno != EFAULT &&
      errno != EINVAL) {
    refused("futex", errno, "the thread to be woken would sleep forever");
  }
}

PIRN_NOINLINE void* current_worker_out_of_line() noexcept {
  asm volatile("");  // keeps callers from treating this as a pure function
  return detail::current_worker_slot;
}

void set_current_worker(void* worker) noexcept { detail::current_worker_slot = worker; }

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
