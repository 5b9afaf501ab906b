// Fibers on stacks that are only as large as necessary: from 256 bytes on, without a guard.
//
// The compiler plugin proves that size when the spawn is compiled; otherwise the compilation fails and says which part
// has no bound. Without the plugin the program does not link. docs/compiler.md says what can have a bound. The program
// links pirn::bounded, as pirn_enable_stack_bounds() lets it.
#pragma once

#if !defined(__x86_64__) || defined(__ILP32__)
#error "pirn: bounded fibers run on x86-64 only, for which the compiler plugin knows the stack use"
#endif

#include <utility>

#include "pirn/fiber/detail/launch_on_small_stack.hpp"
#include "pirn/fiber/expert/on_worker_stack.hpp"  // IWYU pragma: export
#include "pirn/fiber/fiber.hpp"
#include "pirn/stack/expert/small_stacks.hpp"

/// The compiler plugin replaces each call by the most stack bytes that `entry` uses, its return address included. The
/// function has no definition.
extern "C" std::size_t pirn_spawn_bounded_needs_the_compiler_plugin(pirn::arch::switch_entry entry) noexcept;

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// Checks, once for each kind of body and before its first spawn, that nothing uses more of a small stack than is
/// known. Ends the process with a message if the object that contains `entry` binds its symbols lazily, or if a signal
/// handler runs on the stack that it interrupts.
void check_before_bounded(const void* entry) noexcept;
/// Returns a stack for an entry that uses `bytes` bytes.
stack_result small_stack_for(std::size_t bytes) noexcept;
/// The first and the last step of a bounded fiber.
void begin_bounded(worker* w, arch::word pending) noexcept;
[[noreturn]] void finish_bounded() noexcept;

/// A control block with the callable behind it, for a fiber with a bounded stack.
template <class F>
struct bounded_block : fiber_control {
  template <class G>
  bounded_block(std::uint64_t number, G&& callable) : fiber_control(number) {
    ::new (static_cast<void*>(body)) F(std::forward<G>(callable));
  }

  static void entry(arch::word by, arch::word pending) noexcept {
    auto* const w = reinterpret_cast<worker*>(by);
    begin_bounded(w, pending);
    F* const callable = std::launder(reinterpret_cast<F*>(static_cast<bounded_block*>(w->queue.running())->body));
    static_cast<F&&>(*callable)();
    callable->~F();
    finish_bounded();
  }

  alignas(F) std::byte body[sizeof(F)];
};

/// `entry` is that of the block, and needs `bound` bytes of stack.
template <class F>
fiber_control* launch_bounded(F&& body, const spawn_options& options, arch::switch_entry entry, std::size_t bound,
                              std::error_code& error) {
  using callable = std::decay_t<F>;
  using block = bounded_block<callable>;
  if constexpr (!std::is_nothrow_constructible_v<callable, F&&> && std::is_nothrow_move_constructible_v<callable>) {
    // A copy may suspend, and the caller may resume on another worker.
    return launch_bounded(callable(std::forward<F>(body)), options, entry, bound, error);
  }
  worker* const here = current_worker();
  if (here == nullptr) {
    throw_no_runtime();
  }
  static_assert(std::is_nothrow_invocable_v<callable> && std::is_nothrow_destructible_v<callable>,
                "the body of a bounded fiber must be noexcept: the stack that an exception needs has no known bound");
  static_assert(sizeof(block) <= block_chunk::block_bytes && alignof(block) <= block_chunk::alignment,
                "the body of a bounded fiber may hold at most eleven words: capture a pointer to the rest");
  static_assert(std::is_empty_v<sanitizer_state> && !platform::exploring,
                "bounded stacks are not available in builds with a sanitizer or for an exploration");
  worker* const to = choose_worker(here, here->owner, options.worker);
  if (to == nullptr || options.migratable || options.worker == spawn_options::any_worker || options.stack_size != 0) {
    error = std::make_error_code(std::errc::invalid_argument);
    return nullptr;
  }
  static const bool checked = (check_before_bounded(reinterpret_cast<const void*>(entry)), true);
  static_cast<void>(checked);
  const stack_result found = with_cold_part_for(options, small_stack_for(bound));
  if (!found) {
    error = make_error_code(found.error);
    return nullptr;
  }
  void* const place = here->blocks.allocate();
  if (place == nullptr) {
    give_back_unused(found.value);
    error = make_error_code(stack_error::out_of_memory);
    return nullptr;
  }
  block* f;
  try {
    f = ::new (place) block(here->make_id(), std::forward<F>(body));
  } catch (...) {
    give_block_back(here, place);
    give_back_unused(found.value);
    throw;
  }
  f->set_entry(entry);
  launch_on_small_stack(here, to, f, found.value, options, fiber_control::bounded_bit);
  return f;
}

}  // namespace detail

/// As `try_spawn`, but on a small stack. The body is noexcept and holds at most eleven words; the compiler plugin
/// refuses it unless its stack use has a bound. If `options` asks for `migratable`, `any_worker` or a `stack_size`, the
/// error is invalid_argument.
template <class F>
[[nodiscard]] PIRN_ALWAYS_INLINE std::expected<fiber, std::error_code> try_spawn_bounded(F&& body,
                                                                                         const spawn_options& options) {
  // Inlined, so that messages of the plugin name the caller's line.
  constexpr auto entry = &detail::bounded_block<std::decay_t<F>>::entry;
  const std::size_t bound = pirn_spawn_bounded_needs_the_compiler_plugin(entry);
  std::error_code error;
  if (auto* const f = detail::launch_bounded(std::forward<F>(body), options, entry, bound, error)) {
    return fiber(f);
  }
  return std::unexpected(error);
}
template <class F>
[[nodiscard]] PIRN_ALWAYS_INLINE std::expected<fiber, std::error_code> try_spawn_bounded(F&& body) {
  return try_spawn_bounded(std::forward<F>(body), spawn_options{});
}

/// As `try_spawn_bounded`, but throws std::system_error where that returns an error.
template <class F>
PIRN_ALWAYS_INLINE fiber spawn_bounded(F&& body, const spawn_options& options = {}) {
  auto made = try_spawn_bounded(std::forward<F>(body), options);
  if (!made) [[unlikely]] {
    detail::throw_no_fiber(made.error());
  }
  return std::move(*made);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
