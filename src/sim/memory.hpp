// What an execution remembers of the words that its threads share.
//
// Two orders are kept apart. The order of steps joins whatever touched one word, one of them writing, and tells which
// steps could have come the other way round: the reduction asks for it. Happens-before is C++'s, by what acquire sees
// of release, and tells data races and which values a load may see.
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

/// What a step does to a word, as far as others are concerned.
enum class access : std::uint8_t {
  none,  ///< no word
  read,
  write,     ///< also reads and then writes
  lock,      ///< can happen only while the word is not locked
  try_lock,  ///< one that has locked it; one that has not has read
  unlock,
  heavy,  ///< a fence of all threads, before or behind whatever any of them does
};

/// A step that was taken.
struct mark {
  std::uint32_t time = 0;  ///< of the thread in the order of steps; 0 for never
  std::uint32_t choice = 0;
};

/// What a thread at some point knows of the others, and hands on with a release.
struct knowledge {
  vector_clock happened;  ///< before: who has read it to race with nothing of it
  // Only with stale reads: what fences that are sequentially consistent add to what may be seen, and to nothing else.
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
  knowledge released;             ///< what a relaxed store hands on since the last release fence
  std::uint32_t last_choice = 0;  ///< the choice at which its present step was decided; no_choice if there was none
  mark last_step;
};

/// One word.
struct location {
  /// A value that was stored, for loads that may see older ones.
  struct stored {
    std::uint64_t value;
    knowledge released;
    vector_clock known;    ///< since when each thread has: it has stored it, or loaded it
    std::uint32_t strict;  ///< the place in the total order of the first operation there that has; no_place if none
  };
  static constexpr std::uint32_t no_place = ~0U;

  void begin(const void* address, std::uint32_t number) noexcept;

  const void* at = nullptr;
  std::uint32_t name = 0;  ///< the how manieth of this execution it is
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
  std::uint32_t oldest[max_threads] = {};  ///< of the history: what each thread may still see
  std::uint8_t looks[max_threads] = {};    ///< how often it has seen that, although there was something newer
};

/// The steps that came before another one and could have come after.
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
  // All that can have read, the last that wrote, unlocked, and fenced all of them.
  step all_[max_threads + 3];  // not initialised, for that takes longer than what is done with it
  std::size_t count_ = 0;
};

class memory {
 public:
  memory();
  /// Forgets everything. With `stale`, values are remembered, and what fences say of them.
  void begin_execution(bool stale) noexcept;
  [[nodiscard]] location& find(const void* at) noexcept;
  /// A new object begins there: what was known of an old one is void.
  void construct(const void* at) noexcept;

  /// With which earlier ones a step of `thread` could change places. `bounded`: to wait for a lock or not makes a
  /// difference, for whoever waits is not interrupted.
  void compare(const location& of, access what, unsigned thread, const thread_clocks& clocks, bool bounded,
               earlier_steps& races) const noexcept;
  /// Puts the step in order.
  void order(location& of, access what, unsigned thread, thread_clocks& clocks) noexcept;
  /// The same of a fence of all threads, whose clocks are `all`.
  void order_heavy(unsigned thread, std::span<thread_clocks* const> all, earlier_steps& races) noexcept;

  // Happens-before, for operations on atomics.
  void acquire(location& of, thread_clocks& clocks, std::memory_order order) noexcept;
  void release(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order, bool modify) noexcept;
  void fence(thread_clocks& clocks, std::memory_order order) noexcept;

  // With stale reads.
  /// How many values a load may see; 0 if nothing is known of the word. Each old one twice at most, since a store
  /// becomes visible in finite time: else there would be no end of executions in which somebody waits for one.
  unsigned visible(location& of, unsigned thread, const thread_clocks& clocks, std::memory_order order) noexcept;
  /// Before a store: the value that is there, if it is the first of this execution.
  void remember_old(location& of, std::uint64_t value);
  /// The one that is so many older than the newest.
  std::uint64_t see(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order,
                    unsigned age) noexcept;
  void remember(location& of, unsigned thread, thread_clocks& clocks, std::memory_order order, std::uint64_t value,
                bool modify) noexcept;

  /// Whether the access of a thread to memory that is no atomic races with an earlier one; then of whom.
  [[nodiscard]] int race(location& of, bool write, unsigned thread, thread_clocks& clocks) noexcept;

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
  vector_clock fenced_;       ///< what happened before a fence that is sequentially consistent
  std::uint32_t places_ = 0;  ///< of sequentially consistent operations, in their total order
};

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
