// The signal handler that reports stack overflows, and the alternate signal stacks that it runs on.
#include "pirn/stack/expert/overflow.hpp"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "pirn/detail/platform.hpp"
#include "stack/address_space.hpp"
#include "stack/backtrace.hpp"
#include "stack/describe.hpp"
#include "stack/slab_registry.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {
constexpr int signals[] = {SIGSEGV, SIGBUS};

constinit platform::spinlock install_lock;
constinit unsigned installed = 0;
constinit struct sigaction earlier[2] = {};
constinit platform::signal_atomic<bool> active{false};
constinit platform::signal_atomic<bool> reporting{false};
constinit platform::signal_atomic<stack_describer> describer{nullptr};
// The storage that a report needs, reserved at start. Guarded by `reporting`.
constinit detail::backtrace frames;

/// Whether the code that faulted in the guard of `site` was running on that stack. Code that was built without probes
/// may have moved sp below its guard without touching it. But an sp on the stack below, together with a fault at the
/// very bottom of the guard, means a write past the top of that stack.
bool is_overflow(const detail::slot_site& site, std::uintptr_t fault, std::uintptr_t sp) noexcept {
  constexpr std::uintptr_t largest_frame = std::uintptr_t{64} << 20;
  if (sp >= site.guard_begin) {
    return sp <= site.end;
  }
  const bool past_the_top = fault - site.guard_begin < detail::page_size() && site.guard_begin - sp < site.stack_size;
  return !past_the_top && site.guard_begin - sp < largest_frame;
}

/// Names the kind of an unnamed stack by the function that begins it, if the backtrace has that. Called after the
/// backtrace.
void tell_kind(detail::message& out) noexcept {
  constexpr struct {
    const char* function;
    const char* name;
  } kinds[] = {{"15coroutine_entry", "a coroutine"},
               {"13generator_run", "a generator"},
               {"18continuation_entry", "a continuation"}};
  for (const auto& kind : kinds) {
    if (const int number = frames.outermost_with(kind.function); number >= 0) {
      out.text("  it is the stack of ").text(kind.name).text(", which begins in #");
      out.number(static_cast<std::uintptr_t>(number)).text("\n");
      return;
    }
  }
}

void report(const detail::slot_site& site, std::uintptr_t fault, const detail::registers& at) noexcept {
  char name[256];
  detail::describe_stack(reinterpret_cast<const void*>(site.limit), reinterpret_cast<const void*>(site.top),
                         reinterpret_cast<const void*>(fault), name, sizeof name);
  detail::message out(STDERR_FILENO);
  if (is_overflow(site, fault, at.sp)) {
    out.text("pirn: stack overflow in ").text(name).text("\n  thread ");
    out.number(static_cast<std::uintptr_t>(platform::thread_id())).text(", stack of ").number(site.top - site.limit);
    out.text(" bytes at [").address(site.limit).text(", ").address(site.top).text("), fault at ").address(fault);
    out.text("\n  deepest use seen before of a stack of its size class: ").number(site.high_water).text(" of ");
    out.number(site.stack_size).text(" bytes");
    out.text("\n  for more, spawn with spawn_options{.stack_size = ").number(2 * site.stack_size);
    out.text("}, or give the coroutine or generator a stack of that size: (allocator, bytes, body)");
  } else {
    out.text("pirn: access to the guard of a stack from elsewhere (not an overflow): ").text(name).text("\n  thread ");
    out.number(static_cast<std::uintptr_t>(platform::thread_id())).text(", sp ").address(at.sp).text(", stack [");
    out.address(site.limit).text(", ").address(site.top).text("), fault at ").address(fault);
  }
  // If the unwinder itself faults, this much has been printed.
  out.text("\n  backtrace:\n").flush();
  frames.collect(at.pc);
  frames.resolve();
  frames.print(out);
  if (std::strcmp(name, detail::unnamed_stack) == 0) {
    tell_kind(out);
  }
  out.flush();
}

/// Handles the signal as if pirn's handler were absent.
void hand_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& before = earlier[signal == SIGSEGV ? 0 : 1];
  const bool has_action = (before.sa_flags & SA_SIGINFO) != 0;
  if (!has_action && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) {
    const bool sent = info->si_code <= 0;  // by kill or raise: it will not be delivered again
    if (sent && before.sa_handler == SIG_IGN) {
      return;
    }
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    if (sent) {
      raise(signal);  // delivered when this handler returns and the signal is unblocked
    }
    return;  // the instruction faults again: a core file shows it, and not this handler
  }
  pthread_sigmask(SIG_BLOCK, &before.sa_mask, nullptr);
  if (has_action) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  detail::slot_site site;
  if (active.load(platform::memory_order_acquire) && info->si_code > 0 && detail::find_guard(info->si_addr, 1, site)) {
    // One report at a time: two threads may overflow at once, and the storage is shared.
    while (reporting.exchange(true, platform::memory_order_acquire)) {
      platform::yield_thread();
    }
    report(site, reinterpret_cast<std::uintptr_t>(info->si_addr), detail::registers_of(context));
    reporting.store(false, platform::memory_order_release);
  }
  errno = saved_errno;
  hand_on(signal, info, context);
}

/// The unwinder initialises itself at first use, which may allocate.
_Unwind_Reason_Code stop_at_once(_Unwind_Context*, void*) { return _URC_END_OF_STACK; }
}  // namespace

overflow_handler::overflow_handler() {
  const platform::spin_guard guard(install_lock);
  if (installed++ != 0) {
    return;
  }
  _Unwind_Backtrace(&stop_at_once, nullptr);
  struct sigaction ours = {};
  ours.sa_sigaction = &on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (const int each : signals) {
    sigaddset(&ours.sa_mask, each);
  }
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    struct sigaction current = {};
    sigaction(signals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &on_fault) {
      continue;  // left in place by an earlier uninstall, which found another handler on top of it
    }
    if (sigaction(signals[i], &ours, &earlier[i]) != 0) {
      const int error = errno;
      --installed;
      throw std::system_error(error, std::system_category(), "pirn::overflow_handler");
    }
  }
  active.store(true, platform::memory_order_release);
}

overflow_handler::~overflow_handler() {
  const platform::spin_guard guard(install_lock);
  if (--installed != 0) {
    return;
  }
  active.store(false, platform::memory_order_release);
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    struct sigaction current = {};
    sigaction(signals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &on_fault) {
      sigaction(signals[i], &earlier[i], nullptr);
    }
  }
}

overflow_thread::overflow_thread() {
  // The kernel's frame (with AVX-512 and AMX state more than the old MINSIGSTKSZ), the unwinder's, and a reserve.
  constexpr std::size_t room = std::size_t{96} << 10;
  const std::size_t page = detail::page_size();
  const std::size_t usable = (getauxval(AT_MINSIGSTKSZ) + room + page - 1) / page * page;
  bytes_ = usable + page;
  range_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (range_ == MAP_FAILED) {
    throw std::system_error(errno, std::system_category(), "pirn::overflow_thread");
  }
  stack_t wanted = {};
  wanted.ss_sp = static_cast<char*>(range_) + page;
  wanted.ss_size = usable;
  stack_t before = {};
  if (mprotect(wanted.ss_sp, usable, PROT_READ | PROT_WRITE) != 0 || sigaltstack(&wanted, &before) != 0) {
    const int error = errno;
    munmap(range_, bytes_);
    throw std::system_error(error, std::system_category(), "pirn::overflow_thread");
  }
  earlier_ = before.ss_sp;
  earlier_bytes_ = before.ss_size;
  earlier_flags_ = before.ss_flags;
}

overflow_thread::~overflow_thread() {
  stack_t before = {};
  before.ss_sp = earlier_;
  before.ss_size = earlier_bytes_;
  before.ss_flags = earlier_flags_;
  if (sigaltstack(&before, nullptr) != 0) {
    // The kernel may refuse a stack that it accepted before: it is too small for today's registers, or a sandbox
    // forbids it. Then the thread gets no alternate stack, since its next signal would be delivered to memory that is
    // gone.
    before = {};
    before.ss_flags = SS_DISABLE;
    if (sigaltstack(&before, nullptr) != 0) {
      return;
    }
  }
  munmap(range_, bytes_);
}

stack_describer set_stack_describer(stack_describer describe) noexcept {
  return describer.exchange(describe, platform::memory_order_acq_rel);
}

bool is_guard_address(const void* address, std::size_t size) noexcept {
  detail::slot_site site;
  return detail::find_guard(address, size, site);
}

namespace {
/// The alternate stack of a thread that has none.
class alternate_of_thread {
 public:
  void provide() noexcept {
    if (std::exchange(asked_, true)) {
      return;
    }
    stack_t now = {};
    if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) {
      return;  // a worker's, a sanitizer's, or the program's own
    }
    try {
      mine_.emplace();
    } catch (const std::system_error&) {  // no memory: then an overflow ends the process without a message
    }
  }

 private:
  bool asked_ = false;
  std::optional<overflow_thread> mine_;
};
}  // namespace

namespace detail {
void report_overflows_here() noexcept {
  static const overflow_handler* const kept = []() -> const overflow_handler* {
    try {
      return new overflow_handler;  // until the process ends
    } catch (const std::exception&) {
      return nullptr;
    }
  }();
  if (kept != nullptr) {
    static thread_local alternate_of_thread here;
    here.provide();
  }
}

void describe_stack(const void* limit, const void* top, const void* fault, char* buffer, std::size_t size) noexcept {
  const stack_describer describe = describer.load(platform::memory_order_acquire);
  std::size_t length = describe == nullptr ? 0 : describe(limit, top, fault, buffer, size - 1);
  if (length == 0 || length >= size) {
    std::memcpy(buffer, unnamed_stack, sizeof unnamed_stack);
    length = sizeof unnamed_stack - 1;
  }
  buffer[length] = '\0';
}
}  // namespace detail

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
