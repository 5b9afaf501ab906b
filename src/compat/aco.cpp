// Implements aco.h: coroutines, share stacks and images. docs/porting.md explains the differences from libaco.
//
// Linked into programs of C without the C++ runtime: no exceptions, no run-time types, nothing that allocates.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "aco.h"
#include "compat/aco_counted_stack.hpp"
#include "compat/aco_image.hpp"
#include "compat/aco_line.hpp"
#include "compat/aco_sanitizer.hpp"
#include "compat/aco_slab.hpp"
#include "compat/aco_switch.hpp"
#include "compat/values_by_owner.hpp"
#include "pirn/context/arch.hpp"
#include "pirn/context/detail/call_sites.hpp"

#define PIRN_EXPORT __attribute__((visibility("default")))

extern "C" {
PIRN_EXPORT __attribute__((tls_model("initial-exec"))) __thread aco_t* aco_gtls_co = nullptr;
[[noreturn]] __attribute__((visibility("hidden"))) void pirn_aco_returned();
}

namespace {

using namespace pirn_aco;

constexpr std::size_t default_image = 64;
constexpr std::size_t default_share_stack = std::size_t{2} << 20;
constexpr std::size_t min_share_stack = 4096;

struct control_words {
  void* words[ACO_REG_WORDS - ACO_REG_IDX_FPU];
};
/// The state of one OS thread. Found without a call, in a shared library too.
struct thread_state {
  void* main[ACO_REG_WORDS];  // of a coroutine that stands for the thread's stack, while another one runs
  control_words initial;
  bool initialized;
  aco_cofuncp_t last_word;
  aco_t* switched;  // the coroutine that stands for the thread's stack and has left it by acosw, until it is back
};
__attribute__((tls_model("initial-exec"))) __thread thread_state here;
// The values of aco_local_set.
__attribute__((tls_model("initial-exec"))) __thread pirn_compat::values_by_owner values_here;

[[gnu::cold, gnu::noinline]] void default_last_word() noexcept {
  const aco_t* const co = aco_gtls_co;
  (line() << "pirn: the coroutine " << static_cast<const void*>(co) << " returned from its function "
          << reinterpret_cast<const void*>(co->fp) << " instead of calling aco_exit()")
      .say();
}

void leave_stack(aco_t* co) noexcept {
  aco_share_stack_t& on = *co->share_stack;
  if (on.owner == co) {
    on.owner = nullptr;
    on.align_validsz = 0;
    unpoison(on.ptr, on.sz);
  }
}

[[gnu::cold, gnu::noinline]] void end_values(const aco_t* co) noexcept {
  if (pirn_c::locals* const values = values_here.find(co); values != nullptr) {
    values->end();
    values_here.remove(co);
  }
}

/// Returns whether it is running, or waits for a coroutine that it has resumed.
bool is_active(const aco_t* co) noexcept {
  const aco_t* at = aco_gtls_co;
  while (at != nullptr && at != co) {
    at = at->main_co;
  }
  return at != nullptr;
}

// ---- switches -----------------------------------------------------------------------------------------------------

/// Whether coroutines share the control words.
enum class environment : bool { shared, own };

/// Returns the state of the coroutine that switches back.
template <environment env>
PIRN_ALWAYS_INLINE void** enter(void** state, void* const* to) noexcept {
  return env == environment::own ? pirn_aco_enter_own(state, to) : pirn_aco_enter(state, to);
}
template <environment env>
PIRN_ALWAYS_INLINE void leave(void** state, void* const* to) noexcept {
  env == environment::own ? pirn_aco_leave_own(state, to) : pirn_aco_leave(state, to);
}
/// The place of a coroutine's state. For a coroutine that stands for the thread's stack it is beside the thread, so
/// that the switch to it does not wait for the loads that find the coroutine. The caller knows which kind it is;
/// otherwise the place would be computed without a branch, and so wait after all.
void** state_of(aco_t* co) noexcept { return co->main_co == nullptr ? here.main : co->reg; }

/// Its frames and registers on its share stack, in bytes from `sp_of(co) - kept_words`.
std::size_t bytes_on_stack(const aco_t* co) noexcept { return live_size(co) + kept_words * sizeof(word); }

template <environment env>
PIRN_NOINLINE void** switch_any(aco_t* from, aco_t* to) noexcept {
  if (watched()) {
    if (to->main_co != nullptr) {
      unpoison(sp_of(to) - kept_words, bytes_on_stack(to));
    }
    sanitizer_state_of(from).leave(sanitizer_state_of(to), from->is_end != 0);
  }
  aco_gtls_co = to;
  void** const left = enter<env>(state_of(from), state_of(to));
  if (watched()) {
    sanitizer_state_of(from).arrive();
    // No code runs on the stack of a coroutine that has yielded. A pointer into it would find the frames of another one
    // as soon as that is resumed; a coroutine that is alone there is never moved.
    auto* const back = reinterpret_cast<aco_t*>(left);
    if (left != here.main && back->main_co == from && back->share_stack->owner == back &&
        counted(back->share_stack).coroutines > 1) {
      poison(sp_of(back) - kept_words, bytes_on_stack(back));
    }
  }
  return left;
}

/// Returns whether a main coroutine is the thread's stack, in a program without a sanitizer to notify.
PIRN_ALWAYS_INLINE bool is_plain(const aco_t* main) noexcept { return main->main_co == nullptr && !watched(); }

/// The last action of its caller: a jump, so that a switch back returns to the caller's caller.
template <environment env>
PIRN_ALWAYS_INLINE void switch_back(aco_t* co) noexcept {
  if (!is_plain(co->main_co)) [[unlikely]] {
    switch_any<env>(co, co->main_co);
    return;
  }
  aco_gtls_co = co->main_co;
  leave<env>(co->reg, here.main);
}

template <environment env>
PIRN_ALWAYS_INLINE aco_t* switch_checked(aco_t* from, aco_t* to) noexcept {
  if (to->main_co != nullptr && to->share_stack->owner != to) [[unlikely]] {
    misused("acosw: the coroutine's frames are not on its share stack: another's are, or it has called aco_exit");
  }
  if (from->main_co == nullptr) {
    here.switched = from;
  }
  void** const left = switch_any<env>(from, to);
  if (from->main_co == nullptr) {
    here.switched = nullptr;
  }
  if (left == here.main) {
    return here.switched != nullptr ? here.switched : from->main_co;  // else it has left by aco_resume
  }
  static_assert(offsetof(aco_t, reg) == 0);
  return reinterpret_cast<aco_t*>(left);
}

/// The entry of a coroutine in a program with a sanitizer.
PIRN_CALLS_C void start_under_sanitizer() {
  sanitizer_state_of(aco_gtls_co).arrive();
  aco_gtls_co->fp();
  pirn_aco_returned();
}

void prepare(aco_t* co) noexcept {
  // An empty image, at the beginning of its buffer.
  const unsigned char where = co->kept & (outside | in_chunk);
  co->save_stack.ptr = where != 0 ? buffer_of(co) : room_of(co);
  co->save_stack.valid_sz = 0;
  co->reg[ACO_REG_IDX_RETADDR] =
      watched() ? reinterpret_cast<void*>(&start_under_sanitizer) : reinterpret_cast<void*>(co->fp);
  co->reg[ACO_REG_IDX_SP] = co->share_stack->align_retptr;
  co->reg[ACO_REG_IDX_BP] = nullptr;
  for (std::size_t i = 0; i < sizeof here.initial.words / sizeof(void*); ++i) {
    co->reg[ACO_REG_IDX_FPU + i] = here.initial.words[i];
  }
  // In one word with the field just assigned.
  co->is_end = 0;
  co->kept = where;
}

template <environment env>
PIRN_NOINLINE void resume_any(aco_t* co) noexcept {
  if (co->is_end != 0) {
    misused("aco_resume: the coroutine has called aco_exit");
  }
  // Several main coroutines may stand for the thread's stack: the caller is the last one needed, or null.
  const aco_t* const caller = aco_gtls_co;
  if (caller != co->main_co && (co->main_co->main_co != nullptr || (caller != nullptr && caller->main_co != nullptr))) {
    misused("aco_resume: the caller is not the main coroutine of the coroutine to resume");
  }
  aco_share_stack_t& on = *co->share_stack;
  if (on.owner != co) {
    if (on.ptr == nullptr) [[unlikely]] {
      misused("aco_resume: the share stack of the coroutine has been destroyed");
    }
    if (on.owner != nullptr) {
      // No coroutine waits under a main coroutine of the thread's stack.
      if (co->main_co->main_co != nullptr && is_active(on.owner)) [[unlikely]] {
        misused("aco_resume: the share stack is in use by the caller, or by a coroutine that waits for the caller");
      }
    }
    if (on.owner == nullptr || !exchange_large(on.owner, co)) {
      if (on.owner != nullptr) {
        save(on.owner);
      }
      // A function whose last call is aco_yield jumps there, and the registers were stored over this word.
      *static_cast<void**>(on.align_retptr) = reinterpret_cast<void*>(&aco_funcp_protector_asm);
      load(co);
    }
  }
  if (!is_plain(co->main_co)) {
    switch_any<env>(co->main_co, co);
    return;
  }
  aco_gtls_co = co;
  enter<env>(here.main, co->reg);
}

template <environment env>
PIRN_ALWAYS_INLINE void resume(aco_t* co) noexcept {
  if (co == nullptr || co->main_co == nullptr) [[unlikely]] {
    misused("aco_resume: not a coroutine that can be resumed: null, or a main coroutine");
  }
  aco_t* const owner = co->share_stack->owner;
  if (is_simple(co) && co->main_co == aco_gtls_co && is_plain(co->main_co) &&
      (owner == co || exchange_small(owner, co))) {
    aco_gtls_co = co;
    enter<env>(here.main, co->reg);
    return;
  }
  resume_any<env>(co);
}

template <environment env>
PIRN_ALWAYS_INLINE void yield(aco_t* co) noexcept {
  if (co != aco_gtls_co || co == nullptr || co->main_co == nullptr) [[unlikely]] {
    misused("aco_yield: called outside of a coroutine, or aco_yield1 for a coroutine that is not running");
  }
  switch_back<env>(co);
}

template <environment env>
[[noreturn]] PIRN_ALWAYS_INLINE void exit(aco_t* co) noexcept {
  if (co != aco_gtls_co || co == nullptr || co->main_co == nullptr || co->share_stack->owner != co) [[unlikely]] {
    misused("aco_exit: called outside of a coroutine, or aco_exit1 for a coroutine that is not running");
  }
  if (values_here.any()) [[unlikely]] {
    end_values(co);
  }
  co->is_end = 1;
  co->share_stack->owner = nullptr;
  co->share_stack->align_validsz = 0;
  switch_back<env>(co);
  __builtin_unreachable();
}

}  // namespace

// ---- what is exported ---------------------------------------------------------------------------------------------

extern "C" {

void pirn_aco_returned() { aco_funcp_protector(); }

PIRN_EXPORT PIRN_CALLS_C void aco_funcp_protector() {
  if (here.last_word != nullptr) {
    here.last_word();
  } else {
    default_last_word();
  }
  std::abort();
}

PIRN_EXPORT void aco_assert_failed(const char* what) { (line() << what).die(); }

PIRN_EXPORT void aco_runtime_test() {
  static_assert(sizeof(void*) == sizeof(word) && sizeof(int) >= 4 && sizeof(int) <= sizeof(std::size_t));
  const long page = sysconf(_SC_PAGESIZE);
  if (page <= 0 || (page & (page - 1)) != 0) {
    misused("aco_runtime_test: the size of a page is not a power of two");
  }
  if (pirn::arch::shadow_stack_active()) {
    misused("aco_runtime_test: the kernel checks returns against a shadow stack, which coroutines do not have");
  }
}

PIRN_EXPORT void aco_thread_init(aco_cofuncp_t last_word_co_fp) {
  aco_runtime_test();
  aco_save_fpucw_mxcsr(here.initial.words);
  here.initialized = true;
  if (last_word_co_fp != nullptr) {
    here.last_word = last_word_co_fp;
  }
}

PIRN_EXPORT aco_share_stack_t* aco_share_stack_new(std::size_t sz) { return aco_share_stack_new2(sz, 1); }

PIRN_EXPORT aco_share_stack_t* aco_share_stack_new2(std::size_t sz, char guard_page_enabled) {
  constexpr const char* where = "aco_share_stack_new2";
  if (sz == 0) {
    sz = default_share_stack;
  } else if (sz < min_share_stack) {
    sz = min_share_stack;
  }
  auto* const made = static_cast<aco_share_stack_t*>(allocate(sizeof(counted_stack), where, "a share stack's state"));
  counted(made) = counted_stack{};
  if (guard_page_enabled == 0) {
    made->ptr = allocate(sz, where, "a share stack");
    made->sz = sz;
  } else {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t whole = (sz + page - 1) & ~(page - 1);
    void* const mapping = whole < sz || whole + page < whole ? MAP_FAILED
                                                             : mmap(nullptr, page + whole, PROT_READ | PROT_WRITE,
                                                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
      (line() << "pirn: " << where << ": memory exhausted: no " << sz << " bytes for a share stack").die();
    }
    if (mprotect(mapping, page, PROT_READ) != 0) {
      (line() << "pirn: " << where << ": memory exhausted: no guard page for a share stack").die();
    }
    made->guard_page_enabled = 1;
    made->real_ptr = mapping;
    made->real_sz = page + whole;
    made->ptr = static_cast<char*>(mapping) + page;
    made->sz = whole;
  }
  // Two words above the highest are spare: a function may read the frame of its caller.
  const word end = reinterpret_cast<word>(made->ptr) + made->sz - 2 * sizeof(word);
  made->align_highptr = reinterpret_cast<void*>(end & ~word{15});
#if defined(__aarch64__)
  constexpr std::size_t return_slot = 16;  // sp is a multiple of 16 at every instruction
#else
  constexpr std::size_t return_slot = sizeof(word);
#endif
  made->align_retptr = static_cast<char*>(made->align_highptr) - return_slot;
  *static_cast<void**>(made->align_retptr) = reinterpret_cast<void*>(&aco_funcp_protector_asm);
  made->align_limit = static_cast<std::size_t>(static_cast<char*>(made->align_retptr) - static_cast<char*>(made->ptr));
  add_roots(made->ptr, made->sz);
  return made;
}

PIRN_EXPORT void aco_share_stack_destroy(aco_share_stack_t* sstk) {
  if (sstk == nullptr || sstk->ptr == nullptr || (sstk->owner != nullptr && is_active(sstk->owner))) {
    misused(
        "aco_share_stack_destroy: null, a share stack that has been destroyed, or one on which a coroutine runs or "
        "waits for another that it has resumed");
  }
  unpoison(sstk->ptr, sstk->sz);
  remove_roots(sstk->ptr, sstk->sz);
  if (sstk->guard_page_enabled != 0) {
    munmap(sstk->real_ptr, sstk->real_sz);
  } else {
    std::free(sstk->ptr);
  }
  if (counted(sstk).coroutines == 0) {
    free_counted(sstk);
    return;
  }
  // Coroutines suspended there have lost their frames. They can be destroyed, and refer to this until then.
  sstk->ptr = nullptr;
  sstk->real_ptr = nullptr;
  sstk->owner = nullptr;
  sstk->align_validsz = 0;
}

PIRN_EXPORT aco_t* aco_create(aco_t* main_co, aco_share_stack_t* share_stack, std::size_t save_stack_sz,
                              aco_cofuncp_t fp, void* arg) {
  if (main_co != nullptr && (share_stack == nullptr || fp == nullptr)) {
    misused("aco_create: a coroutine needs a share stack and a function");
  }
  if (main_co != nullptr && share_stack->ptr == nullptr) {
    misused("aco_create: the share stack has been destroyed");
  }
  if (!here.initialized) [[unlikely]] {
    aco_save_fpucw_mxcsr(here.initial.words);
    here.initialized = true;
  }
  const std::size_t bytes = sizeof(aco_t) + room + (watched() ? sizeof(sanitizer_state) : 0);
  // A sanitizer shall find the use of a coroutine that has been destroyed.
  auto* const co = main_co == nullptr || watched() ? static_cast<aco_t*>(allocate(bytes, "aco_create", "a coroutine"))
                                                   : take_place(counted(share_stack));
  *co = aco_t{};
  co->main_co = main_co;
  co->arg = arg;
  co->fp = fp;
  if (watched()) {
    sanitizer_state_of(co).create(share_stack == nullptr ? nullptr : share_stack->ptr,
                                  share_stack == nullptr ? 0 : share_stack->sz);
  }
  if (main_co != nullptr) {
    co->share_stack = share_stack;
    ++counted(share_stack).coroutines;
    co->save_stack.ptr = room_of(co);
    co->save_stack.sz = save_stack_sz == 0 ? default_image : save_stack_sz;
    prepare(co);
  }
  return co;
}

PIRN_EXPORT void aco_destroy(aco_t* co) {
  // A running main coroutine may be destroyed: it only stands for the thread's stack.
  if (co == nullptr || (is_active(co) && (co != aco_gtls_co || co->main_co != nullptr))) {
    misused("aco_destroy: null, or a coroutine that runs, or that waits for another that it has resumed");
  }
  if (values_here.any()) [[unlikely]] {
    end_values(co);
  }
  if (co == aco_gtls_co) {
    aco_gtls_co = nullptr;
  }
  if (co->main_co != nullptr) {
    leave_stack(co);
    if (is_outside(co)) {
      free_image(co);
    }
    aco_share_stack_t* const on = co->share_stack;
    if (!watched()) {
      give_place_back(counted(on), co);
    }
    if (--counted(on).coroutines == 0 && on->ptr == nullptr) {
      free_counted(on);
    }
    if (!watched()) {
      return;
    }
  }
  if (watched()) {
    sanitizer_state_of(co).destroy();
  }
  std::free(co);
}

PIRN_EXPORT void aco_reset(aco_t* co) {
  if (co == nullptr || co->main_co == nullptr || is_active(co)) {
    misused("aco_reset: null, a main coroutine, or one that runs or waits for another that it has resumed");
  }
  if (values_here.any()) [[unlikely]] {
    end_values(co);
  }
  leave_stack(co);
  if (watched()) {
    sanitizer_state_of(co).destroy();
    sanitizer_state_of(co).create(co->share_stack->ptr, co->share_stack->sz);
  }
  prepare(co);
}

PIRN_EXPORT aco_local_t aco_local_new(void (*end)(void* value)) {
  const int made = pirn_c::local_keys::make(end);
  if (made < 0) {
    misused("aco_local_new: there are 1024 variables already");
  }
  return made;
}
PIRN_EXPORT void* aco_local_get(aco_local_t variable) {
  const pirn_c::locals* const values = values_here.find(aco_gtls_co);
  return values != nullptr ? values->get(variable) : nullptr;
}
PIRN_EXPORT void aco_local_set(aco_local_t variable, void* value) {
  if (aco_gtls_co == nullptr || !pirn_c::local_keys::has(variable)) {
    misused("aco_local_set: called outside of a coroutine, or for no variable");
  }
  pirn_c::locals* const values = values_here.find_or_add(aco_gtls_co);
  if (values == nullptr || values->set(variable, value) != 0) {
    (line() << "pirn: aco_local_set: memory exhausted").die();
  }
}

// As in aco.h: where coroutines share the control words, the header maps the name of a function to the other symbol.
#define PIRN_ACO_SWITCHES(suffix, env)                                                                       \
  PIRN_EXPORT void* pirn_aco_acosw##suffix(aco_t* from_co, aco_t* to_co) asm("pirn_acosw" #suffix);          \
  void* pirn_aco_acosw##suffix(aco_t* from_co, aco_t* to_co) { return switch_checked<env>(from_co, to_co); } \
  PIRN_EXPORT void pirn_aco_resume##suffix(aco_t* co) asm("pirn_aco_resume" #suffix);                        \
  void pirn_aco_resume##suffix(aco_t* co) { resume<env>(co); }                                               \
  PIRN_EXPORT void pirn_aco_yield##suffix() asm("pirn_aco_yield" #suffix);                                   \
  void pirn_aco_yield##suffix() { yield<env>(aco_gtls_co); }                                                 \
  PIRN_EXPORT void pirn_aco_yield1##suffix(aco_t* co) asm("pirn_aco_yield1" #suffix);                        \
  void pirn_aco_yield1##suffix(aco_t* co) { yield<env>(co); }                                                \
  PIRN_EXPORT [[noreturn]] void pirn_aco_exit##suffix() asm("pirn_aco_exit" #suffix);                        \
  void pirn_aco_exit##suffix() { exit<env>(aco_gtls_co); }                                                   \
  PIRN_EXPORT [[noreturn]] void pirn_aco_exit1##suffix(aco_t* co) asm("pirn_aco_exit1" #suffix);             \
  void pirn_aco_exit1##suffix(aco_t* co) { exit<env>(co); }
PIRN_ACO_SWITCHES(, environment::own)
PIRN_ACO_SWITCHES(_shared, environment::shared)

}  // extern "C"
