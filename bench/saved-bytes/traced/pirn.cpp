// One fiber that suspends in each way, in turn, for saved_bytes.py. Another fiber lets it continue.
#include <array>
#include <chrono>
#include <mutex>
#include <optional>

#include "../../tell_of_fiber.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/stack/this_stack.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/future.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/select.hpp"
#include "pirn/sync/semaphore.hpp"
#include "traced.hpp"

namespace {

using namespace std::chrono_literals;

struct objects {
  pirn::wait_queue queue;
  pirn::mutex mutex;
  pirn::binary_semaphore semaphore{0};
  pirn::event event;
  pirn::latch latch{1};
  pirn::mutex guard;
  pirn::condition_variable condition;
  bool met = false;
  pirn::channel<int> full{1};
  pirn::channel<int> empty{1};
  pirn::channel<int> other{1};
  pirn::promise<int> promise;
  pirn::future<int> future = promise.get_future();
  pirn::event end;
  pirn::fiber child;
};

std::optional<objects> all;

struct point {
  const char* name;
  void (*suspend)();
  void (*resume)();
};

const auto points = std::to_array<point>({
    {"yield", [] { pirn::this_fiber::yield(); }, [] {}},
    {"wait_queue",
     [] {
       all->queue.lock();
       bench::check(all->queue.wait({}) == pirn::wake_reason::notified, "it is notified");
     },
     [] { all->queue.notify_one(); }},
    {"mutex", [] { all->mutex.lock(); }, [] { all->mutex.unlock(); }},
    {"semaphore", [] { bench::check(all->semaphore.acquire().has_value(), "a permit comes"); },
     [] { all->semaphore.release(); }},
    {"event", [] { bench::check(all->event.wait().has_value(), "it is set"); }, [] { all->event.set(); }},
    {"latch", [] { bench::check(all->latch.wait().has_value(), "it opens"); }, [] { all->latch.count_down(); }},
    {"condition_variable",
     [] {
       std::unique_lock lock(all->guard);
       while (!all->met) {
         bench::check(all->condition.wait(lock).has_value(), "it is notified");
       }
     },
     [] {
       all->met = true;
       all->condition.notify_one();
     }},
    {"channel, send", [] { bench::check(all->full.send(1).has_value(), "it is open"); },
     [] { bench::check(all->full.receive().has_value(), "it has a value"); }},
    {"channel, receive", [] { bench::check(all->empty.receive().has_value(), "it is open"); },
     [] { bench::check(all->empty.send(1).has_value(), "it has room"); }},
    {"select",
     [] {
       int value = 0;
       const auto [index, outcome] = pirn::select(pirn::receive(all->empty, value), pirn::receive(all->other, value));
       bench::check(index == 1 && outcome.has_value(), "the second one has a value");
     },
     [] { bench::check(all->other.send(1).has_value(), "it has room"); }},
    {"future", [] { bench::check(all->future.get() == 1, "the value arrives"); }, [] { all->promise.set_value(1); }},
    {"join", [] { all->child.join(); }, [] { all->end.set(); }},
    {"sleep", [] { bench::check(pirn::this_fiber::sleep_for(1ms).has_value(), "it is not stopped"); }, [] {}},
});

/// Prepares the objects so that each of `points` suspends.
void prepare() {
  all.emplace();
  all->mutex.lock();
  bench::check(all->full.send(0).has_value(), "it has room");
  all->child = pirn::spawn([] { bench::check(all->end.wait().has_value(), "it is set"); });
}

void fibers() {
  prepare();
  pirn::fiber subject = pirn::spawn([] {
    bench::tell_of_fiber();
    for (const point& each : points) {
      bench::begin_point(each.name);
      each.suspend();
    }
  });
  for (const point& each : points) {
    pirn::this_fiber::yield();  // until the subject has suspended there
    each.resume();
  }
  subject.join();
  all.reset();
}

/// Coroutines and generators, whose state is in the registers of the other side.
[[gnu::noinline]] void bodies() {
  pirn::stack memory;
  pirn::coroutine<int()> coroutine([&](auto& yield) {
    memory = pirn::this_stack::bounds();
    for (int i = 0; i < 3; ++i) {
      yield(i);
    }
    return 3;
  });
  coroutine.resume();
  for (int i = 0; i < 2; ++i) {
    bench::suspended("coroutine", {{memory.limit(), memory.top()}});
    coroutine.resume();
  }
  pirn::generator<int> generator([&](auto& yield) {
    memory = pirn::this_stack::bounds();
    for (int i = 0; i < 3; ++i) {
      yield(i);
    }
  });
  for (const int value : generator) {
    bench::suspended("generator", {{memory.limit(), memory.top()}});
    bench::check(value < 3, "elements come in order");
  }
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1, .calling_thread = true});
  runtime.run([] {
    fibers();
    bodies();
  });
}
