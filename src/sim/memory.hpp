// The memory of an execution: its knowledge of the words that its threads share.
//
// Two orders are kept apart. The order of steps joins steps at the same word, if one of them writes. It tells the
// reduction which steps could have happened in the other order. Happens-before is that of C++, by the releases that
// acquires see. It reveals data races, and determines which values a load may see.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "pirn/detail/platform.hpp"
#include "sim/schedule.hpp"
#include "sim/vector_clock.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

/// The effect of a step on a word, as far as it concerns other threads.
enum class access : std::uint8_t {
  none,  ///< no word
  read,
  write,     ///< also reads and then writes
  lock,      ///< can happen only while the word is not locked
  try_lock,  ///< a successful one; a failed one counts as a read
  unlock,
  heavy,  ///< a fence of all threads, ordered with every step of each of them
};

/// Whether a store begins a new release sequence, or continues that of the value before, as a read-modify-write does.
enum class release_sequence : bool { begins, continues };

/// A step that was taken.
struct mark {
  std::uint32_t time = 0;  ///< of the thread in the order of steps; 0 for never
  std::uint32_t choice = 0;
};

/// The knowledge of a thread about the others at some point, which it passes on with a release.
struct knowledge {
  vector_clock happened;  ///< before: a thread that has acquired it races with none of this
  // Only with stale reads: limits on the visible values that sequentially consistent fences add, and that affect
  // nothing else.
  vector_clock fenced;
  std::uint32_t fence = 0;  ///< the place of the last of these fences in the total order

  void join(const knowledge& other, bool stale) noexcept {
    happened.join(other.happened);
    if (stale) {
      fenced.join(other.fenced);
      fence = std::max(fence, other.fence);
    }
  }
};

/// The clocks of one thread.
struct thread_clocks {
  vector_clock order;
  knowledge seen;
  knowledge to_acquire;           ///< what an acquire fence would add
  knowledge released;             ///< what a relaxed store passes on since the last release fence
  std::uint32_t last_choice = 0;  ///< the choice at which its present step was decided; no_choice if there was none
  mark last_step;
};

/// One word.
struct location {
  /// A value that was stored, for loads that may see older ones.
  struct stored {
    std::uint64_t value;
    knowledge released;
    vector_clock known;    ///< the time at which each thread first stored or loaded it
    std::uint32_t strict;  ///< the place in the total order of the first operation that did so; no_place if none
  };
  static constexpr std::uint32_t no_place = ~0U;

  void begin(const void* address, std::uint32_t number) noexcept;

  const void* at = nullptr;
  std::uint32_t name = 0;  ///< its number in this execution, in the order of first use
  int holder = -1;         ///< the thread that has it locked

  vector_clock written_order, read_order;
  unsigned writer = 0, unlocker = 0;
  mark last_write, last_unlock;
  std::uint32_t readers = 0;  ///< since the last write
  mark last_read[max_threads];

  knowledge released;
  unsigned plain_writer = 0;
  std::uint32_t plain_write = 0;
  std::uint32_t plain_read[max_threads] = {};

  std::vector<stored> history;
  std::uint32_t oldest[max_threads] = {};  ///< index in `history` of the oldest value that each thread may see
  std::uint8_t looks[max_threads] = {};    ///< how often it has seen that value although a newer one existed
};

/// The steps that came before another step and could have come after it.
class earlier_steps {
 public:
  struct step {
    unsigned thread;
    std::uint32_t time, choice;
  };
  void add(unsigned thread, const mark& taken) noexcept {
    if (taken.time != 0 && taken.choice != no_choice) {
      all_[count_++] = {thread, taken.time, taken.choice};
    }
  }
  [[nodiscard]] std::span<const step> all() const noexcept { return {all_, count_}; }

 private:
  // All possible readers, and the last step that wrote, unlocked, and fenced all threads.
  step all_[max_threads + 3];  // not initialized: that takes longer than its use
  std::size_t count_ = 0;
};

class memory {
 public:
  memory();
  /// Forgets everything. With `stale`, remembers values from now on, and the limits that fences set to them.
  void begin_execution(bool stale) noexcept;
  [[nodiscard]] location& find(const void* at) noexcept;
  /// Forgets the knowledge about the old object at this address, as a new one begins there.
  void construct(const void* at) noexcept;

  /// Collects the earlier steps with which a step of `thread` could change places. With `bounded`, waiting for a lock
  /// makes a difference, because a thread that waits is not preempted.
  void compare(const location& of, access what, unsigned thread, const thread_clocks& clocks, bool bounded,
               earlier_steps& races) const noexcept;
  /// Puts the step in order.
  void order(location& of, access what, unsigned thread, thread_clocks& clocks) noexcept;
  /// As `compare` and `order` together, for a fence of all threads, whose clocks are `all`.
  void order_heavy(unsigned thread, std::span<thread_clocks* const> all, earlier_steps& races) noexcept;

  // Happens-before, for operations on atomics.
  void acquire(location& of, thread_clocks& clocks, std::memory_order order) noexcept;
  void release(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order,
               release_sequence sequence) noexcept;
  void fence(thread_clocks& clocks, std::memory_order order) noexcept;

  // With stale reads.
  /// Returns the number of values that a load may see; 0 if nothing is known of the word. Each old value can be seen at
  /// most twice, since a store becomes visible in finite time. Otherwise executions in which a thread waits for a store
  /// would have no end.
  unsigned visible(location& of, unsigned thread, const thread_clocks& clocks, std::memory_order order) noexcept;
  /// Remembers the value before a store, if that is the first store at the word in this execution.
  void remember_old(location& of, std::uint64_t value);
  /// Returns the value that is `age` stores older than the newest, as a load sees it.
  std::uint64_t see(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order,
                    unsigned age) noexcept;
  void remember(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order, std::uint64_t value,
                release_sequence sequence) noexcept;

  /// Returns the thread whose earlier access races with this access to non-atomic memory; -1 without a race.
  [[nodiscard]] int race(location& of, access what, unsigned thread, thread_clocks& clocks) noexcept;

 private:
  struct entry {
    std::uint64_t execution = 0;
    location* where = nullptr;
  };
  void grow();
  [[nodiscard]] entry& slot(const void* at) noexcept;

  std::uint64_t execution_ = 0;
  std::vector<entry> table_;
  std::deque<location> locations_;
  std::uint32_t used_ = 0;
  bool stale_ = false;
  unsigned heavy_thread_ = 0;
  mark last_heavy_;
  vector_clock heavy_order_;
  vector_clock fenced_;       ///< what happened before a sequentially consistent fence
  std::uint32_t places_ = 0;  ///< number of sequentially consistent operations, in their total order
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
