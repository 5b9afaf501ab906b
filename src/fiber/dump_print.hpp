// Prints the fibers of one worker, as a part of a dump.
#pragma once

#include <cstdint>

#include "fiber/runtime_state.hpp"
#include "stack/backtrace.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// One runtime in the list of all, in plain words: tools/pirn_gdb.py reads it.
struct registered_runtime {
  registered_runtime* next;
  runtime_state* state;
  worker** workers;
  unsigned worker_count;
  unsigned number;  ///< 1 for the first of the process
};

/// All runtimes, newest first. Under the dump lock; a debugger finds it by its symbol.
extern registered_runtime* registered_runtimes asm("pirn_runtimes_" PIRN_ABI_NAME);
/// Calls `body` with every worker of them.
template <class Body>
void for_each_worker(Body body) {
  for (const registered_runtime* each = registered_runtimes; each != nullptr; each = each->next) {
    for (unsigned i = 0; i < each->worker_count; ++i) {
      body(*each->workers[i]);
    }
  }
}

/// Looks up, once, the functions that a handler cannot look up. Before any handler can run, one call at a time.
void prepare_dumps() noexcept;
/// Forgets the names of functions found for an earlier dump: modules may have come and gone.
void begin_dump() noexcept;

/// Prints all fibers of `w`. Runs on the thread of `w`, in a signal handler that interrupted it: only there does the
/// list not change, and at most one fiber is in the middle of anything. `signal_context` is the handler's third
/// argument, or null where all fibers are suspended. One call at a time in a process.
void print_fibers(worker& w, message& out, const void* signal_context) noexcept;

/// Prints that the running fiber of `w` has kept it for the time `lasts`, in the circumstances of `print_fibers`.
void print_turn(const worker& w, platform::duration lasts, message& out, const void* signal_context) noexcept;

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
