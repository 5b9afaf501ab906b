// Detects the use of a runtime in a process made by fork, which has the memory of its parent's runtimes and none of
// their threads. A fiber or thread that continued there would wait for ever, or take events from an engine that both
// processes share.
#include "fiber/process_fork.hpp"

#include <pthread.h>

#include <cstdlib>

#include "fiber/runtime_state.hpp"
#include "pirn/detail/contract.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

constinit platform::signal_atomic<unsigned> process_forks{0};

namespace {

/// Returns 0 or the number of an error.
int begin_to_count() noexcept {
  static const int refused = pthread_atfork(nullptr, nullptr, [] {
    process_forks.fetch_add(1, platform::memory_order_relaxed);
    if (worker* const w = current_worker()) {
      w->request_tick();  // the next switch is to the scheduler, which checks
    }
  });
  return refused;
}

}  // namespace

unsigned count_forks() noexcept {
  static_cast<void>(begin_to_count());
  return process_forks.load(platform::memory_order_relaxed);
}

unsigned generation_of_process() {
  if (const int refused = begin_to_count(); refused != 0) {
    throw std::system_error(refused, std::system_category(), "pirn: pthread_atfork");
  }
  return process_forks.load(platform::memory_order_relaxed);
}

bool is_forked(const runtime_state& used) noexcept {
  return process_forks.load(platform::memory_order_relaxed) != used.generation;
}

void check_not_forked(const runtime_state& used) noexcept {
  if (is_forked(used)) [[unlikely]] {
    fail_contract(
        "a process made by fork uses a runtime of its parent; it may call exec, exit or _exit, or make another one");
  }
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
