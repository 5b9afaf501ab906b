// Fibers on small stacks without a guard, from 1 KiB on, for programs in which a million wait at once. No compiler
// plugin is needed: whether the stack was large enough is checked at each suspension and at the end.
//
// The check finds an overflow after it has happened, when memory below the stack is overwritten already, another
// fiber's perhaps. So it ends the process. It is for programs whose stack use is known from tests; others use `spawn`.
#pragma once

#include <utility>

#include "pirn/fiber/detail/launch_on_small_stack.hpp"
#include "pirn/fiber/expert/on_worker_stack.hpp"  // IWYU pragma: export
#include "pirn/fiber/fiber.hpp"
#include "pirn/stack/expert/small_stacks.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// The stack of `spawn_small` unless `stack_size` says otherwise, in bytes.
inline constexpr std::size_t default_small_stack_size = 2048;
/// The least `stack_size` of `spawn_small`, in bytes.
inline constexpr std::size_t min_small_stack_size = 1024;
/// The greatest one.
inline constexpr std::size_t max_small_stack_size = small_stacks::max_size - small_stacks::band;

namespace detail {

/// Returns a stack for a small fiber with this option.
stack_result checked_stack_for(std::size_t stack_size) noexcept;
/// Whether a small fiber can have these options.
[[nodiscard]] inline bool fits_small(const spawn_options& options) noexcept {
  return !options.migratable && options.worker != spawn_options::any_worker &&
         (options.stack_size == 0 ||
          (options.stack_size >= min_small_stack_size && options.stack_size <= max_small_stack_size));
}

template <class F>
fiber_control* launch_small(F&& body, const spawn_options& options, std::error_code& error) {
  static_assert(std::invocable<std::decay_t<F>>, "a fiber runs a callable without parameters");
  static_assert(std::is_empty_v<sanitizer_state> && !platform::exploring && has_worker_stack,
                "small stacks are available on x86-64 only, and not in builds with a sanitizer or for an exploration");
  if constexpr (!is_prepared<F, small_control>) {
    return launch_small(prepared<small_control>(std::forward<F>(body)), options, error);
  } else {
    worker* const here = current_worker();
    if (here == nullptr) {
      throw_no_runtime();
    }
    worker* const to = choose_worker(here, here->owner, options.worker);
    if (to == nullptr || !fits_small(options)) {
      error = std::make_error_code(std::errc::invalid_argument);
      return nullptr;
    }
    const stack_result found = with_cold_part_for(options, checked_stack_for(options.stack_size));
    if (!found) {
      error = make_error_code(found.error);
      return nullptr;
    }
    small_control* const f = make_block<small_control>(here, std::forward<F>(body));
    if (f == nullptr) {
      give_back_unused(found.value);
      error = make_error_code(stack_error::out_of_memory);
      return nullptr;
    }
    launch_on_small_stack(here, to, f, found.value, options);
    return f;
  }
}

}  // namespace detail

/// As `try_spawn`, but on a small stack without a guard: of `stack_size` bytes, 1 KiB to 32,704 bytes, or 2 KiB. A wait
/// takes 300 to 500 bytes of it, a call of printf several thousand; `this_fiber::on_worker_stack` makes such calls
/// elsewhere, and an exception needs some 5 KiB. At each suspension and at its end the fiber is checked: if it has left
/// its stack, the process ends with a message. Signal handlers need SA_ONSTACK; programs are linked with -z now, since
/// the loader binds a function at its first call on the caller's stack. The fiber stays on its worker: if `options`
/// asks for `migratable`, `any_worker` or another size, the error is invalid_argument. Each suspension takes the slow
/// path, some 18 ns more. O(1).
template <class F>
[[nodiscard]] std::expected<fiber, std::error_code> try_spawn_small(F&& body, const spawn_options& options) {
  std::error_code error;
  if (auto* const f = detail::launch_small(std::forward<F>(body), options, error)) {
    return fiber(f);
  }
  return std::unexpected(error);
}

/// As the other `try_spawn_small`, with default options.
template <class F>
[[nodiscard]] std::expected<fiber, std::error_code> try_spawn_small(F&& body) {
  return try_spawn_small(std::forward<F>(body), spawn_options{});
}

/// As `try_spawn_small`, but throws std::system_error where that returns an error.
template <class F>
fiber spawn_small(F&& body, const spawn_options& options = {}) {
  auto made = try_spawn_small(std::forward<F>(body), options);
  if (!made) [[unlikely]] {
    detail::throw_no_fiber(made.error());
  }
  return std::move(*made);
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
