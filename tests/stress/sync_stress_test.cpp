// Fibers of several workers and plain threads use shared primitives in random order, with deadlines that pass and stops
// that come at any moment. Seeds are fixed; the machine's timing is not.
#include <array>
#include <memory>
#include <mutex>
#include <random>

#include "fiber/support.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/select.hpp"
#include "pirn/sync/wait_group.hpp"
#include "stress/support.hpp"

namespace {

using namespace pirn_test;

const auto duration = stress_time(2s);

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

/// Stages of channels of different kinds; senders and receivers give up at random and try again.
using item = std::unique_ptr<std::uint64_t>;
void run_pipeline(pirn::channel<item>& first, pirn::channel<item>& second, std::chrono::milliseconds length) {
  std::array<std::atomic<std::uint64_t>, 4> sums = {};  // sent, passed on, received, left over
  const auto end = clock::now() + length;
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
  std::this_thread::sleep_for(length / 2);
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

TEST(sync_stress, a_pipeline_loses_and_doubles_nothing) {
  pirn::channel<item> first(1);
  pirn::channel<item> second(7);
  run_pipeline(first, second, duration / 2);
}

TEST(sync_stress, neither_does_one_that_meets_and_one_without_limit) {
  pirn::channel<item> first;
  pirn::channel<item> second(pirn::unbounded);
  run_pipeline(first, second, duration / 2);
}

TEST(sync_stress, a_barrier_of_condition_and_group) {
  // All parties meet again and again, and none may be left behind.
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
    // From an even generation on no party begins another round; parties in an odd one complete it.
    const std::lock_guard guard(m);
    done = true;
  }
  // Some parties may have begun an even round before: complete it on behalf of those that have left.
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

TEST(sync_stress, local_twins) {
  // All on one worker; stops come from this thread.
  namespace local = pirn::local;
  struct everything {
    local::mutex m;
    local::condition_variable changed;
    local::counting_semaphore<2> permits{2};
    local::event bell{pirn::event_reset::automatic};
    local::channel<int> numbers{3};
    int inside = 0;
    int with_permit = 0;
    long sent = 0;
    long received = 0;
    long stopped = 0;
    long selected = 0;
  } all;
  pirn::channel<int> far;  // from this thread, for selects with local cases beside
  rig r(1);
  const auto end = clock::now() + duration / 2;
  const auto body = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    const auto count = [&](const auto& result) {
      all.stopped += !result && result.error() == pirn::wait_error::stopped ? 1 : 0;
      return result.has_value();
    };
    while (clock::now() < end && !pirn::this_fiber::stop_requested()) {
      switch (random() % 6) {
        case 0:
          if (count(all.m.lock(soon(random)))) {
            EXPECT_EQ(++all.inside, 1);
            dawdle(random);
            --all.inside;
            if (random() % 2 == 0) {
              std::unique_lock lock(all.m, std::adopt_lock);
              count(all.changed.wait(lock, clock::now() + 50us));
              EXPECT_EQ(++all.inside, 1);
              --all.inside;
            } else {
              all.m.unlock();
            }
            all.changed.notify_one();
          }
          break;
        case 1:
          if (count(all.permits.acquire(soon(random)))) {
            EXPECT_LE(++all.with_permit, 2);
            dawdle(random);
            --all.with_permit;
            all.permits.release();
          }
          break;
        case 2:
          all.bell.set();
          count(all.bell.wait(clock::now() + std::chrono::microseconds(random() % 50)));
          break;
        case 3:
          all.sent += count(all.numbers.send(1, clock::now() + std::chrono::microseconds(random() % 50))) ? 1 : 0;
          break;
        case 4: {
          int number = 0;
          const pirn::selection fired = pirn::select(
              pirn::receive(all.numbers, number), pirn::send(all.numbers, 1), wait(all.bell),
              pirn::receive(far, number), pirn::until(clock::now() + std::chrono::microseconds(random() % 50)));
          if (count(fired.outcome)) {
            all.received += fired.index == 0 ? 1 : 0;
            all.sent += fired.index == 1 ? 1 : 0;
            all.selected += fired.index == 3 ? 1 : 0;
          }
          break;
        }
        default:
          all.received += count(all.numbers.receive(clock::now() + std::chrono::microseconds(random() % 50))) ? 1 : 0;
      }
      pirn::this_fiber::yield();
    }
  };
  std::vector<pirn::fiber> fibers(9);
  long sent_from_afar = 0;
  for (unsigned seed = 0; clock::now() < end; ++seed) {
    pirn::fiber& chosen = fibers[seed % fibers.size()];
    if (chosen.joinable()) {
      std::this_thread::sleep_for(500us);
      sent_from_afar += far.send(1, clock::now() + 50us) ? 1 : 0;
      chosen.request_stop();
      chosen.join();
    }
    chosen = r.rt.spawn([&, seed] { body(seed); });
  }
  join_all(fibers);
  r.rt.run([&] {
    EXPECT_TRUE(all.m.try_lock());
    all.m.unlock();
    EXPECT_EQ(all.sent, all.received + static_cast<long>(all.numbers.size()));
  });
  EXPECT_EQ(all.selected, sent_from_afar);
  EXPECT_GT(all.selected, 0);
  EXPECT_GT(all.received, 10);
  EXPECT_GT(all.stopped, 0);
}

}  // namespace
