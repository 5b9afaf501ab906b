// Shared by the tests of stack_swap: a policy that counts, and a dispatcher with its swapped tasks.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <random>

#include "pirn/coro/expert/stack_swap.hpp"

namespace swap_support {

using pirn::swap_error;

/// A policy that counts: a queue of ready tasks, and buffers from malloc.
class scheduler {
 public:
  enum class order : std::uint8_t { fifo, lifo, any };

  explicit scheduler(order how = order::fifo) : order_(how) {}
  ~scheduler() { EXPECT_EQ(buffers_.size(), 0u) << "every buffer comes back"; }

  void ready(pirn::swapped_task& who) { ready_.push_back(&who); }
  void forget(const pirn::swapped_task& who) { std::erase(ready_, &who); }
  pirn::swapped_task* next() noexcept {
    if (ready_.empty()) {
      return nullptr;
    }
    std::size_t at = 0;
    if (order_ == order::lifo) {
      at = ready_.size() - 1;
    } else if (order_ == order::any) {
      at = random_() % ready_.size();
    }
    pirn::swapped_task* const chosen = ready_[at];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    return chosen;
  }
  void* allocate(std::size_t size) noexcept {
    if (++allocations == fail_at) {
      return nullptr;
    }
    void* const buffer = std::malloc(size);
    std::memset(buffer, 0xdb, size);
    buffers_[buffer] = size;
    return buffer;
  }
  void free(void* buffer, std::size_t size) noexcept {
    EXPECT_EQ(buffers_.count(buffer), 1u) << "a buffer of this policy";
    EXPECT_EQ(buffers_[buffer], size);
    buffers_.erase(buffer);
    std::free(buffer);
  }

  /// The bytes in buffers.
  [[nodiscard]] std::size_t held() const {
    std::size_t bytes = 0;
    for (const auto& [buffer, size] : buffers_) {
      bytes += size;
    }
    return bytes;
  }

  std::size_t allocations = 0;
  std::size_t fail_at = 0;  // which allocation fails, counted from 1

 private:
  order order_;
  std::minstd_rand random_{1};
  std::deque<pirn::swapped_task*> ready_;
  std::map<void*, std::size_t> buffers_;
};

using dispatcher = pirn::stack_swap<scheduler>;

/// A swapped task that calls a function.
struct unit : pirn::swapped_task {
  using pirn::swapped_task::swapped_task;
  std::function<void()> work;

  static void run(unit& self) { self.work(); }
};

/// A dispatcher, its policy and its swapped tasks.
struct world {
  explicit world(scheduler::order how = scheduler::order::fifo) : policy(how) {}

  unit& spawn(std::function<void()> work) { return start(units.emplace_back(), std::move(work)); }
  unit& start(unit& who, std::function<void()> work) {
    who.work = std::move(work);
    who.assign<&unit::run>(who);
    policy.ready(who);
    return who;
  }
  /// Lets the others run and comes back. Inlined, so that the switch lies in the caller's frame.
  [[gnu::always_inline]] void yield() {
    policy.ready(*swap.current());
    ASSERT_EQ(swap.block(), swap_error::none);
  }

  scheduler policy;
  dispatcher swap{policy};
  std::deque<unit> units;
};

}  // namespace swap_support
