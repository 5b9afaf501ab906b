// Agents: a fiber or a plain OS thread, behind one word that decides which wake-up ends its wait and why.
#pragma once

#if __SIZEOF_POINTER__ != 8
#error "pirn: fibers run on 64-bit instruction sets only; contexts, stacks and coroutines run on this one too"
#endif

#include <cstdint>
#include <new>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Why a wait ended.
enum class wake_reason : std::uint8_t {
  notified,
  timed_out,  ///< its own deadline
  stopped,
  expired,  ///< the deadline of a scope around it
};

namespace detail {

/// How a wait may end other than by its waker.
enum class wait_kind : std::uint8_t {
  single_waker,  ///< not at all: no deadline, no stop; there is one waker, so claiming needs no read-modify-write
  timed,         ///< by a deadline
  stoppable,     ///< by a stop, and by a deadline
};

/// A word that others may still read as that of the fiber which had this memory before: it begins by a store.
union lasting_word {
  PIRN_ALWAYS_INLINE explicit lasting_word(std::uint64_t first) noexcept {
    if constexpr (platform::exploring) {
      ::new (static_cast<void*>(&now)) platform::atomic<std::uint64_t>(first);
    } else {
      now.store(first, platform::memory_order_relaxed);
    }
  }
  platform::atomic<std::uint64_t> now;
};

enum class agent_kind : std::uint8_t {
  fiber,
  child,  ///< a fiber of a scope
  thread,
  coroutine,  ///< one without a stack, or several that await each other
};

/// Two words.
/// The wait word, from the low end:
///   bit 0     waiting: set by the agent when it begins a wait, cleared by the claim
///   bit 1     stoppable: the present wait ends when a stop is requested; set once the agent is switched out
///   bit 2     single_waker: the present wait has one waker only
///   bits 3-4  wake_reason of the last claim; zero during a wait
///   bits 5-   epoch: one more for each wait, so that a claim meant for an earlier wait fails
/// While the agent does not wait, and until it is published, only the agent writes it (or the context that follows);
/// from then on only a claim does.
/// The identity, from the low end; any thread may set flags:
///   bit 0     stopped: asked to stop; never cleared
///   bit 1     thread: constant; of a coroutine too
///   bit 2     has a cold part: set once
///   bit 3     expired: as `stopped`, but because the deadline of the scope that it is a child of has passed
///   bits 4-5  stopped and expired as long as a scope that it has opened is
///   bit 6     child: constant; of a coroutine too
///   bit 7     runs_tasks: set once, by the fiber
///   bits 8-   the number of a fiber: constant
class agent {
 public:
  explicit agent(agent_kind what, std::uint64_t number = 0) noexcept
      : identity_((number << number_shift) | (what == agent_kind::thread      ? thread_bit
                                              : what == agent_kind::child     ? child_bit
                                              : what == agent_kind::coroutine ? thread_bit | child_bit
                                                                              : 0)) {}
  agent(const agent&) = delete;
  agent& operator=(const agent&) = delete;

  /// Begins a wait. False if it is stoppable and a stop was requested: the agent must not suspend then, and
  /// `stop_reason` says why. With `later` a stoppable wait is opened only by `open_to_stop`.
  PIRN_ALWAYS_INLINE bool begin(wait_kind wait, std::uint64_t& epoch, bool later = false) noexcept {
    if (wait == wait_kind::stoppable) {
      if (platform::stops_here()) {
        identity_.now.fetch_or(stopped_bit, platform::memory_order_seq_cst);
      }
      if (stop_requested()) {
        return false;
      }
    }
    const std::uint64_t begun = (word_.now.load(platform::memory_order_relaxed) | below_epoch) + 1;
    epoch = begun >> epoch_shift;
    if (later && wait == wait_kind::stoppable) {
      return true;
    }
    // Possible claimers learn of the wait later, through the lock or the word that publishes the waiter.
    word_.now.store(begun | waiting_bit | (wait == wait_kind::single_waker ? single_waker_bit : 0),
                    platform::memory_order_release);
    return true;
  }

  /// Lets a stop end the wait of `epoch` too. Called once the agent is switched out, since a stopper knows it already
  /// and may queue it at once, and before it is published to any other waker. True if a stop was requested since
  /// `begin`: the caller must make it runnable.
  bool open_to_stop(std::uint64_t epoch) noexcept {
    // Dekker with request_stop: here the word is written and then the flag is read, there it is the other way round.
    word_.now.exchange((epoch << epoch_shift) | waiting_bit | stoppable_bit, platform::memory_order_seq_cst);
    const std::uint64_t stops = identity_.now.load(platform::memory_order_seq_cst) & stop_bits;
    return stops != 0 && claim(epoch, reason_of(stops));
  }

  /// Ends the wait of `epoch` for `reason`; exactly one claim of a wait succeeds, and its caller must make the
  /// agent runnable.
  PIRN_ALWAYS_INLINE bool claim(std::uint64_t epoch, wake_reason reason) noexcept {
    std::uint64_t old = word_.now.load(platform::memory_order_relaxed);
    const std::uint64_t numbered = epoch << epoch_shift;
    if (((old ^ (numbered | waiting_bit)) & ~(stoppable_bit | single_waker_bit)) != 0) {
      return false;
    }
    const std::uint64_t closed = numbered | (static_cast<std::uint64_t>(reason) << reason_shift);
    if ((old & single_waker_bit) != 0) {
      word_.now.store(closed, platform::memory_order_release);
      return true;
    }
    return word_.now.compare_exchange_strong(old, closed, platform::memory_order_acq_rel,
                                             platform::memory_order_relaxed);
  }

  /// Marks the agent as asked to stop, which stays so. True if that ended a stoppable wait: the caller must make the
  /// agent runnable. `why` is `stopped` or `expired`.
  bool request_stop(wake_reason why) noexcept {
    return end_wait(why == wake_reason::stopped ? stopped_bit : expired_bit, why);
  }
  /// As `request_stop`, but only while a scope that it opened is stopped.
  bool interrupt(wake_reason why) noexcept {
    return end_wait(why == wake_reason::stopped ? scope_stopped_bit : scope_expired_bit, why);
  }
  /// Ends the stop of a scope that it opened and that is now closed; `outer` returns that of the next. Called by the
  /// agent.
  template <class Outer>
  void end_interruption(Outer outer) noexcept {
    if ((identity_.now.load(platform::memory_order_relaxed) & (scope_stopped_bit | scope_expired_bit)) == 0) {
      return;
    }
    // A stop of the outer scope is recorded there first and sets the bit here second.
    identity_.now.fetch_and(~(scope_stopped_bit | scope_expired_bit), platform::memory_order_seq_cst);
    if (const wake_reason why = outer(); why != wake_reason::notified) {
      identity_.now.fetch_or(why == wake_reason::stopped ? scope_stopped_bit : scope_expired_bit,
                             platform::memory_order_seq_cst);
    }
  }

  [[nodiscard]] bool waiting() const noexcept { return present_wait() != 0; }
  /// Returns the epoch of the wait that has begun and was not claimed yet, or 0. While unchanged, that wait lasts.
  [[nodiscard]] std::uint64_t present_wait() const noexcept {
    const std::uint64_t present = word_.now.load(platform::memory_order_acquire);
    return (present & waiting_bit) != 0 ? present >> epoch_shift : 0;
  }
  [[nodiscard]] bool stop_requested() const noexcept {
    return (identity_.now.load(platform::memory_order_acquire) & stop_bits) != 0;
  }
  /// Returns `stopped` or `expired` if a stop was requested, else `notified`.
  [[nodiscard]] wake_reason stop_reason() const noexcept {
    return reason_of(identity_.now.load(platform::memory_order_acquire) & stop_bits);
  }
  /// Returns the number of its last wait. For a fiber: called on its own worker.
  [[nodiscard]] std::uint64_t epoch() const noexcept {
    return word_.now.load(platform::memory_order_relaxed) >> epoch_shift;
  }
  /// As `stop_reason`, without the stops of scopes that it opened.
  [[nodiscard]] wake_reason own_stop_reason() const noexcept {
    return reason_of(identity_.now.load(platform::memory_order_acquire) & (stopped_bit | expired_bit));
  }
  /// Returns why the last wait ended.
  [[nodiscard]] wake_reason reason() const noexcept {
    return static_cast<wake_reason>((word_.now.load(platform::memory_order_acquire) >> reason_shift) & 3);
  }
  /// Returns its kind; a child counts as a fiber.
  [[nodiscard]] PIRN_ALWAYS_INLINE agent_kind kind() const noexcept {
    const std::uint64_t identity = identity_.now.load(platform::memory_order_relaxed);
    return (identity & thread_bit) == 0  ? agent_kind::fiber
           : (identity & child_bit) == 0 ? agent_kind::thread
                                         : agent_kind::coroutine;
  }
  /// Whether it is a fiber of a scope.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool is_child() const noexcept {
    return (identity_.now.load(platform::memory_order_relaxed) & child_bit) != 0;
  }
  [[nodiscard]] std::uint64_t number() const noexcept {
    return identity_.now.load(platform::memory_order_relaxed) >> number_shift;
  }

  /// Records that it runs coroutines: another such fiber may release what one of them holds.
  void set_runs_tasks() noexcept { identity_.now.fetch_or(runs_tasks_bit, platform::memory_order_release); }
  [[nodiscard]] bool runs_tasks() const noexcept {
    return (identity_.now.load(platform::memory_order_acquire) & runs_tasks_bit) != 0;
  }

  /// Whether the cold part of a fiber's block has been written.
  [[nodiscard]] bool has_cold_part() const noexcept {
    return (identity_.now.load(platform::memory_order_acquire) & cold_part_bit) != 0;
  }

 protected:
  void set_has_cold_part() noexcept { identity_.now.fetch_or(cold_part_bit, platform::memory_order_release); }

 private:
  bool end_wait(std::uint64_t bit, wake_reason why) noexcept {
    identity_.now.fetch_or(bit, platform::memory_order_seq_cst);
    const std::uint64_t wait = word_.now.load(platform::memory_order_seq_cst);
    return (wait & stoppable_bit) != 0 && claim(wait >> epoch_shift, why);
  }
  static constexpr wake_reason reason_of(std::uint64_t stops) noexcept {
    return (stops & (stopped_bit | scope_stopped_bit)) != 0 ? wake_reason::stopped
           : stops != 0                                     ? wake_reason::expired
                                                            : wake_reason::notified;
  }

  static constexpr std::uint64_t waiting_bit = 1;
  static constexpr std::uint64_t stoppable_bit = 2;
  static constexpr std::uint64_t single_waker_bit = 4;
  static constexpr int reason_shift = 3;
  static constexpr int epoch_shift = 5;
  static constexpr std::uint64_t below_epoch = (1 << epoch_shift) - 1;

  static constexpr std::uint64_t stopped_bit = 1;
  static constexpr std::uint64_t thread_bit = 2;
  static constexpr std::uint64_t cold_part_bit = 4;
  static constexpr std::uint64_t expired_bit = 8;
  static constexpr std::uint64_t scope_stopped_bit = 16;
  static constexpr std::uint64_t scope_expired_bit = 32;
  static constexpr std::uint64_t child_bit = 64;
  static constexpr std::uint64_t stop_bits = stopped_bit | expired_bit | scope_stopped_bit | scope_expired_bit;
  static constexpr std::uint64_t runs_tasks_bit = 128;
  static constexpr int number_shift = 8;

  lasting_word word_{0};
  lasting_word identity_;
};

/// Where a waiter goes in a list, and where a woken fiber goes in the run queue of its worker.
enum class placement : std::uint8_t {
  back,    ///< behind all others
  front,   ///< ahead of all others; for a fiber within `runtime_options::lifo_turns`
  direct,  ///< as `front`, and if the fiber is of the caller's worker the caller yields to it: a suspension point
};

/// Schedules an agent whose wait was claimed: queues a fiber on its worker, wakes a thread, or queues a chain of tasks.
/// Called once for each claim; the agent may be gone when this returns. Any thread. `make_ready` is the part without a
/// yield, `make_ready_and_yield` that for `placement::direct`.
void make_ready(agent& who, placement where) noexcept;
void make_ready_and_yield(agent& who) noexcept;
PIRN_ALWAYS_INLINE void schedule(agent& who, placement where) noexcept {
  where == placement::direct ? make_ready_and_yield(who) : make_ready(who, where);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
