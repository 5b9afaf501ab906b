// The implementation of pirn/detail/platform.hpp in an exploration: every function asks the running execution.
#include "pirn/detail/platform.hpp"

#include <sched.h>

#include <cstdio>
#include <cstdlib>

#include "detail/chance.hpp"
#include "detail/exiting.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

namespace {
sim::detail::execution& here() noexcept { return *sim::detail::current; }
}  // namespace

namespace checked {

constinit bool watching = false;

std::uint64_t load(const void* at, value_type type, std::memory_order order) noexcept {
  return here().load(at, type, order);
}
void store(const void* at, value_type type, std::uint64_t value, std::memory_order order) noexcept {
  here().store(at, type, value, order);
}
void read_modify_write(const void* at) noexcept { here().modify(at); }
void read_modify_write_done(const void* at, value_type type, std::uint64_t before, std::uint64_t after,
                            std::memory_order order) noexcept {
  here().modified(at, type, before, after, order);
}
void compare_failed(const void* at, value_type type, std::uint64_t found, std::memory_order order) noexcept {
  here().compare_failed(at, type, found, order);
}
void construct(const void* at) noexcept { here().construct(at); }
void lock(const void* at, std::atomic<bool>& held) noexcept { here().lock(at, held); }
bool try_lock(const void* at, std::atomic<bool>& held) noexcept { return here().try_lock(at, held); }
void unlock(const void* at, std::atomic<bool>& held) noexcept { here().unlock(at, held); }
void fence(std::memory_order order) noexcept {
  if (watching) {
    here().fence(order, sim::detail::fence_scope::own_thread);
  }
}
void symmetric_fence() noexcept {
  // As full_fence of src/detail/platform.cpp: fences that change one word are ordered as these changes are, and a later
  // one knows all that happened before an earlier one. The value stays, so that all executions begin alike.
  static atomic<unsigned> everyone{0};
  if (watching && here().wants_symmetric_fences()) {
    everyone.fetch_add(0, std::memory_order_seq_cst);
  }
}
void pause() noexcept {
  if (watching) {
    here().pause();
  }
}
void plain_read(const void* at, value_type type, const void* value) noexcept {
  if (watching) {
    here().plain(at, sim::detail::access::read, type, value);
  }
}
void plain_write(const void* at, value_type type, const void* value) noexcept {
  if (watching) {
    here().plain(at, sim::detail::access::write, type, value);
  }
}
void plain_begin(const void* at) noexcept {
  if (watching) {
    here().construct(at);
    here().plain_now(at);
  }
}
void plain_end(const void* at) noexcept {
  if (watching) {
    here().plain_now(at);
  }
}

namespace {
/// Returns the objects of the running virtual thread, or else of the real thread.
std::vector<sim::detail::virtual_thread::object>& objects_here() noexcept {
  static std::vector<sim::detail::virtual_thread::object> of_thread;
  return sim::detail::current != nullptr ? here().self().objects : of_thread;
}
}  // namespace

void* find_object(const void* key) noexcept {
  for (const auto& each : objects_here()) {
    if (each.key == key) {
      return each.value;
    }
  }
  return nullptr;
}

void keep_object(const void* key, void* object, void (*destroy)(void*)) noexcept {
  objects_here().push_back({key, object, destroy});
}

bool spawn_may_fail() noexcept { return watching && here().wants().spawn; }
bool stops_here() noexcept { return watching && here().fault(&sim::faults::stop); }
bool preempts_here() noexcept { return watching && here().fault(&sim::faults::preempt); }
bool spawn_fails() noexcept { return watching && here().fault(&sim::faults::spawn); }

void fail(const char* what, const char* text) noexcept {
  if (sim::detail::current != nullptr) {
    here().fail(what, text);
  }
  std::fprintf(stderr, "pirn: %s\n", text);
  std::abort();
}

}  // namespace checked

void heavy_fence() noexcept {
  if (checked::watching && here().wants_symmetric_fences()) {
    checked::symmetric_fence();
  } else if (checked::watching) {
    here().fence(std::memory_order_seq_cst, sim::detail::fence_scope::all_threads);
  }
}

bool fences_are_asymmetric() noexcept { return sim::detail::current == nullptr || !here().wants_symmetric_fences(); }

time_point now() noexcept {
  return sim::detail::current == nullptr ? sim::detail::beginning
         : checked::watching             ? here().read_clock_internal()
                                         : here().now();
}

std::uint64_t random_seed() noexcept { return 1; }

std::size_t chance(std::size_t count) noexcept { return checked::watching ? here().choose(count) : 0; }

namespace {
/// The error of a thread that is started outside of an exploration.
class no_exploration final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pirn::sim"; }
  [[nodiscard]] std::string message(int /*value*/) const override {
    return "this program is linked with pirn::sim, whose fibers run only inside sim::explore; to run fibers elsewhere, "
           "link it with pirn::pirn";
  }
};
}  // namespace

std::error_code thread::start(void (*entry)(void*), void* argument, const char* name) noexcept {
  if (!checked::watching) {
    static const no_exploration category;
    return {1, category};
  }
  const unsigned index = here().start(entry, argument, name);
  if (index == sim::detail::no_thread) {
    return std::make_error_code(std::errc::resource_unavailable_try_again);
  }
  handle_ = index;
  return {};
}

void thread::join() noexcept { here().join(static_cast<unsigned>(handle_)); }

std::error_code thread::pin(unsigned /*cpu*/) noexcept { return {}; }

unsigned available_cpus() noexcept { return sim::detail::current != nullptr ? here().wants_cpus() : 1; }
std::optional<unsigned> available_cpu(unsigned index) noexcept {
  return index < available_cpus() ? std::optional(index) : std::nullopt;
}

bool exiting() noexcept { return false; }

long times_preempted() noexcept { return 0; }

int thread_id() noexcept { return sim::detail::current != nullptr ? static_cast<int>(here().self().index) + 1 : 0; }

void yield_thread() noexcept {
  if (checked::watching) {
    here().yield();
  }
}

void yield_thread_hint() noexcept {
  if (checked::watching) {
    here().yield_hint();
  }
}

/// Returns 0, as if the kernel gave no answer: an exploration detects a standstill without it.
unsigned thread_count() noexcept { return 0; }

bool futex_wait(const signal_atomic<std::uint32_t>& word, std::uint32_t expected, time_point deadline) noexcept {
  return !checked::watching || here().wait(word, expected, deadline);
}

void futex_wake(const signal_atomic<std::uint32_t>* word, int count) noexcept {
  if (checked::watching) {
    here().wake(word, count);
  }
}

namespace detail {
// Read by an asm, which link-time optimization does not see.
__attribute__((used)) __thread void* current_worker_slot = nullptr;
}  // namespace detail

PIRN_NOINLINE void* current_worker_out_of_line() noexcept {
  asm volatile("");  // keeps callers from treating this as a pure function
  return detail::current_worker_slot;
}

void set_current_worker(void* worker) noexcept { detail::current_worker_slot = worker; }

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
