// The queues between workers alone, without a runtime: every item arrives exactly once, in the promised order, with all
// that was written before it was handed over.
#include <pirn/fiber/detail/fork_deque.hpp>
#include <pirn/fiber/detail/idle_workers.hpp>
#include <pirn/fiber/detail/low_lock_queue.hpp>
#include <pirn/fiber/detail/stealable_queue.hpp>

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"
#include "sim/fibers.hpp"
#include "sim/together.hpp"

using namespace pirn;
using pirn_test::expect_passes;

namespace {

using detail::fiber_control;
using detail::fork_deque;
using detail::fork_point;
using detail::run_node;

/// These programs are so small that every schedule can be tried.
const sim::options whole{.preemptions = sim::no_bound};
/// Without membarrier, as under an emulator: then pairs of fences are something else.
const sim::options symmetric{.stale_reads = true, .symmetric_fences = true};

/// Memory in place of the workers, of which only the addresses matter.
alignas(64) std::array<std::byte, 3 * 64> places;
detail::worker* worker(std::size_t number) { return reinterpret_cast<detail::worker*>(places.data() + 64 * number); }

/// A fiber that never runs, with a value that its maker writes and one that its taker changes.
struct item : fiber_control {
  explicit item(std::uint64_t number) : fiber_control(number) {
    assign_worker(worker(0), detail::mobility::stealable_until_started);
  }
  /// The last operation of the sender on the item.
  run_node* ready() {
    written = 1;
    return this;
  }
  sim::var<int> written = 0;
  sim::var<int> taken = 0;
  unsigned by = 0;
};
item* as_item(run_node* node) { return static_cast<item*>(static_cast<fiber_control*>(node)); }

/// Takes a whole chain. Items with numbers below 10 come in the order of their sender.
void take(run_node* chain, unsigned who) {
  std::uint64_t newest = 0;
  while (chain != nullptr) {
    item* const each = as_item(chain);
    chain = chain->next;
    if (each->number() < 10) {
      sim::check(each->number() > newest, "the oldest comes first");
      newest = each->number();
    }
    each->taken += each->written;
    each->by = who;
  }
}

// ---- the inbox ----------------------------------------------------------------------------------------------------

void inbox_of_two_senders() {
  detail::inbox box;
  std::array<item, 4> items{item(1), item(2), item(11), item(12)};
  const auto send = [&](std::size_t from) {
    static_cast<void>(box.push(items[from].ready()));
    static_cast<void>(box.push(items[from + 1].ready()));
  };
  sim::thread one([&] { send(0); });
  sim::thread two([&] { send(2); });
  std::uint64_t newest[2] = {0, 0};
  const auto look = [&] {
    for (run_node* node = box.take_all(); node != nullptr; node = node->next) {
      std::uint64_t& before = newest[as_item(node)->number() / 10];
      sim::check(as_item(node)->number() > before, "those of one sender come in its order");
      before = as_item(node)->number();
      as_item(node)->taken += as_item(node)->written;
    }
  };
  look();
  look();
  one.join();
  two.join();
  look();
  for (const item& each : items) {
    sim::check(each.taken == 1, "each comes once");
  }
}

TEST(inbox, takes_each_once_and_in_order) { expect_passes(inbox_of_two_senders, whole); }
TEST(inbox, hands_over_what_was_written) { expect_passes(inbox_of_two_senders, {.stale_reads = true}); }

/// A chain of tasks that never runs.
struct chain_item : detail::ready_chain {
  sim::var<int> written = 0;
  sim::var<int> taken = 0;
};

/// Fibers and chains of two senders come through one inbox.
void inbox_of_fibers_and_chains() {
  detail::inbox box;
  std::array<item, 2> items{item(1), item(2)};
  std::array<chain_item, 2> chains;
  sim::thread one([&] {
    static_cast<void>(box.push(items[0].ready()));
    chains[0].written = 1;
    static_cast<void>(box.push(&chains[0]));
  });
  sim::thread two([&] {
    chains[1].written = 1;
    static_cast<void>(box.push(&chains[1]));
    static_cast<void>(box.push(items[1].ready()));
  });
  const auto look = [&] {
    box.take_each(
        [&](run_node* node) {
          sim::check(node != &items[1] || chains[1].taken == 1, "those of one sender come in its order");
          as_item(node)->taken += as_item(node)->written;
        },
        [&](detail::ready_chain* each) {
          sim::check(each != &chains[0] || items[0].taken == 1, "those of one sender come in its order");
          auto* const chain = static_cast<chain_item*>(each);
          chain->taken += chain->written;
        });
  };
  look();
  one.join();
  two.join();
  look();
  sim::check(items[0].taken == 1 && items[1].taken == 1 && chains[0].taken == 1 && chains[1].taken == 1,
             "each comes once");
}

TEST(inbox, takes_fibers_and_chains_once_and_in_order) { expect_passes(inbox_of_fibers_and_chains, whole); }
TEST(inbox, hands_over_chains_where_words_are_old) { expect_passes(inbox_of_fibers_and_chains, {.stale_reads = true}); }

/// As in a worker and its engine: a sleeper is notified once, and never sleeps while there is an item.
void inbox_of_a_sleeper() {
  detail::inbox box;
  const std::unique_ptr<engine> io = make_epoll_engine();
  std::array<item, 2> items{item(1), item(2)};
  sim::atomic<int> told{0};
  const auto send = [&](std::size_t which) {
    if (box.push(items[which].ready())) {
      told.fetch_add(1, std::memory_order_relaxed);
      io->interrupt_poll();
    }
  };
  sim::thread one([&] { send(0); });
  sim::thread two([&] { send(1); });
  int sleeps = 0;
  for (int taken = 0; taken < 2;) {
    for (run_node* node = box.take_all(); node != nullptr; node = node->next) {
      as_item(node)->taken += as_item(node)->written;
      ++taken;
    }
    if (taken < 2 && box.set_parked_mark()) {
      ++sleeps;
      io->poll(platform::never);
      box.clear_parked_mark();
    }
  }
  one.join();
  two.join();
  sim::check(told.load() <= sleeps, "a sleep is ended by one");
}

TEST(inbox, never_lets_its_owner_sleep_on_something) { expect_passes(inbox_of_a_sleeper, whole); }
TEST(inbox, never_lets_its_owner_sleep_where_words_are_old) {
  expect_passes(inbox_of_a_sleeper, {.stale_reads = true});
}

// ---- the low-lock queue -------------------------------------------------------------------------------------------

/// A node that its taker frees, as a waiter's frame is gone once it has been woken.
struct queued : detail::low_lock_node {
  explicit queued(int which) : number(which) { written = which; }
  sim::var<int> written = 0;
  const int number;
};

/// The consumer's part: those of one producer, whose numbers have the same tens, come in its order.
class checked_consumer {
 public:
  void take(detail::low_lock_queue& from) { take(from, this); }
  void take(detail::low_lock_queue& from, const void* who) {
    if (detail::low_lock_node* const node = from.try_pop(who)) {
      const std::unique_ptr<queued> taken(static_cast<queued*>(node));
      int& before = newest_[taken->number / 10];
      sim::check(taken->number > before, "those of one producer come in its order");
      sim::check(taken->written == taken->number, "what was written before is there");
      before = taken->number;
      ++count;
    }
  }
  int count = 0;

 private:
  std::array<int, 3> newest_{};
};

/// Each producer queues its nodes; the consumers try so often, and the rest is taken in the end.
void low_lock(std::array<int, 2> nodes, std::array<int, 2> tries) {
  detail::low_lock_queue queue;
  std::array<checked_consumer, 3> consumers;
  std::vector<sim::thread> threads;
  for (int producer = 0; producer < 2; ++producer) {
    threads.emplace_back([&, producer] {
      for (int i = 1; i <= nodes[static_cast<std::size_t>(producer)]; ++i) {
        queue.push(*new queued(10 * producer + i), &threads + producer);
      }
    });
  }
  if (tries[1] != 0) {
    threads.emplace_back([&] {
      for (int i = 0; i < tries[1]; ++i) {
        consumers[1].take(queue);
      }
    });
  }
  for (int i = 0; i < tries[0]; ++i) {
    consumers[0].take(queue);
  }
  for (sim::thread& each : threads) {
    each.join();
  }
  while (!queue.empty()) {
    consumers[2].take(queue);
  }
  sim::check(consumers[0].count + consumers[1].count + consumers[2].count == nodes[0] + nodes[1], "each comes once");
}

TEST(low_lock_queue, takes_each_once_and_in_order) {
  expect_passes([] { low_lock({1, 0}, {2, 0}); }, whole);
  expect_passes([] { low_lock({1, 1}, {1, 0}); }, whole);
}
TEST(low_lock_queue, hands_over_what_was_written) {
  expect_passes([] { low_lock({2, 1}, {2, 0}); }, {.stale_reads = true});
}
TEST(low_lock_queue, of_two_consumers) {
  expect_passes([] { low_lock({2, 1}, {2, 2}); }, {.preemptions = 3});
}
/// Two nodes are queued, and one consumer takes one: the other consumer finds the second.
void low_lock_leaves_none() {
  detail::low_lock_queue queue;
  std::array<checked_consumer, 3> consumers;
  pirn_test::gate both_are_there;
  sim::thread producer([&] {
    queue.push(*new queued(1), nullptr);
    queue.push(*new queued(2), nullptr);
    both_are_there.open();
  });
  sim::thread first([&] { consumers[0].take(queue, nullptr); });  // without a pause, in which the second one would come
  both_are_there.pass();
  consumers[1].take(queue);
  sim::check(consumers[1].count == 1, "what was queued is not hidden by a consumer");
  producer.join();
  first.join();
  while (!queue.empty()) {
    consumers[2].take(queue);
  }
  sim::check(consumers[0].count + consumers[1].count + consumers[2].count == 2, "each comes once");
}
TEST(low_lock_queue, hides_nothing_while_the_last_one_is_taken) { expect_passes(low_lock_leaves_none); }
TEST(low_lock_queue, of_two_consumers_where_words_are_old) {
  expect_passes([] { low_lock({1, 1}, {1, 1}); }, {.stale_reads = true});
}

// ---- the stealable queue ------------------------------------------------------------------------------------------

void check_all_taken(detail::stealable_queue& queue, std::span<item> items) {
  while (run_node* const left = queue.take()) {
    left->next = nullptr;
    take(left, 0);
  }
  for (const item& each : items) {
    sim::check(each.taken == 1, "each is taken once");
    sim::check(each.home() == worker(each.by), "and belongs to who has it");
  }
}

/// The owner pushes and takes; thieves come at any time.
void owner_and_two_thieves() {
  detail::stealable_queue queue;
  std::array<item, 3> items{item(11), item(12), item(13)};
  queue.push(items[0].ready());
  const auto steal = [&](unsigned who) { take(queue.steal(worker(who)), who); };
  sim::thread one([&] { steal(1); });
  sim::thread two([&] { steal(2); });
  for (item* const next : {&items[1], &items[2]}) {
    queue.push(next->ready());
    if (run_node* const mine = queue.take()) {
      mine->next = nullptr;
      take(mine, 0);
    }
  }
  one.join();
  two.join();
  check_all_taken(queue, items);
}

TEST(stealable_queue, owner_and_two_thieves_take_each_once) { expect_passes(owner_and_two_thieves, whole); }

void owner_and_a_thief() {
  detail::stealable_queue queue;
  std::array<item, 2> items{item(1), item(2)};
  sim::thread thief([&] { take(queue.steal(worker(1)), 1); });
  queue.push(items[0].ready());
  queue.push(items[1].ready());
  if (run_node* const mine = queue.take()) {
    mine->next = nullptr;
    take(mine, 0);
  }
  thief.join();
  check_all_taken(queue, items);
}

TEST(stealable_queue, fences_are_enough) { expect_passes(owner_and_a_thief, {.preemptions = 3, .stale_reads = true}); }

TEST(stealable_queue, symmetric_fences_are_enough) { expect_passes(owner_and_a_thief, symmetric); }

/// The next worker inside takes in the items that other threads push.
void pushes_from_outside() {
  detail::stealable_queue queue;
  std::array<item, 3> items{item(11), item(1), item(2)};
  sim::thread outside([&] {
    queue.push_from_outside(items[1].ready());
    queue.push_from_outside(items[2].ready());
  });
  sim::thread thief([&] { take(queue.steal(worker(1)), 1); });
  queue.push(items[0].ready());
  if (run_node* const mine = queue.take()) {
    mine->next = nullptr;
    take(mine, 0);
  }
  outside.join();
  thief.join();
  check_all_taken(queue, items);
}

TEST(stealable_queue, takes_in_what_others_push) { expect_passes(pushes_from_outside, whole); }

/// The owner takes items out from everywhere in the list, unless a thief has them.
void owner_takes_out() {
  detail::stealable_queue queue;
  std::array<item, 4> items{item(11), item(12), item(13), item(14)};
  const auto take_out = [&](item& which) {
    if (queue.take_out(&which, [&] { return which.home() == worker(0); })) {
      which.next = nullptr;
      take(&which, 0);
    }
  };
  for (std::size_t i = 0; i < 3; ++i) {
    queue.push(items[i].ready());
  }
  sim::thread thief([&] { take(queue.steal(worker(1)), 1); });
  take_out(items[1]);
  queue.push(items[3].ready());
  take_out(items[3]);
  thief.join();
  check_all_taken(queue, items);
}

TEST(stealable_queue, gives_its_owner_any_that_no_thief_has) { expect_passes(owner_takes_out, whole); }
TEST(stealable_queue, gives_its_owner_any_where_words_are_old) {
  expect_passes(owner_takes_out, {.preemptions = 3, .stale_reads = true});
}

/// Each item in the LIFO slot goes to its owner, to the thief that has seen it, or behind the others.
void lifo_slot_is_filled() {
  detail::stealable_queue queue;
  std::array<item, 2> items{item(1), item(2)};
  queue.push_lifo_slot(items[0].ready());
  sim::thread thief([&] {
    for (int looks = 0; looks < 2; ++looks) {
      if (const std::uint32_t version = queue.lifo_version(); version != 0) {
        take(queue.steal_lifo_slot(worker(1), version), 1);
      }
    }
  });
  const auto take_mine = [&] {
    if (run_node* const mine = queue.pop_lifo_slot()) {
      mine->next = nullptr;
      take(mine, 0);
    }
  };
  queue.push_lifo_slot(items[1].ready());
  take_mine();
  thief.join();
  take_mine();
  check_all_taken(queue, items);
}

TEST(stealable_queue, has_a_lifo_slot_for_its_owner_or_one_thief) { expect_passes(lifo_slot_is_filled, whole); }
TEST(stealable_queue, has_a_lifo_slot_where_words_are_old) {
  expect_passes(lifo_slot_is_filled, {.preemptions = 3, .stale_reads = true});
}

/// The part of a worker that matters here.
struct place {
  detail::stealable_queue stealable;
};

/// A worker that holds the suspended fibers of its thread has them alone, even if another worker wakes one meanwhile.
void look_while_one_is_adopted() {
  place mine, other;
  item one(1);
  sim::thread waker([&] {
    if (other.stealable.adopt_from(mine.stealable, [&] { one.move_to(worker(1)); })) {
      one.taken = 1;  // it runs there
    }
  });
  {
    const detail::stealable_queue::hold held(mine.stealable, std::array{&mine, &other});
    sim::check(held.alone(), "a waker leaves soon");
    if (one.home() == worker(0)) {
      sim::check(one.taken == 0, "it is suspended");
    }
  }
  waker.join();
}

TEST(stealable_queue, is_held_against_who_adopts) { expect_passes(look_while_one_is_adopted, whole); }
TEST(stealable_queue, is_held_where_words_are_old) { expect_passes(look_while_one_is_adopted, {.stale_reads = true}); }
TEST(stealable_queue, is_held_by_symmetric_fences) { expect_passes(look_while_one_is_adopted, symmetric); }

// ---- the open continuations of fork2 ------------------------------------------------------------------------------

struct open_fork {
  explicit open_fork() : point(nullptr, {}) {}
  fork_point point;
  sim::var<int> taken = 0;
};

void steal_one(fork_deque& open, std::array<open_fork, 2>& forks, std::vector<fork_point*>& stolen) {
  static_cast<void>(open.steal([&](fork_point* point) noexcept {
    for (open_fork& each : forks) {
      if (&each.point == point) {
        each.taken += 1;
      }
    }
    stolen.push_back(point);
  }));
}

/// Two nested calls. Thieves take the outermost.
void forks_and_thieves(unsigned thieves) {
  fork_deque open;
  std::array<open_fork, 2> forks;
  std::vector<fork_point*> stolen;
  open.open();
  std::vector<sim::thread> all;
  for (unsigned i = 0; i < thieves; ++i) {
    all.emplace_back([&] { steal_one(open, forks, stolen); });
  }
  fork_deque::slot* const outer = open.next();
  open.push(outer, &forks[0].point);
  fork_deque::slot* const inner = open.next();
  open.push(inner, &forks[1].point);
  const bool inner_kept = open.pop(inner);
  if (inner_kept) {
    forks[1].taken += 1;
  }
  // The owner knows that a lost inner call implies the loss of all calls around it.
  const bool outer_kept = open.pop(outer);
  if (outer_kept) {
    forks[0].taken += 1;
  }
  for (sim::thread& each : all) {
    each.join();
  }
  sim::check(inner_kept || !outer_kept, "the outermost goes first");
  sim::check(stolen.size() + inner_kept + outer_kept == 2, "each is either kept or stolen");
  sim::check(stolen.empty() || stolen[0] == &forks[0].point, "the outermost goes first");
  sim::check(forks[0].taken == 1 && forks[1].taken == 1, "each is taken once");
  open.close();
}

TEST(fork_deque, owner_and_thief_take_each_once) {
  expect_passes([] { forks_and_thieves(1); }, whole);
}
TEST(fork_deque, owner_and_two_thieves_take_each_once) {
  expect_passes([] { forks_and_thieves(2); }, whole);
}
TEST(fork_deque, fences_are_enough) {
  expect_passes([] { forks_and_thieves(1); }, {.stale_reads = true});
}
TEST(fork_deque, symmetric_fences_are_enough) {
  expect_passes([] { forks_and_thieves(1); }, symmetric);
}

// ---- sleepers and wake-ups ----------------------------------------------------------------------------------------

/// One worker looks for work, announces that it sleeps, looks again and sleeps. Others queue something and wake it.
void work_and_a_sleeper() {
  detail::idle_workers idle(2);
  std::shared_ptr<engine> io = make_epoll_engine();
  idle.register_worker(0, io);
  idle.register_worker(1, make_epoll_engine());
  sim::atomic<int> queued{0};
  const auto queue_one = [&] {
    queued.fetch_add(1, std::memory_order_relaxed);
    static_cast<void>(idle.recruit_searcher());
  };
  sim::thread one(queue_one);
  sim::thread two(queue_one);
  int done = 0;
  bool searching = false;
  while (done < 2) {
    if (queued.load(std::memory_order_relaxed) > done) {
      ++done;
      if (std::exchange(searching, false)) {
        static_cast<void>(idle.end_search());
      }
      continue;
    }
    idle.transition_to_parked(0, searching);
    platform::heavy_fence();
    if (queued.load(std::memory_order_relaxed) == done) {
      io->poll(platform::never);
    }
    searching = idle.transition_from_parked(0);
  }
  one.join();
  two.join();
}

TEST(idle_workers, never_sleep_on_work) { expect_passes(work_and_a_sleeper, whole); }
TEST(idle_workers, never_sleep_on_work_where_words_are_old) {
  expect_passes(work_and_a_sleeper, {.stale_reads = true});
}
TEST(idle_workers, never_sleep_on_work_with_symmetric_fences) { expect_passes(work_and_a_sleeper, symmetric); }

// ---- the word behind every wait -----------------------------------------------------------------------------------

/// Two waits of one agent. In each a waker and a stop compete to end it, and the waker of the first comes late.
void claims_of_two_waits() {
  detail::agent waiting(detail::agent_kind::thread);
  sim::atomic<int> ended{0};
  std::uint64_t first = 0;
  sim::check(waiting.begin(detail::wait_kind::timed, first), "nobody has stopped it");
  const auto end = [&](wake_reason why) {
    if (waiting.claim(first, why)) {
      ended.fetch_add(1);
    }
  };
  sim::thread one([&] { end(wake_reason::notified); });
  sim::thread two([&] { end(wake_reason::timed_out); });
  while (ended.load() == 0) {
    platform::yield_thread();
  }
  std::uint64_t second = 0;
  sim::check(waiting.begin(detail::wait_kind::timed, second), "nobody has stopped it");
  one.join();
  two.join();
  sim::check(ended.load() == 1, "one has ended the first wait");
  sim::check(waiting.present_wait() == second, "and nobody the second");
}

TEST(agent, ends_a_wait_once_and_no_later_one) { expect_passes(claims_of_two_waits, whole); }

/// A stop that comes while a wait begins ends that wait, whichever of the two was first.
void a_stop_at_the_beginning_of_a_wait() {
  detail::agent waiting(detail::agent_kind::thread);
  bool stopper_ended = false;
  sim::thread stopper([&] { stopper_ended = waiting.request_stop(wake_reason::stopped); });
  std::uint64_t epoch = 0;
  const bool begun = waiting.begin(detail::wait_kind::stoppable, epoch);
  const bool ended_itself = begun && waiting.open_to_stop(epoch);
  stopper.join();
  sim::check((begun ? 0 : 1) + (ended_itself ? 1 : 0) + (stopper_ended ? 1 : 0) == 1, "one of them sees the stop");
  sim::check(!begun || waiting.reason() == wake_reason::stopped, "and says so");
}

TEST(agent, loses_no_stop) { expect_passes(a_stop_at_the_beginning_of_a_wait, whole); }
TEST(agent, loses_no_stop_where_words_are_old) {
  expect_passes(a_stop_at_the_beginning_of_a_wait, {.stale_reads = true});
}

}  // namespace
