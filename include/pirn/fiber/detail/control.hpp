// The control block of a fiber: lies at the top of the fiber's own stack, beside the frames that a wake-up touches.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <string_view>

#include "pirn/context/arch.hpp"
#include "pirn/context/sanitizer.hpp"
#include "pirn/fiber/detail/agent.hpp"
#include "pirn/fiber/stop.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn::inline PIRN_ABI {
class guarded_pool;
}

namespace pirn::inline PIRN_ABI::detail {

class worker;

/// Something that a worker resumes: a fiber, or the worker's own scheduler. A link of the run queue's ring while it
/// runs or is ready; `next` also links it in the last-in-first-out run and in an inbox.
struct run_node {
  arch::context state;
  run_node* next = nullptr;
  run_node* previous = nullptr;
  [[no_unique_address]] sanitizer_state sanitizer;
};

/// The progress of a fiber towards its end, in one word: one of these, or the address of a `joiner`.
enum join_state : std::uintptr_t {
  join_possible = 0,  ///< runs; a handle exists
  join_detached = 1,  ///< runs; no handle: its end frees the stack
  join_ended = 2,     ///< has ended and is switched out; the handle frees the stack
  join_waking = 3,    ///< has ended; its worker is waking the joiner and touches the block once more
};

struct fiber_control;

/// Ties a fiber to the stop token that it was spawned with.
struct fiber_stop_link : stop_link {
  fiber_control* target = nullptr;
};

struct fiber_control : run_node, agent {
  fiber_control(const stack& where, guarded_pool& from, worker* on, std::uint64_t number) noexcept
      : agent(agent::kind::fiber), home(on), memory(where), pool(from), id(number) {
    name[0] = '\0';
  }

  // -- written by the worker that the fiber lives on
  worker* home;
  const char* waits_for = nullptr;  ///< static text, null while it runs or is ready
  const void* waits_on = nullptr;
  fiber_control* elder = nullptr;  ///< list of all live fibers of `home`, newest first
  fiber_control* younger = nullptr;
  std::exception_ptr failure;
  // -- shared
  platform::atomic<std::uintptr_t> join_word{join_possible};
  // -- constant while it lives
  stack memory;
  guarded_pool& pool;
  std::uint64_t id;
  fiber_stop_link stop;
  static constexpr std::size_t name_capacity = 32;
  char name[name_capacity];  ///< zero-terminated; longer names are cut
  bool listed = false;       ///< whether it is in the list of all fibers of `home`
  bool started = false;

  void set_name(std::string_view text) noexcept {
    const std::size_t length = text.size() < name_capacity ? text.size() : name_capacity - 1;
    std::memcpy(name, text.data(), length);
    name[length] = '\0';
  }
};

/// Who waits for a fiber's end; on the stack of the waiter.
struct joiner {
  agent* who;
  std::uint64_t epoch;
};

}  // namespace pirn::inline PIRN_ABI::detail
