// A race that no missing lock causes: two fibers look at one balance, and then both take from it.
#include <pirn/fiber/runtime.hpp>
#include <pirn/sim/explore.hpp>
#include <pirn/sync/mutex.hpp>

#include <cstdio>
#include <mutex>

namespace {

struct account {
  pirn::mutex lock;
  int balance = 100;
};

bool withdraw(account& from, int amount) {
  {
    const std::lock_guard look(from.lock);
    if (from.balance < amount) {
      return false;
    }
  }
  const std::lock_guard take(from.lock);  // by now the other fiber may have taken it
  from.balance -= amount;
  return true;
}

bool withdraw_at_once(account& from, int amount) {
  const std::lock_guard both(from.lock);
  if (from.balance < amount) {
    return false;
  }
  from.balance -= amount;
  return true;
}

template <bool (*Withdraw)(account&, int)>
void two_customers() {
  pirn::runtime bank{{.workers = 2}};
  account shared;
  pirn::fiber ann = bank.spawn([&] { Withdraw(shared, 60); }, {.name = "ann", .worker = 0});
  pirn::fiber ben = bank.spawn([&] { Withdraw(shared, 60); }, {.name = "ben", .worker = 1});
  ann.join();
  ben.join();
  pirn::sim::check(shared.balance >= 0, "the account is overdrawn");
}

}  // namespace

int main() {
  const pirn::sim::result bug = pirn::sim::explore(two_customers<withdraw>);
  std::fputs(bug.text().c_str(), stdout);
  const pirn::sim::result fixed = pirn::sim::explore(two_customers<withdraw_at_once>);
  std::fputs(fixed.text().c_str(), stdout);
  return !bug && fixed && fixed.complete ? 0 : 1;
}
