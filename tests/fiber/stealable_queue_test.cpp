// The queue that thieves take from, and the workers that are woken for it, both without a runtime.
#include "pirn/fiber/detail/stealable_queue.hpp"

#include <array>
#include <deque>
#include <numeric>
#include <random>

#include "fiber/support.hpp"
#include "pirn/fiber/detail/idle_workers.hpp"

namespace {

using namespace pirn_test;
using pirn::detail::fiber_control;
using pirn::detail::idle_workers;
using pirn::detail::run_node;
using pirn::detail::stealable_queue;

alignas(64) std::array<std::byte, 128> places;
pirn::detail::worker* const owner = reinterpret_cast<pirn::detail::worker*>(places.data());
pirn::detail::worker* const thief = reinterpret_cast<pirn::detail::worker*>(places.data() + 64);

/// Fibers that are stealable, numbered from 1.
std::deque<fiber_control> make_fibers(std::uint64_t count) {
  std::deque<fiber_control> all;
  for (std::uint64_t i = 1; i <= count; ++i) {
    all.emplace_back(i).assign_worker(owner, pirn::detail::mobility::stealable_until_started);
  }
  return all;
}

std::uint64_t number_of(const run_node* node) {
  return node != nullptr ? static_cast<const fiber_control*>(node)->number() : 0;
}

/// The others stay in their order, from wherever two are taken out.
void two_are_taken_out(std::size_t first, std::size_t second) {
  std::deque<fiber_control> all = make_fibers(5);
  stealable_queue queue;
  for (std::size_t i = 0; i < 4; ++i) {
    queue.push(&all[i]);
  }
  for (const std::size_t gone : {first, second}) {
    EXPECT_TRUE(queue.take_out(&all[gone], [] { return true; }));
  }
  EXPECT_EQ(queue.size(), 2u);
  queue.push(&all[4]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != first && i != second) {
      EXPECT_EQ(queue.take(), &all[i]);
    }
  }
  EXPECT_EQ(queue.take(), nullptr);
}

TEST(stealable_queue, keeps_the_order_around_those_that_are_taken_out) {
  for (std::size_t first = 0; first < 4; ++first) {
    for (std::size_t second = 0; second < 4; ++second) {
      if (first != second) {
        two_are_taken_out(first, second);
      }
    }
  }
}

TEST(stealable_queue, owner_and_thief_take_the_oldest) {
  std::deque<fiber_control> all = make_fibers(10);
  stealable_queue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.take(), nullptr);
  EXPECT_EQ(queue.steal(thief), nullptr);
  for (std::size_t i = 0; i < 7; ++i) {
    queue.push(&all[i]);
  }
  for (std::size_t i = 7; i < 10; ++i) {
    queue.push_from_outside(&all[i]);
  }
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(number_of(queue.take()), 1u);
  std::uint64_t expected = 2;
  for (const run_node* node = queue.steal(thief); node != nullptr; node = node->next) {
    EXPECT_EQ(number_of(node), expected++);
    EXPECT_EQ(static_cast<const fiber_control*>(node)->home(), thief);
  }
  EXPECT_EQ(expected, 7u);  // half of nine, rounded up
  for (; expected <= 10; ++expected) {
    const run_node* const node = queue.take();
    EXPECT_EQ(number_of(node), expected);
    EXPECT_EQ(static_cast<const fiber_control*>(node)->home(), owner);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(stealable_queue, a_thief_takes_so_many_at_most) {
  std::deque<fiber_control> all = make_fibers(1000);
  stealable_queue queue;
  for (fiber_control& each : all) {
    queue.push_from_outside(&each);
  }
  std::size_t stolen = 0;
  for (const run_node* node = queue.steal(thief); node != nullptr; node = node->next) {
    ++stolen;
  }
  EXPECT_EQ(stolen, stealable_queue::max_stolen);
  while (queue.take() != nullptr) {
    ++stolen;
  }
  EXPECT_EQ(stolen, 1000u);
}

/// The part of a worker that matters here.
struct place {
  stealable_queue stealable;
};

TEST(stealable_queue, who_holds_it_keeps_thieves_out) {
  std::deque<fiber_control> all = make_fibers(4);
  place mine, other;
  stealable_queue& queue = mine.stealable;
  queue.push(&all[0]);
  queue.push(&all[1]);
  queue.push_lifo_slot(&all[2]);
  const auto adopt = [&] {
    return other.stealable.adopt_from(queue, [&] { all[3].move_to(thief); }) && all[3].home() == thief;
  };
  {
    const stealable_queue::hold held(queue, std::array{&mine, &other});
    EXPECT_TRUE(held.alone());
    EXPECT_FALSE(queue.worth_a_look());
    EXPECT_EQ(queue.steal(thief), nullptr);
    EXPECT_EQ(queue.steal_lifo_slot(thief, queue.lifo_version()), nullptr);
    EXPECT_FALSE(adopt());
    EXPECT_EQ(all[3].home(), owner);
  }
  EXPECT_TRUE(queue.worth_a_look());
  EXPECT_EQ(number_of(queue.steal(thief)), 1u);
  EXPECT_EQ(number_of(queue.steal_lifo_slot(thief, queue.lifo_version())), 3u);
  EXPECT_TRUE(adopt());
}

TEST(stealable_queue, the_last_one_woken_is_in_the_lifo_slot) {
  std::deque<fiber_control> all = make_fibers(4);
  stealable_queue queue;
  EXPECT_EQ(queue.lifo_version(), 0u);
  EXPECT_EQ(queue.pop_lifo_slot(), nullptr);
  queue.push_lifo_slot(&all[0]);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.worth_a_look());
  EXPECT_EQ(queue.take(), nullptr);
  const std::uint32_t first = queue.lifo_version();
  queue.push_lifo_slot(&all[1]);  // this puts the first one behind the others
  queue.push(&all[2]);
  const std::uint32_t second = queue.lifo_version();
  EXPECT_NE(second, 0u);
  EXPECT_NE(second, first);
  EXPECT_EQ(queue.lifo_pushes(), 2u);
  EXPECT_EQ(queue.steal_lifo_slot(thief, first), nullptr);  // a thief asks for the fiber that it has seen
  EXPECT_EQ(queue.lifo_version(), second);
  const run_node* const stolen = queue.steal_lifo_slot(thief, second);
  EXPECT_EQ(number_of(stolen), 2u);
  EXPECT_EQ(static_cast<const fiber_control*>(stolen)->home(), thief);
  EXPECT_EQ(queue.lifo_version(), 0u);
  EXPECT_EQ(queue.pop_lifo_slot(), nullptr);
  queue.push_lifo_slot(&all[3]);
  EXPECT_EQ(number_of(queue.pop_lifo_slot()), 4u);
  EXPECT_EQ(number_of(queue.take()), 1u);
  EXPECT_EQ(number_of(queue.take()), 3u);
  EXPECT_EQ(queue.taken(), 2u);
  EXPECT_TRUE(queue.empty());
}

TEST(stealable_queue, each_fiber_goes_to_one) {
  constexpr int thieves = 2;
  const auto count = static_cast<std::uint64_t>(scaled(200'000));
  std::deque<fiber_control> all = make_fibers(count);
  stealable_queue queue;
  std::vector<std::atomic<int>> taken(count + 1);
  std::atomic<std::uint64_t> sum = 0;
  std::atomic<std::uint64_t> steals = 0;
  const auto take = [&](const run_node* node) {
    ++taken[number_of(node)];
    ++sum;
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < thieves; ++t) {
      threads.emplace_back([&] {
        while (sum < count) {
          if (!queue.worth_a_look()) {
            std::this_thread::yield();
            continue;
          }
          for (run_node* node = queue.steal(thief); node != nullptr; ++steals) {
            run_node* const next = node->next;
            take(node);
            node = next;
          }
        }
      });
    }
    threads.emplace_back([&] {  // a third of them come from outside
      for (std::uint64_t i = 0; i < count; i += 3) {
        queue.push_from_outside(&all[i]);
      }
    });
    std::minstd_rand random(5);  // NOLINT(bugprone-random-generator-seed): the same each time
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t steals_before = steals;
      if (i % 3 != 0) {
        queue.push(&all[i]);
      }
      if (i % 3000 == 1) {  // so that thieves get their share however few processors there are
        EXPECT_TRUE(eventually([&] { return steals > steals_before; })) << i;
      }
      if (random() % 4 == 0) {
        if (const run_node* const node = queue.take()) {
          take(node);
        }
      }
    }
    while (sum < count) {
      if (const run_node* const node = queue.take()) {
        take(node);
      }
    }
  }
  for (std::uint64_t i = 1; i <= count; ++i) {
    ASSERT_EQ(taken[i], 1) << i;
  }
}

TEST(stealable_queue, owner_and_thief_meet_at_the_last_one) {
  const int rounds = scaled(300'000);
  std::deque<fiber_control> one = make_fibers(1);
  stealable_queue queue;
  std::atomic<int> taken = 0;
  std::atomic<int> twice = 0;
  std::atomic<int> offered = 0;
  const auto take = [&] { twice += ++taken > offered ? 1 : 0; };
  const std::jthread other([&] {
    while (taken < rounds) {
      if (queue.worth_a_look() && queue.steal(thief) != nullptr) {
        take();
      }
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ++offered;
    one.front().next = &one.front();  // as a ring leaves it
    queue.push(&one.front());
    while (taken <= i) {
      if (queue.take() != nullptr) {
        take();
      }
    }
  }
  EXPECT_EQ(twice, 0);
}

class counting_engine final : public pirn::engine {
 public:
  explicit counting_engine(int& count) : count_(count) {}
  std::size_t poll(pirn::platform::time_point /*deadline*/) noexcept override { return 0; }
  void interrupt_poll() noexcept override { ++count_; }

 private:
  bool begin(pirn::readiness& /*handle*/, int /*descriptor*/, std::error_code& /*error*/) noexcept override {
    return false;
  }
  bool begin_writes(pirn::readiness& /*handle*/, int /*descriptor*/, std::error_code& /*error*/) noexcept override {
    return false;
  }
  void end(pirn::readiness& /*handle*/, int /*descriptor*/) noexcept override {}

  int& count_;
};

TEST(idle_workers, one_is_woken_at_a_time) {
  constexpr unsigned workers = 70;  // more than a word has bits
  std::array<int, workers> notified{};
  idle_workers idle(workers);
  for (unsigned i = 0; i < workers; ++i) {
    idle.register_worker(i, std::make_shared<counting_engine>(notified[i]));
  }
  EXPECT_FALSE(idle.any());
  EXPECT_FALSE(idle.recruit_searcher());  // all are awake
  for (const unsigned sleeper : {3u, 68u, 69u}) {
    idle.transition_to_parked(sleeper, false);
  }
  EXPECT_TRUE(idle.recruit_searcher());
  EXPECT_EQ(notified[3], 1);
  EXPECT_FALSE(idle.recruit_searcher());  // that worker will find the work
  EXPECT_TRUE(idle.transition_from_parked(3));
  EXPECT_TRUE(idle.end_search());
  EXPECT_TRUE(idle.recruit_searcher());
  EXPECT_EQ(notified[68], 1);
  EXPECT_TRUE(idle.transition_from_parked(68));
  idle.transition_to_parked(68, true);            // it has found nothing
  EXPECT_FALSE(idle.transition_from_parked(69));  // another event wakes it
  EXPECT_TRUE(idle.recruit_searcher());
  EXPECT_EQ(notified[68], 2);
  EXPECT_EQ(notified[69], 0);
  EXPECT_EQ(std::accumulate(notified.begin(), notified.end(), 0), 3);
}

TEST(idle_workers, not_more_than_half_search) {
  idle_workers idle(4);
  EXPECT_TRUE(idle.try_search());
  EXPECT_TRUE(idle.try_search());
  EXPECT_FALSE(idle.try_search());
  EXPECT_FALSE(idle.end_search());
  EXPECT_TRUE(idle.end_search());
}

}  // namespace
