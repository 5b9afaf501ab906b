// One program per primitive: fibers of several workers and plain threads do what the primitive allows in random order,
// with deadlines that pass, and one fiber after the other is stopped and replaced. Seeds are fixed; the machine's
// timing is not.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>

#include "fiber/support.hpp"
#include "pirn/sync/actor.hpp"
#include "pirn/sync/barrier.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/future.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/once.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/select.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/shared_mutex.hpp"
#include "pirn/sync/wait_group.hpp"
#include "stress/support.hpp"

namespace {

using namespace pirn_test;

/// The duration of each program, and that of a part of it after which some objects must be made anew.
std::chrono::milliseconds in_all() { return stress_time(1s); }
constexpr std::chrono::milliseconds a_part = 1s;

/// A deadline that mostly passes, sometimes has passed, and sometimes never comes.
pirn::platform::time_point some_time(std::minstd_rand& random) {
  switch (random() % 8) {
    case 0:
      return {};
    case 1:
      return pirn::platform::never;
    default:
      return clock::now() + std::chrono::microseconds(random() % 200);
  }
}

void dawdle(std::minstd_rand& random) {
  switch (random() % 8) {
    case 0:
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::microseconds(random() % 50)));
      break;
    case 1:
    case 2:
      pirn::this_fiber::yield();
      break;
    default:
      for (auto spin = random() % 100; spin > 0; --spin) {
        pirn::platform::relax();
      }
  }
}

template <class Step>
void shake(Step step, std::chrono::milliseconds length = in_all()) {
  rig r(3);
  const auto end = clock::now() + length;
  const auto body = [&](unsigned seed) {
    std::minstd_rand random(seed + 1);
    while (clock::now() < end && !pirn::this_fiber::stop_requested()) {
      step(random);
      pirn::this_fiber::yield();
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned seed = 0; seed < 2; ++seed) {
    threads.emplace_back([&, seed] { body(seed); });
  }
  std::vector<pirn::fiber> fibers(9);
  for (unsigned seed = 2; clock::now() < end; ++seed) {
    pirn::fiber& chosen = fibers[seed % fibers.size()];
    if (chosen.joinable()) {
      std::this_thread::sleep_for(500us);
      chosen.request_stop();
      chosen.join();
    }
    chosen = r.rt.spawn([&, seed] { body(seed); }, {.worker = static_cast<int>(seed % 3), .migratable = seed % 4 == 0});
  }
  join_all(fibers);
}

/// An object that one party waits for and another party signals once. It is gone as soon as the wait returns.
template <class T>
struct parcel;

template <>
struct parcel<pirn::latch> {
  pirn::latch done{1};
  void signal() { done.count_down(); }
  auto wait(pirn::platform::time_point deadline) { return done.wait(deadline); }
};
template <>
struct parcel<pirn::binary_semaphore> {
  pirn::binary_semaphore done{0};
  void signal() { done.release(); }
  auto wait(pirn::platform::time_point deadline) { return done.acquire(deadline); }
};
template <>
struct parcel<pirn::wait_group> {
  pirn::wait_group done{1};
  void signal() { done.done(); }
  auto wait(pirn::platform::time_point deadline) { return done.wait(deadline); }
};
template <pirn::event_reset how>
struct event_parcel {
  pirn::event done{how};
  void signal() { done.set(); }
  auto wait(pirn::platform::time_point deadline) { return done.wait(deadline); }
};
template <>
struct parcel<pirn::promise<int>> {
  pirn::promise<int> done;
  pirn::future<int> result = done.get_future();
  void signal() { done.set_value(1); }
  auto wait(pirn::platform::time_point deadline) { return result.get(deadline); }
};

template <class Parcel>
void exchange_parcels() {
  struct letter {
    Parcel parcel;
    int answer = 0;  // not atomic: the signal orders it
  };
  std::array<std::atomic<letter*>, 4> box = {};
  std::atomic<long> answered = 0;
  std::atomic<long> retracted = 0;
  shake([&](std::minstd_rand& random) {
    std::atomic<letter*>& place = box[random() % box.size()];
    if (random() % 2 == 0) {
      if (letter* const found = place.exchange(nullptr)) {
        dawdle(random);
        found->answer = 1;
        found->parcel.signal();
      }
      return;
    }
    letter mine;
    letter* expected = nullptr;
    if (!place.compare_exchange_strong(expected, &mine)) {
      return;
    }
    auto result = mine.parcel.wait(clock::now() + std::chrono::microseconds(random() % 300));
    if (!result) {
      expected = &mine;
      if (place.compare_exchange_strong(expected, nullptr)) {
        ++retracted;
        return;
      }
      // Another party has taken it, and may look at it until the wait succeeds. A stopped fiber cannot suspend for it.
      const auto limit = clock::now() + 20s;
      while (!(result = mine.parcel.wait(limit))) {
        ASSERT_EQ(result.error(), pirn::wait_error::stopped) << "a wake-up was lost";
        pirn::this_fiber::yield();
      }
    }
    EXPECT_EQ(mine.answer, 1);
    ++answered;
  });
  EXPECT_GT(answered, 10);
  EXPECT_GT(retracted, 0);
}

TEST(primitives_stress, latch) { exchange_parcels<parcel<pirn::latch>>(); }
TEST(primitives_stress, binary_semaphore) { exchange_parcels<parcel<pirn::binary_semaphore>>(); }
TEST(primitives_stress, wait_group) { exchange_parcels<parcel<pirn::wait_group>>(); }
TEST(primitives_stress, event_manual) { exchange_parcels<event_parcel<pirn::event_reset::manual>>(); }
TEST(primitives_stress, event_automatic) { exchange_parcels<event_parcel<pirn::event_reset::automatic>>(); }
TEST(primitives_stress, future) { exchange_parcels<parcel<pirn::promise<int>>>(); }

TEST(primitives_stress, counting_semaphore) {
  pirn::counting_semaphore<3> permits(3);
  std::atomic<int> taken = 0;
  std::atomic<long> passed = 0;
  shake([&](std::minstd_rand& random) {
    int mine = 0;
    for (auto wanted = random() % 3 + 1; wanted > 0; --wanted) {
      // A fiber that holds permits waits for more only this long.
      const auto deadline = mine == 0 ? some_time(random) : clock::now() + 50us;
      if (random() % 4 == 0 ? permits.try_acquire() : permits.acquire(deadline).has_value()) {
        ++mine;
        EXPECT_LE(++taken, 3);
      }
    }
    dawdle(random);
    taken -= mine;
    permits.release(mine);
    passed += mine;
  });
  EXPECT_GT(passed, 10);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(permits.try_acquire());
  }
  EXPECT_FALSE(permits.try_acquire());
}

TEST(primitives_stress, event_as_a_lock) {
  pirn::event free(pirn::event_reset::automatic);
  free.set();
  int inside = 0;  // not atomic: the event orders it
  shake([&](std::minstd_rand& random) {
    if (free.wait(some_time(random))) {
      EXPECT_EQ(++inside, 1);
      dawdle(random);
      --inside;
      free.set();
    }
  });
  EXPECT_TRUE(free.is_set());
}

TEST(primitives_stress, shared_mutex) {
  pirn::shared_mutex m;
  std::atomic<int> readers = 0;
  long first = 0;  // not atomic: the lock orders them
  long second = 0;
  std::atomic<long> given_up = 0;
  shake([&](std::minstd_rand& random) {
    const auto how = random() % 4;
    if (random() % 3 == 0) {
      std::unique_lock lock(m, std::defer_lock);
      if (how == 0) {
        lock.lock();
      } else if (how == 1 ? m.try_lock() : m.lock(some_time(random)).has_value()) {
        lock = std::unique_lock(m, std::adopt_lock);
      } else {
        ++given_up;
        return;
      }
      EXPECT_EQ(readers, 0);
      ++first;
      dawdle(random);
      ++second;
    } else {
      std::shared_lock lock(m, std::defer_lock);
      if (how == 0) {
        lock.lock();
      } else if (how == 1 ? m.try_lock_shared() : m.lock_shared(some_time(random)).has_value()) {
        lock = std::shared_lock(m, std::adopt_lock);
      } else {
        ++given_up;
        return;
      }
      ++readers;
      EXPECT_EQ(first, second);
      dawdle(random);
      --readers;
    }
  });
  EXPECT_GT(first, 10);
  EXPECT_GT(given_up, 0);
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

void recurse(pirn::mutex_policy policy) {
  pirn::recursive_mutex m(policy);
  int depth = 0;  // not atomic: the lock orders it
  shake([&](std::minstd_rand& random) {
    int mine = 0;
    for (auto wanted = random() % 4 + 1; wanted > 0; --wanted) {
      if (random() % 4 == 0 ? m.try_lock() : m.lock(some_time(random)).has_value()) {
        EXPECT_EQ(depth++, mine++);
        dawdle(random);
      } else {
        EXPECT_EQ(mine, 0);  // the owner always gets it
      }
    }
    for (; mine > 0; --mine) {
      EXPECT_EQ(depth--, mine);
      m.unlock();
    }
  });
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}
TEST(primitives_stress, recursive_mutex_fair) { recurse(pirn::mutex_policy::fair); }
TEST(primitives_stress, recursive_mutex_barging) { recurse(pirn::mutex_policy::barging); }

TEST(primitives_stress, biased_mutex) {
  struct place {
    pirn::biased_mutex m;
    int inside = 0;  // not atomic: the lock orders it
  };
  for (auto parts = in_all() / a_part; parts > 0; --parts) {
    std::vector<place> places(3 * 5000);
    std::atomic<std::size_t> turn = 0;
    std::atomic<long> given_up = 0;
    shake(
        [&](std::minstd_rand& random) {
          // Mostly a place that this worker uses; after a while a new one, which no other worker has unbiased yet.
          const std::size_t here = reinterpret_cast<std::uintptr_t>(pirn::platform::current_worker()) / 64;
          const std::size_t whose = random() % 16 == 0 ? random() : here;
          place& mine = places[(turn++ / 100 * 3 + whose % 3) % places.size()];
          switch (random() % 4) {
            case 0:
              mine.m.lock();
              break;
            case 1:
              if (!mine.m.try_lock()) {
                ++given_up;
                return;
              }
              break;
            default:
              if (!mine.m.lock(some_time(random))) {
                ++given_up;
                return;
              }
          }
          EXPECT_EQ(++mine.inside, 1);
          dawdle(random);
          EXPECT_EQ(--mine.inside, 0);
          mine.m.unlock();
        },
        a_part);
    EXPECT_GT(given_up, 0);
    for (place& each : places) {
      EXPECT_TRUE(each.m.try_lock());
      each.m.unlock();
    }
  }
}

TEST(primitives_stress, once) {
  struct task {
    pirn::once_flag flag;
    int done = 0;  // not atomic: the flag orders it
  };
  for (auto parts = in_all() / a_part; parts > 0; --parts) {
    std::vector<task> tasks(20'000);
    std::atomic<std::size_t> turn = 0;
    shake(
        [&](std::minstd_rand& random) {
          task& mine = tasks[turn++ / 6 % tasks.size()];
          const bool fails = random() % 4 == 0;
          const auto body = [&] {
            dawdle(random);
            if (fails) {
              throw std::runtime_error("fails");
            }
            ++mine.done;
          };
          try {
            if (random() % 2 == 0) {
              call_once(mine.flag, body);
            } else if (!mine.flag.call(body, some_time(random))) {
              return;
            }
            EXPECT_EQ(mine.done, 1);
          } catch (const std::runtime_error&) {
            EXPECT_TRUE(fails);
          }
        },
        a_part);
  }
}

TEST(primitives_stress, actor) {
  struct state {
    long done = 0;
    bool busy = false;
  };
  rig home(1);
  std::atomic<long> sent = 0;
  std::atomic<long> not_awaited = 0;
  long done = 0;
  {
    pirn::actor<state> a(home.rt, {});
    shake([&](std::minstd_rand& random) {
      const auto work = [&a = sent, pause = random() % 16](state& s) {
        EXPECT_FALSE(std::exchange(s.busy, true));
        if (pause == 0) {
          pirn::this_fiber::yield();
        } else if (pause == 1) {
          static_cast<void>(pirn::this_fiber::sleep_for(10us));
        }
        s.busy = false;
        ++s.done;
        if (pause == 2) {
          throw std::runtime_error("by chance");
        }
        return a.load();
      };
      try {
        switch (random() % 3) {
          case 0:
            ++sent;
            a.call(work);
            break;
          case 1: {
            ++sent;
            auto answer = a.ask(work);
            if (!answer.get(some_time(random))) {
              ++not_awaited;
            }
            break;
          }
          default:
            ++sent;
            EXPECT_TRUE(a.post([work](state& s) {
              try {
                work(s);
              } catch (const std::runtime_error&) {
                EXPECT_FALSE(s.busy);
              }
            }));
            dawdle(random);
        }
      } catch (const std::runtime_error&) {
        dawdle(random);
      }
    });
    done = a.call([](const state& s) { return s.done; });
  }
  EXPECT_EQ(done, sent);
  EXPECT_GT(done, 10);
  EXPECT_GT(not_awaited, 0);
}

TEST(primitives_stress, select) {
  // Values and tokens wander between three channels and an event; each value arrives once, or is still there.
  using number = std::unique_ptr<long>;
  pirn::channel<number> meeting;
  pirn::channel<number> narrow(1);
  pirn::channel<number> wide(4);
  pirn::event token(pirn::event_reset::automatic);
  token.set();
  int inside = 0;  // not atomic: the token orders it
  std::atomic<long> serial = 0;
  std::atomic<long> sent = 0;
  std::atomic<long> received = 0;
  std::atomic<long> sum = 0;
  std::atomic<long> not_done = 0;
  shake([&](std::minstd_rand& random) {
    const long mine = ++serial;
    auto value = std::make_unique<long>(mine);
    number got;
    const auto give = [&](pirn::channel<number>& to) { return send(to, static_cast<number&&>(value)); };
    // Never `never`: at the end the last parties have no other party left to meet.
    const auto soon = [&] { return std::min(some_time(random), clock::now() + 1ms); };
    const auto limit = [&] { return pirn::until(soon()); };
    pirn::selection s{};
    std::size_t sending = 0;
    std::size_t passing = 9;  // the case of the token
    switch (random() % 7) {
      case 0:
        s = select(give(meeting), receive(narrow, got), limit());
        break;
      case 1:
        s = select(receive(wide, got), give(narrow), receive(meeting, got), limit());
        sending = 1;
        break;
      case 2:
        s = select(give(meeting), receive(meeting, got), limit());
        break;
      case 3:
        s = select(pirn::wait(token), give(wide), receive(meeting, got), limit());
        sending = 1;
        passing = 0;
        break;
      case 4:
        s = try_select(receive(meeting, got), receive(wide, got), give(narrow), pirn::wait(token));
        sending = 2;
        passing = 3;
        break;
      case 5:
        s = {0, wide.send(static_cast<number&&>(value), soon())};
        break;
      default:
        if (auto direct = meeting.receive(soon())) {
          got = *std::move(direct);
        }
        sending = 9;
    }
    const bool has_sent = s.index == sending && s.outcome.has_value();
    EXPECT_EQ(value == nullptr, has_sent);
    if (has_sent) {
      ++sent;
      sum += mine;
    }
    if (got != nullptr) {
      EXPECT_FALSE(has_sent);
      ++received;
      sum -= *got;
    }
    if (s.index == passing) {
      EXPECT_EQ(++inside, 1);
      dawdle(random);
      --inside;
      token.set();
    }
    not_done += !has_sent && got == nullptr && s.index != passing ? 1 : 0;
  });
  EXPECT_TRUE(token.is_set());
  EXPECT_FALSE(meeting.try_receive().has_value());
  for (auto* const c : {&narrow, &wide}) {
    while (auto rest = c->try_receive()) {
      ++received;
      sum -= **rest;
    }
  }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sum, 0);
  EXPECT_GT(sent, 10);
  EXPECT_GT(not_done, 0);
}

TEST(primitives_stress, barrier) {
  rig r(3);
  const auto end = clock::now() + in_all();
  long phases = 0;
  for (unsigned round = 1; clock::now() < end; ++round) {
    constexpr int parties = 7;
    int completed = 0;  // not atomic: the barrier orders it
    const auto completion = [&]() noexcept { ++completed; };
    pirn::barrier meeting(parties, completion);
    const auto body = [&](unsigned who) {
      std::minstd_rand random(round * parties + who);
      random.discard(2);
      for (int phase = 0;; ++phase) {
        EXPECT_EQ(completed, phase);  // the phase cannot end without this party
        dawdle(random);
        switch (random() % 16) {
          case 0:
            meeting.arrive_and_drop();
            return;
          case 1: {
            const auto token = meeting.arrive();
            dawdle(random);
            if (random() % 2 == 0 || !meeting.wait(token, some_time(random))) {
              meeting.leave(token);
              return;
            }
            break;
          }
          default:
            if (!meeting.arrive_and_wait(random() % 8 == 0 ? some_time(random) : pirn::platform::never)) {
              return;
            }
        }
      }
    };
    std::vector<pirn::fiber> fibers;
    for (unsigned who = 0; who < parties - 1; ++who) {
      fibers.push_back(r.rt.spawn([&, who] { body(who); }, {.worker = static_cast<int>(who % 3)}));
    }
    std::jthread thread([&] { body(parties - 1); });
    fibers[round % fibers.size()].request_stop();
    join_all(fibers);
    thread.join();
    phases += completed;
  }
  EXPECT_GT(phases, 10);
}

}  // namespace
