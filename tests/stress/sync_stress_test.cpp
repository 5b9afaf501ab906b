// Fibers of several workers and plain threads use shared primitives in random order, with deadlines that pass and
// stops that come at any moment. Seeds are fixed; what the machine does in between is not.
#include <array>
#include <memory>
#include <mutex>
#include <random>

#include "fiber/support.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/wait_group.hpp"

namespace {

using namespace pirn_test;

constexpr auto duration = 2s;

pirn::platform::time_point soon(std::minstd_rand& random) {
  return clock::now() + std::chrono::microseconds(random() % 200);
}

void dawdle(std::minstd_rand& random) {
  switch (random() % 8) {
    case 0:
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(random() % 50)));
      break;
    case 1:
      for (auto spin = random() % 200; spin > 0; --spin) {
        pirn::platform::relax();
      }
      break;
    case 2:
    case 3:
      pirn::this_fiber::yield();
      break;
    default:
      break;
  }
}

TEST(sync_stress, money_is_neither_made_nor_lost) {
  // Transfers under two locks; some give up at the second one.
  struct account {
    explicit account(pirn::mutex_policy policy) : lock(policy) {}
    pirn::mutex lock;
    long balance = 1000;
  };
  std::vector<std::unique_ptr<account>> bank;
  for (int i = 0; i < 6; ++i) {
    bank.push_back(std::make_unique<account>(i % 2 == 0 ? pirn::mutex_policy::fair : pirn::mutex_policy::barging));
  }
  std::atomic<long> transfers = 0;
  std::atomic<long> given_up = 0;
  const auto end = clock::now() + duration;
  const auto body = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    while (clock::now() < end && !pirn::this_fiber::stop_requested()) {
      account& from = *bank[random() % bank.size()];
      account& to = *bank[random() % bank.size()];
      if (&from == &to) {
        continue;
      }
      if (!from.lock.lock(soon(random))) {
        ++given_up;
        continue;
      }
      const std::lock_guard first(from.lock, std::adopt_lock);
      dawdle(random);
      if (random() % 4 == 0 ? !to.lock.try_lock() : !to.lock.lock(soon(random))) {
        ++given_up;
        continue;
      }
      const std::lock_guard second(to.lock, std::adopt_lock);
      const long amount = static_cast<long>(random() % 100);
      from.balance -= amount;
      dawdle(random);
      to.balance += amount;
      ++transfers;
    }
  };
  rig r(3);
  std::vector<pirn::fiber> fibers;
  for (unsigned i = 0; i < 12; ++i) {
    fibers.push_back(r.rt.spawn([&, i] { body(i); }, {.worker = static_cast<int>(i % 3)}));
  }
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] { body(100 + i); });
  }
  for (std::size_t i = 0; i < fibers.size() / 2; ++i) {  // half of them are stopped on the way
    std::this_thread::sleep_for(duration / 10);
    fibers[i].request_stop();
  }
  join_all(fibers);
  threads.clear();
  long total = 0;
  for (const auto& each : bank) {
    total += each->balance;
    EXPECT_TRUE(each->lock.try_lock());
    each->lock.unlock();
  }
  EXPECT_EQ(total, 6000);
  EXPECT_GT(transfers, 100);
  EXPECT_GT(given_up, 0);
  RecordProperty("transfers", static_cast<int>(transfers));
}

TEST(sync_stress, a_pipeline_loses_and_doubles_nothing) {
  // Stages of channels of different sizes; senders and receivers give up at random and try again.
  using item = std::unique_ptr<std::uint64_t>;
  pirn::channel<item> first(1);
  pirn::channel<item> second(7);
  std::array<std::atomic<std::uint64_t>, 4> sums = {};  // sent, passed on, received, of what was left
  const auto end = clock::now() + duration;
  const auto send_on = [](pirn::channel<item>& to, item value, std::minstd_rand& random) {
    for (;;) {
      const auto result = to.send(std::move(value), random() % 3 == 0 ? soon(random) : pirn::platform::never);
      if (result || result.error() == pirn::wait_error::closed) {
        return result.has_value();
      }
      EXPECT_NE(value, nullptr);
      dawdle(random);
      if (result.error() == pirn::wait_error::stopped) {
        pirn::this_fiber::yield();  // a stopped fiber does not wait, but may still find room
      }
    }
  };
  const auto produce = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (std::uint64_t i = 1; clock::now() < end; ++i) {
      EXPECT_TRUE(send_on(first, std::make_unique<std::uint64_t>(i * 31 + seed), random));
      sums[0] += i * 31 + seed;
      dawdle(random);
    }
  };
  const auto pass_on = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (;;) {
      auto got = first.receive(random() % 3 == 0 ? soon(random) : pirn::platform::never);
      if (got) {
        sums[1] += **got;
        EXPECT_TRUE(send_on(second, std::move(*got), random));
      } else if (got.error() == pirn::wait_error::closed) {
        return;
      } else {
        pirn::this_fiber::yield();
      }
    }
  };
  const auto consume = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (auto& value : second) {
      sums[2] += *value;
      dawdle(random);
    }
  };
  rig r(3);
  std::vector<pirn::fiber> producers;
  std::vector<pirn::fiber> middle;
  std::vector<pirn::fiber> consumers;
  for (unsigned i = 0; i < 4; ++i) {
    producers.push_back(r.rt.spawn([&, i] { produce(i); }));
    middle.push_back(r.rt.spawn([&, i] { pass_on(10 + i); }));
    consumers.push_back(r.rt.spawn([&, i] { consume(20 + i); }));
  }
  std::jthread producing([&] { produce(4); });
  std::jthread passing([&] { pass_on(14); });
  std::this_thread::sleep_for(duration / 2);
  producers[0].request_stop();
  middle[0].request_stop();
  join_all(producers);
  producing.join();
  first.close();
  join_all(middle);
  passing.join();
  second.close();
  join_all(consumers);
  EXPECT_GT(sums[0], 0u);
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[1], sums[2]);
}

TEST(sync_stress, a_barrier_of_condition_and_group) {
  // All meet again and again; nobody may be left behind.
  constexpr int parties = 9;
  pirn::mutex m;
  pirn::condition_variable all_here;
  int here = 0;
  int generation = 0;
  std::atomic<bool> done = false;
  pirn::wait_group finished(parties);
  std::atomic<int> late = 0;
  const auto body = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (;;) {
      std::unique_lock lock(m);
      const int mine = generation;
      if (done && mine % 2 == 0) {
        break;
      }
      if (++here == parties) {
        here = 0;
        ++generation;
        lock.unlock();
        all_here.notify_all();
      } else {
        while (generation == mine) {
          const auto deadline = random() % 4 == 0 ? soon(random) : pirn::platform::never;
          if (!all_here.wait(lock, [&] { return generation != mine; }, deadline)) {
            ++late;
          }
        }
        lock.unlock();
      }
      dawdle(random);
    }
    finished.done();
  };
  rig r(2);
  for (unsigned i = 0; i < parties - 1; ++i) {
    r.rt.spawn([&, i] { body(i); }).detach();
  }
  std::jthread thread([&] { body(parties); });
  const auto end = clock::now() + duration;
  while (clock::now() < end) {
    std::this_thread::sleep_for(10ms);
  }
  {
    // From an even generation on nobody begins another round; those in an odd one complete it.
    const std::lock_guard guard(m);
    done = true;
  }
  // Some may have begun an even round before: complete it on behalf of those that have left.
  while (!finished.wait(clock::now() + 50ms)) {
    const std::lock_guard guard(m);
    if (here != 0) {
      here = 0;
      ++generation;
      all_here.notify_all();
    }
  }
  EXPECT_GT(generation, 50);
}

}  // namespace
