// Fibers: spawn, join, detach.
#pragma once

#include <concepts>
#include <cstdint>
#include <expected>
#include <new>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "pirn/fiber/detail/worker.hpp"

namespace pirn::inline PIRN_ABI {

/// Where and how a fiber is spawned.
struct spawn_options {
  /// Shown in dumps and reports; copied, at most 31 bytes of it.
  std::string_view name = {};
  /// Bytes of stack, 0 for the runtime's default. Includes the fiber's control block and the callable.
  std::size_t stack_size = 0;
  /// The index of a worker, or one of the two below.
  int worker = current_worker;
  /// A stop that is requested through this token ends the fiber's stoppable waits, as `fiber::request_stop` does.
  stop_token stop = {};

  /// The calling fiber's own worker; from a plain thread as `any_worker`.
  static constexpr int current_worker = -1;
  /// Each worker of the runtime in turn.
  static constexpr int any_worker = -2;
};

class fiber;
namespace detail {
template <class F>
std::expected<fiber, std::error_code> launch(runtime_state& owner, F&& body, const spawn_options& how);
}

/// A handle of a fiber, as std::jthread is one of a thread: move-only; destroying it requests a stop and joins.
/// Not itself thread-safe.
class [[nodiscard]] fiber {
 public:
  fiber() noexcept = default;
  fiber(fiber&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  fiber& operator=(fiber&& other) noexcept {
    if (this != &other) {
      reset();
      control_ = std::exchange(other.control_, nullptr);
    }
    return *this;
  }
  ~fiber() { reset(); }

  [[nodiscard]] bool joinable() const noexcept { return control_ != nullptr; }
  /// Suspends until the fiber has ended, then rethrows what it threw. A stop of the caller does not end this wait.
  /// Throws std::system_error (no_such_process) if there is no fiber, (resource_deadlock_would_occur) for oneself.
  void join();
  /// As `join`, unless the deadline passes or the caller is asked to stop first: then the handle stays joinable.
  [[nodiscard]] std::expected<void, wait_error> join(platform::time_point deadline);
  /// Lets the fiber run on by itself; what it throws then goes to the runtime's handler.
  void detach() noexcept;
  /// Ends the fiber's present stoppable wait and all its later ones with wait_error::stopped.
  void request_stop() noexcept;

  [[nodiscard]] std::uint64_t id() const noexcept { return control_ != nullptr ? control_->number() : 0; }
  [[nodiscard]] std::string_view name() const noexcept { return control_ != nullptr ? control_->name() : ""; }

 private:
  template <class F>
  friend std::expected<fiber, std::error_code> detail::launch(detail::runtime_state& owner, F&& body,
                                                              const spawn_options& how);
  explicit fiber(detail::fiber_control* control) noexcept : control_(control) {}
  void reset() noexcept;
  [[nodiscard]] wake_reason wait_for_end(const wait_options& how) noexcept;
  [[nodiscard]] std::exception_ptr release() noexcept;

  detail::fiber_control* control_ = nullptr;
};

namespace detail {

/// The runtime of the calling fiber; throws std::system_error (operation_not_permitted) on a plain thread.
runtime_state& current_runtime();
/// A stack of the given size, or the runtime's default for 0, from the caller's worker if it has one.
stack_result stack_for_fiber(worker* here, runtime_state& owner, std::size_t stack_size) noexcept;
void return_stack(worker* here, guarded_pool& pool, stack memory) noexcept;
guarded_pool& pool_of(runtime_state& owner) noexcept;
/// Finds the worker that `which` names; false if there is none.
bool choose_worker(worker* here, runtime_state& owner, int which, worker*& chosen) noexcept;
std::uint64_t make_foreign_id() noexcept;
/// Makes a new fiber ready on `to`, spawned by `here` or, if null, by a plain thread.
void launch_elsewhere(worker* here, worker* to, fiber_control* f) noexcept;
/// Ends the fiber's stoppable waits, present and later. Any thread.
void stop_fiber(fiber_control* f) noexcept;
void follow_token(fiber_control* f, const stop_token& token) noexcept;
/// The last switch of a fiber; does not return.
[[noreturn]] void finish(bool failed) noexcept;

/// A control block with the callable behind it.
template <class F>
struct fiber_block : fiber_control {
  template <class G>
  fiber_block(const stack& where, guarded_pool& from, worker* on, std::uint64_t number, G&& callable)
      : fiber_control(where, from, on, number) {
    ::new (static_cast<void*>(body)) F(std::forward<G>(callable));
  }

  static void entry(arch::word by, arch::word pending) {
    run_node* const self = reinterpret_cast<worker*>(by)->queue.running();
    self->sanitizer.arrive();
    arrive(by, pending);
    finish(static_cast<fiber_block*>(self)->execute());
  }

 private:
  /// Whether it ended by an exception, which is kept then.
  bool execute() noexcept {
    bool failed = false;
    F& callable = *std::launder(reinterpret_cast<F*>(body));
    try {
      std::move(callable)();
    } catch (...) {
      cold().failure = std::current_exception();
      failed = true;
    }
    callable.~F();
    return failed;
  }

  alignas(F) std::byte body[sizeof(F)];
};

/// Bytes that must be left for frames below the control block.
inline constexpr std::size_t least_frame_bytes = 2048;

template <class F>
std::expected<fiber, std::error_code> launch(runtime_state& owner, F&& body, const spawn_options& how) {
  using block = fiber_block<std::decay_t<F>>;
  static_assert(std::invocable<std::decay_t<F>>, "a fiber runs a callable without parameters");
  worker* here = detail::current_worker();
  if (here != nullptr && &here->owner != &owner) [[unlikely]] {
    here = nullptr;
  }
  worker* to = here;
  if (here == nullptr || how.worker != spawn_options::current_worker) [[unlikely]] {
    if (!choose_worker(here, owner, how.worker, to)) {
      return std::unexpected(std::make_error_code(std::errc::invalid_argument));
    }
  }
  const stack_result found =
      here != nullptr && how.stack_size == 0 ? here->stacks.allocate() : stack_for_fiber(here, owner, how.stack_size);
  if (!found) [[unlikely]] {
    return std::unexpected(make_error_code(found.error));
  }
  guarded_pool& pool = pool_of(owner);
  constexpr std::size_t alignment = alignof(block) > 64 ? alignof(block) : 64;
  constexpr std::size_t block_bytes = sizeof(block) + sizeof(fiber_cold_part);
  if (found.value.size() < block_bytes + alignment + least_frame_bytes) [[unlikely]] {
    return_stack(here, pool, found.value);
    return std::unexpected(make_error_code(stack_error::invalid_size));
  }
  const auto top = reinterpret_cast<std::uintptr_t>(found.value.top());
  void* const place = reinterpret_cast<void*>((top - block_bytes) & ~(alignment - 1));
  const std::uint64_t number = here != nullptr ? here->make_id() : make_foreign_id();
  block* f;
  try {
    f = ::new (place) block(found.value, pool, to, number, std::forward<F>(body));
  } catch (...) {
    return_stack(here, pool, found.value);
    throw;
  }
  f->state = arch::prepare(place, &block::entry);
  if (!how.name.empty()) {
    f->set_name(how.name);
  }
  f->sanitizer.create(found.value.limit(), found.value.size(), f->name());
  if (how.stop.stop_possible()) {
    follow_token(f, how.stop);
  }
  if (to == here) [[likely]] {
    here->count(here->spawned);
    here->list(f);
    here->queue.push_back(f);
  } else {
    launch_elsewhere(here, to, f);
  }
  return fiber(f);
}

}  // namespace detail

/// Runs `body` as a new fiber of the calling fiber's runtime. The error is that of the stack (category "pirn.stack")
/// or invalid_argument for a worker that does not exist. Throws what moving `body` throws, and std::system_error
/// (operation_not_permitted) on a plain thread. Not a suspension point.
template <class F>
[[nodiscard]] std::expected<fiber, std::error_code> try_spawn(F&& body, const spawn_options& how = {}) {
  return detail::launch(detail::current_runtime(), std::forward<F>(body), how);
}

/// As `try_spawn`, but throws std::system_error where that returns an error, as std::thread does.
template <class F>
fiber spawn(F&& body, const spawn_options& how = {}) {
  auto made = try_spawn(std::forward<F>(body), how);
  if (!made) [[unlikely]] {
    throw std::system_error(made.error(), "pirn: cannot spawn a fiber");
  }
  return std::move(*made);
}

/// What is told of a fiber whose exception nobody takes: it was detached, or its handle was destroyed.
using unhandled_exception_handler = void (*)(std::uint64_t id, std::string_view name, std::exception_ptr what) noexcept;
/// Replaces the handler of the process and returns the old one; the first one writes a line to standard error.
unhandled_exception_handler set_unhandled_exception_handler(unhandled_exception_handler handler) noexcept;

}  // namespace pirn::inline PIRN_ABI
