// Code that a user may write, with every template that has code in headers: user_program.py compiles it as users do,
// with optimization and warnings. It is never run.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/co.hpp"
#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/fork_join.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/fiber/scope.hpp"
#include "pirn/fiber/stop.hpp"
#include "pirn/fiber/task.hpp"
#include "pirn/io/any_stream.hpp"
#include "pirn/io/buffered_reader.hpp"
#include "pirn/io/buffered_writer.hpp"
#include "pirn/io/copy.hpp"
#include "pirn/io/memory_stream.hpp"
#include "pirn/sync/actor.hpp"
#include "pirn/sync/barrier.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/co.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/future.hpp"
#include "pirn/sync/latch.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/once.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/select.hpp"
#include "pirn/sync/semaphore.hpp"
#include "pirn/sync/shared_mutex.hpp"
#include "pirn/sync/wait_group.hpp"

namespace {

using namespace std::chrono_literals;
using text = std::string;

/// Has a move constructor that is written by hand and may throw.
struct heavy {
  explicit heavy(int n) : numbers(static_cast<std::size_t>(n)) {}
  // NOLINTNEXTLINE(performance-noexcept-move-constructor,performance-move-constructor-init): that is the point
  heavy(heavy&& from) : numbers(from.numbers) {}
  heavy& operator=(const heavy&) = default;
  heavy(const heavy&) = default;
  std::vector<long> numbers;
};

template <class T>
long through_channels(const T& value) {
  pirn::channel<T> bounded(4);
  pirn::channel<T> without_room;
  pirn::channel<T> endless(pirn::unbounded);
  long count = 0;
  pirn::fiber consumer = pirn::spawn([&] {
    for (const T& each : bounded) {
      count += static_cast<long>(sizeof each);
    }
    while (without_room.receive() || endless.receive(10ms) || endless.try_receive()) {
      ++count;
    }
  });
  for (int i = 0; i < 3; ++i) {
    if (!bounded.send(value) || !bounded.send(T(value), pirn::wake_policy::switch_over) || !bounded.try_send(value)) {
      break;
    }
    static_cast<void>(without_room.send(T(value), 1s));
    static_cast<void>(endless.send(value, 0.5s));
  }
  T place(value);
  pirn::event stop;
  const auto [index, outcome] = pirn::select(pirn::receive(bounded, place), pirn::send(without_room, T(value)),
                                             pirn::wait(stop), pirn::until(1ms));
  static_cast<void>(pirn::try_select(pirn::send(endless, value)));
  bounded.close();
  without_room.close();
  endless.close();
  consumer.join();
  return count + static_cast<long>(index) + (outcome ? 1 : 0);
}

template <class Mutex>
int locked(Mutex& m) {
  int n = 0;
  {
    const std::lock_guard guard(m);
    ++n;
  }
  if (m.lock(std::chrono::hours::max())) {
    const std::lock_guard guard(m, std::adopt_lock);
    ++n;
  }
  if (m.try_lock()) {
    m.unlock();
  }
  return n;
}

int all_locks() {
  pirn::mutex a;
  pirn::biased_mutex b;
  pirn::recursive_mutex c;
  pirn::shared_mutex d;
  pirn::local::mutex e;
  pirn::local::recursive_mutex f;
  pirn::local::shared_mutex g;
  const std::scoped_lock all(a, b, c, d);
  const std::shared_lock shared(d);
  pirn::condition_variable changed;
  std::unique_lock lock(a);
  static_cast<void>(changed.wait(lock, [&] { return true; }, 1ms));
  changed.notify_one(pirn::wake_policy::switch_over);
  changed.notify_all();
  return locked(a) + locked(b) + locked(c) + locked(d) + locked(e) + locked(f) + locked(g);
}

int groups() {
  pirn::counting_semaphore<8> permits(2);
  pirn::latch latch(1);
  pirn::barrier barrier(1, []() noexcept { std::puts("phase"); });
  pirn::wait_group group(1);
  pirn::event event(pirn::event_reset::automatic);
  pirn::once_flag once;
  pirn::local::event local_event;
  pirn::local::counting_semaphore<4> local_permits(1);
  static_cast<void>(permits.acquire());
  permits.release();
  static_cast<void>(latch.arrive_and_wait(1, 1s));
  static_cast<void>(barrier.arrive_and_wait());
  group.done();
  static_cast<void>(group.wait());
  event.set();
  static_cast<void>(event.wait(std::chrono::system_clock::now()));
  local_event.set();
  static_cast<void>(local_permits.acquire());
  int calls = 0;
  call_once(once, [&](int by) { calls += by; }, 2);
  return calls;
}

template <class T>
T through_futures(T value) {
  pirn::promise<T> promise;
  pirn::future<T> future = promise.get_future();
  pirn::fiber provider = pirn::spawn([&] { promise.set_value(value); });
  static_cast<void>(future.wait(1s));
  T got = future.get();
  provider.join();
  pirn::packaged_task<T(int)> task([&](int) { return value; });
  pirn::shared_future<T> shared = task.get_future().share();
  task(1);
  pirn::promise<T> allocated(std::allocator_arg, std::allocator<char>());
  allocated.set_exception(std::make_exception_ptr(std::runtime_error("none")));
  return shared.is_ready() ? shared.get() : got;
}

pirn::task<long> a_task(pirn::channel<long>& from, pirn::channel<text>& to) {
  long sum = 0;
  while (const auto number = co_await pirn::co::receive(from, 1s)) {
    sum += *number;
    if (!co_await pirn::co::send(to, std::to_string(sum))) {
      co_return sum;
    }
    static_cast<void>(co_await pirn::co::sleep_for(0.001s));
    co_await pirn::co::yield();
  }
  text last;
  co_return static_cast<long>((co_await pirn::co::select(pirn::receive(to, last), pirn::until(1ms))).index) + sum;
}

long fib(long n) {
  if (n < 2) {
    return n;
  }
  const auto [a, b] = pirn::fork2([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return a + b;
}

long sequences() {
  pirn::generator<long> numbers = [](auto& yield) {
    for (long i = 0;; ++i) {
      yield(i);
    }
  };
  pirn::generator<text, pirn::frame<8192>> words = [](auto& yield) { yield(text("word")); };
  long sum = 0;
  for (const long each : numbers) {
    if (each > 5) {
      break;
    }
    sum += each;
  }
  for (const text& each : words) {
    sum += static_cast<long>(each.size());
  }
  pirn::for_each<int>([](auto& yield) { yield(1); }, [&](int n) { sum += n; });
  pirn::coroutine<text(int)> spell([](auto& yield, int first) {
    for (int n = first;;) {
      n = yield(std::to_string(n));
    }
    return text();
  });
  return sum + static_cast<long>(spell.resume(1).size());
}

struct account {
  explicit account(long start = 0) : balance(start) {}
  long balance;
};

long actors(pirn::runtime& in) {
  pirn::actor<account> plain(in);
  pirn::actor deduced(in, account(3));
  plain.post([](account& self) { ++self.balance; });
  pirn::future<long> asked = deduced.ask([](account& self) { return self.balance; });
  return asked.get() + plain.call([](account& self) { return self.balance; });
}

/// A latch that is made and destroyed in place, in turns.
bool latch_in_place(pirn::runtime& in) {
  bool all = true;
  for (int i = 0; i < 3; ++i) {
    std::optional<pirn::latch> door(std::in_place, 2);
    pirn::latch& shared = *door;
    in.spawn([&] { shared.count_down(); }, {.worker = 0}).detach();
    in.spawn([&] { shared.count_down(); }, {.worker = 1}).detach();
    all = all && door->wait().has_value();
    door.reset();
  }
  return all;
}

long scopes() {
  pirn::scope all({.deadline = 1s});
  long a = 0;
  all.spawn([&] { a = through_channels(1); });
  all.spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(0.1s)); }, {.name = "sleeper"});
  all.join();
  pirn::fiber_local<text> own;
  own.get() = "x";
  pirn::stop_source source;
  const pirn::stop_callback told(source.get_token(), [] { std::puts("stop"); });
  return a + pirn::blocking([] { return 1L; });
}

/// Streams that are owned, referred to, buffered and copied.
std::size_t streams() {
  auto [a, b] = pirn::memory_stream::pair(100);
  pirn::any_stream any(std::move(b));
  pirn::any_stream lent(std::ref(any));
  pirn::buffered_reader reader(any);
  pirn::buffered_reader owner(std::move(lent));
  pirn::buffered_writer writer(a);
  bool all = writer.write("a line\n") && writer.flush() && any.write("text", 4) && reader.read_line(10);
  char byte = 0;
  all = all && a.read_exactly(&byte, 1) && owner.read_exactly(&byte, 0);
  pirn::read_view view = a.lend().value_or(pirn::read_view());
  view.consume(view.text().size());
  view.release();
  const pirn::copy_result copied = pirn::copy(reader, writer, 1ms);
  return copied.written + pirn::write_all(any, "text").written + (all ? 1 : 0);
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 2, .idle_spin = 0.5ms});
  long sum = actors(runtime) + (latch_in_place(runtime) ? 1 : 0);
  runtime.run([&] {
    sum += through_channels(1) + through_channels(2.0F) + through_channels('x') + through_channels(std::uint64_t{3});
    sum += through_channels(text("four")) + through_channels(heavy(5)) + through_channels(std::make_shared<int>(6));
    sum += all_locks() + groups() + through_futures(7L) + fib(20) + sequences() + scopes();
    sum += static_cast<long>(through_futures(text("eight")).size() + streams());
    pirn::channel<long> from;
    pirn::channel<text> to(1);
    sum += pirn::await(a_task(from, to));
  });
  std::printf("%ld\n", sum);
}
