// pirn's fibers, with other policies for the waiters of mutexes and condition variables.
#pragma once

#include "units_pirn.hpp"

namespace bench {

/// Units whose mutexes have a policy, and whose notifications of a condition variable have its wake policy.
template <pirn::wake_policy Wake, pirn::wait_order Order>
struct units_with_policy : units {
  static constexpr bool switches = Wake == pirn::wake_policy::switch_over;
  static constexpr const char* name = switches ? "pirn-switch-over" : "pirn-lifo";
  static constexpr const char* note =
      switches ? "wake_policy::switch_over" : "wait_order::lifo, for the waiters of a mutex";

  struct mutex : pirn::mutex {
    mutex() noexcept : pirn::mutex(pirn::wait_policy{.wake = Wake, .order = Order}) {}
  };
  class condition {
   public:
    template <typename Lock, typename Ready>
    void wait(Lock& lock, Ready ready) {
      check(condition_.wait(lock, ready).has_value(), "a wait ends as it should");
    }
    void notify_one() { condition_.notify_one(Wake); }

   private:
    pirn::condition_variable condition_;
  };
};
using switching_units = units_with_policy<pirn::wake_policy::switch_over, pirn::wait_order::fifo>;
using lifo_units = units_with_policy<pirn::wake_policy::enqueue, pirn::wait_order::lifo>;

}  // namespace bench
