// Checks that nothing else in the process uses a small stack, before a fiber runs on it.
//
//   * The first call of a lazily bound function of another object runs the loader on the caller's stack, which takes 3
//     KiB with AVX-512. Objects that are linked with -z now, or loaded with LD_BIND_NOW set, do not do that.
//   * A signal handler without SA_ONSTACK runs on the stack that it interrupts. Handlers that are there are found by
//     asking. Later ones are refused by `sigaction` and `signal` below, which replace the C library's in programs that
//     link pirn::bounded.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "fiber/runtime_state.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/fiber/expert/bounded.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

platform::signal_atomic<bool> refuses_handlers{false};

struct search {
  const void* address;
  bool lazy;
  const char* name;
};

/// Returns whether the loader binds the object lazily: then it has entered itself in the object's global offset table.
bool binds_lazily(const dl_phdr_info& object, const ElfW(Dyn) * dynamic) noexcept {
  const ElfW(Addr)* table = nullptr;
  bool has_calls = false;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_PLTGOT) {
      const bool relocated = dynamic->d_un.d_ptr >= object.dlpi_addr;
      table = reinterpret_cast<const ElfW(Addr)*>(dynamic->d_un.d_ptr + (relocated ? 0 : object.dlpi_addr));
    } else if (dynamic->d_tag == DT_PLTRELSZ) {
      has_calls = dynamic->d_un.d_val != 0;
    }
  }
  return has_calls && table != nullptr && table[2] != 0;
}

int look_at(dl_phdr_info* object, std::size_t /*size*/, void* argument) noexcept {
  auto& wanted = *static_cast<search*>(argument);
  const ElfW(Dyn)* dynamic = nullptr;
  bool here = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    } else if (part.p_type == PT_LOAD) {
      here = here || reinterpret_cast<ElfW(Addr)>(wanted.address) - begin < part.p_memsz;
    }
  }
  if (!here) {
    return 0;
  }
  wanted.lazy = dynamic != nullptr && binds_lazily(*object, dynamic);
  wanted.name = object->dlpi_name != nullptr && object->dlpi_name[0] != '\0' ? object->dlpi_name : "the program";
  return 1;
}

void check_binding(const void* address) noexcept {
  search wanted{address, false, ""};
  dl_iterate_phdr(&look_at, &wanted);
  if (wanted.lazy) {
    fail_contract("spawn_bounded: ", wanted.name,
                  " binds functions at their first call, which takes more stack than a bounded fiber has; link it with "
                  "-z now, or set LD_BIND_NOW=1");
  }
}

bool runs_on_interrupted_stack(const struct sigaction& action) noexcept {
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN && (action.sa_flags & SA_ONSTACK) == 0;
}

void tell_of_handler(int signal, const char* what) noexcept {
  std::fprintf(stderr,
               "pirn: %s handler of signal %d (SIG%s) has no SA_ONSTACK: it would run on the small stacks of bounded "
               "fibers and overrun them; install it with SA_ONSTACK, each worker has an alternate stack\n",
               what, signal, signal < 32 ? sigabbrev_np(signal) : "RT");
}

void check_handlers() noexcept {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &now) == 0 && runs_on_interrupted_stack(now)) {
      tell_of_handler(signal, "the");
      std::abort();
    }
  }
}

}  // namespace

void check_before_bounded(const void* entry) noexcept {
  on_worker_stack(current_worker(), [entry]() noexcept {
    if (!finds_switch_bounded()) {
      fail_contract(
          "spawn_bounded: pirn's shared library does not find pirn::bounded; the program or library that links it must "
          "export its symbols (no --exclude-libs, no version script, not loaded with RTLD_LOCAL), or link pirn "
          "statically");
    }
    check_binding(entry);
    check_binding(reinterpret_cast<const void*>(&switch_slow));  // of pirn itself
    refuses_handlers.store(true, platform::memory_order_release);
    check_handlers();
  });
}

// Sanitizers replace the same functions, and with them no bounded fiber is spawned.
#if defined(__GLIBC__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
#define PIRN_REPLACES_SIGACTION 1
namespace {
/// Returns whether this handler must not be installed, and reports it.
bool handler_refused(int signal, const struct sigaction* action) noexcept {
  if (action == nullptr || !refuses_handlers.load(platform::memory_order_acquire) ||
      !runs_on_interrupted_stack(*action)) {
    return false;
  }
  tell_of_handler(signal, "a");
  errno = EINVAL;
  return true;
}
}  // namespace
#endif

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

#if defined(PIRN_REPLACES_SIGACTION)
extern "C" {

int __sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept;

// Weak, for a program that has these functions itself; it then keeps handlers without SA_ONSTACK out.
__attribute__((weak)) int sigaction(int number, const struct sigaction* action, struct sigaction* before) noexcept {
  return pirn::detail::handler_refused(number, action) ? -1 : __sigaction(number, action, before);
}

// The C library's own `signal` would not call `sigaction` above.
__attribute__((weak)) __sighandler_t signal(int number, __sighandler_t handler) noexcept {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
}
#endif
