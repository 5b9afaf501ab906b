// Futures, promises and packaged tasks.
#include "pirn/sync/future.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::future;
using pirn::future_errc;
using pirn::packaged_task;
using pirn::promise;
using pirn::shared_future;
using pirn::wait_error;

template <class F>
void expect_error(future_errc expected, F&& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const pirn::future_error& e) {
    EXPECT_EQ(e.code(), expected) << e.what();
    EXPECT_NE(std::string(e.what()).find(e.code().message()), std::string::npos);
  }
}

TEST(future, carries_a_value_a_reference_or_nothing) {
  promise<std::unique_ptr<int>> value;
  promise<int&> reference;
  promise<void> nothing;
  promise<std::string> built;
  future<std::unique_ptr<int>> a = value.get_future();
  future<int&> b = reference.get_future();
  future<void> c = nothing.get_future();
  future<std::string> d = built.get_future();
  EXPECT_TRUE(a.valid());
  EXPECT_FALSE(a.is_ready());
  int object = 7;
  value.set_value(std::make_unique<int>(6));
  reference.set_value(object);
  nothing.set_value();
  const std::string text = "text";
  built.set_value(text);
  EXPECT_TRUE(a.is_ready());
  EXPECT_EQ(*a.get(), 6);
  EXPECT_EQ(&b.get(), &object);
  c.get();
  EXPECT_EQ(d.get(), "text");
  EXPECT_FALSE(a.valid());
  EXPECT_FALSE(c.valid());
}

TEST(future, wakes_fibers_and_threads_that_wait) {
  rig r(2);
  for (int round = 0; round < scaled(1000); ++round) {
    promise<int> p;
    shared_future<int> all = p.get_future().share();
    std::vector<pirn::fiber> fibers;
    for (int i = 0; i < 4; ++i) {
      fibers.push_back(r.rt.spawn([all] { EXPECT_EQ(all.get(), 5); }));
    }
    fibers.push_back(r.rt.spawn([&p] { p.set_value(5); }));
    EXPECT_EQ(all.get(), 5);
    join_all(fibers);
    EXPECT_EQ(&all.get(), &all.get());
  }
}

TEST(future, both_ends_may_be_destroyed_as_soon_as_the_result_is_there) {
  rig r(2);
  for (int i = 0; i < scaled(3000); ++i) {
    auto p = std::make_unique<promise<int>>();
    auto f = p->get_future();
    pirn::fiber provider = r.rt.spawn([&here = *p] { here.set_value(1); });
    if (i % 3 == 0) {
      while (!f.is_ready()) {
        pirn::platform::relax();
      }
    }
    EXPECT_EQ(f.get(), 1);
    p.reset();
    provider.join();
  }
}

TEST(future, carries_exceptions) {
  promise<int> p;
  auto f = p.get_future();
  p.set_exception(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_THROW(f.get(), std::runtime_error);
  EXPECT_FALSE(f.valid());
  promise<void> q;
  auto s = q.get_future().share();
  q.set_exception(std::make_exception_ptr(std::runtime_error("no")));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(s.get(), std::runtime_error);
  }
}

TEST(future, shows_an_exception_and_keeps_it) {
  promise<int> p;
  future<int> f = p.get_future();
  p.set_exception(std::make_exception_ptr(std::runtime_error("x")));
  EXPECT_THROW(std::rethrow_exception(f.get_exception_ptr()), std::runtime_error);
  EXPECT_THROW(f.get(), std::runtime_error);
  promise<int> q;
  shared_future<int> g = q.get_future();
  q.set_value(1);
  EXPECT_EQ(g.get_exception_ptr(), nullptr);
  expect_error(future_errc::no_state, [] { static_cast<void>(future<int>().get_exception_ptr()); });
}

/// Counts the allocations of all copies, and refuses them from a number on.
struct counts {
  int now = 0;
  int all = 0;
  int most = 1000;
};
template <class T>
struct counting_allocator {
  using value_type = T;
  explicit counting_allocator(counts& to) : of(&to) {}
  template <class U>
  counting_allocator(const counting_allocator<U>& other) : of(other.of) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t count) {
    if (of->all == of->most) {
      throw std::bad_alloc();
    }
    ++of->all;
    ++of->now;
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* what, std::size_t count) {
    --of->now;
    std::allocator<T>().deallocate(what, count);
  }
  friend bool operator==(const counting_allocator&, const counting_allocator&) = default;
  counts* of;
};

TEST(promise, takes_its_memory_from_an_allocator) {
  static_assert(std::uses_allocator_v<promise<int>, std::allocator<char>>);
  counts of;
  const counting_allocator<char> from(of);
  {
    promise<std::string> value(std::allocator_arg, from);
    promise<int&> reference(std::allocator_arg, from);
    promise<void> nothing(std::allocator_arg, from);
    EXPECT_EQ(of.now, 3);
    future<std::string> later = value.get_future();
    value.set_value("a value that is on the heap, being longer than a string");
    value = promise<std::string>(std::allocator_arg, from);
    EXPECT_EQ(of.now, 4);  // the future still has the other one
    EXPECT_EQ(later.get().size(), 55U);
    EXPECT_EQ(of.now, 3);
    shared_future<void> all = nothing.get_future();
    const shared_future<void> copy = all;  // NOLINT(performance-unnecessary-copy-initialization)
    nothing.set_value();
    copy.get();
  }
  EXPECT_EQ(of.now, 0);
  EXPECT_EQ(of.all, 4);
  of.most = of.all;
  EXPECT_THROW(promise<int>(std::allocator_arg, from), std::bad_alloc);
}

TEST(future, a_value_that_throws_leaves_the_promise_unsatisfied) {
  struct touchy {
    explicit touchy(int v) {
      if (v == 0) {
        throw std::runtime_error("zero");
      }
    }
  };
  promise<touchy> p;
  auto f = p.get_future();
  EXPECT_THROW(p.set_value(0), std::runtime_error);
  EXPECT_FALSE(f.is_ready());
  p.set_value(1);
  static_cast<void>(f.get());
}

TEST(future, misuse_is_diagnosed) {
  promise<int> p;
  auto f = p.get_future();
  expect_error(future_errc::future_already_retrieved, [&] { static_cast<void>(p.get_future()); });
  p.set_value(1);
  expect_error(future_errc::promise_already_satisfied, [&] { p.set_value(2); });
  expect_error(future_errc::promise_already_satisfied, [&] { p.set_exception(std::make_exception_ptr(1)); });
  EXPECT_EQ(f.get(), 1);
  expect_error(future_errc::no_state, [&] { f.get(); });
  expect_error(future_errc::no_state, [&] { static_cast<void>(f.wait()); });
  promise<int> moved = std::move(p);
  // NOLINTNEXTLINE(bugprone-use-after-move): that is the misuse
  expect_error(future_errc::no_state, [&] { p.set_value(1); });
  future<int> broken;
  {
    promise<int> gone;
    broken = gone.get_future();
    EXPECT_FALSE(broken.is_ready());
  }
  expect_error(future_errc::broken_promise, [&] { broken.get(); });
  promise<int> assigned;
  broken = assigned.get_future();
  assigned = promise<int>();
  expect_error(future_errc::broken_promise, [&] { broken.get(); });
}

TEST(future, a_broken_promise_wakes_who_waits) {
  rig r(1);
  r.rt.run([] {
    auto p = std::make_unique<promise<int>>();
    auto f = p->get_future();
    pirn::fiber waits = pirn::spawn([&] { expect_error(future_errc::broken_promise, [&] { f.get(); }); });
    pirn::this_fiber::yield();
    p.reset();
    waits.join();
  });
}

TEST(future, gives_up_and_stays_valid) {
  rig r(1);
  promise<std::unique_ptr<int>> p;
  promise<void> q;
  auto f = p.get_future();
  auto g = q.get_future();
  EXPECT_EQ(f.wait(clock::now() + 1ms).error(), wait_error::timed_out);
  EXPECT_EQ(f.get(clock::time_point{}).error(), wait_error::timed_out);
  EXPECT_EQ(g.get(clock::time_point{}).error(), wait_error::timed_out);
  std::atomic<bool> gave_up = false;
  pirn::fiber waits = r.rt.spawn([&] {
    EXPECT_EQ(f.get(pirn::platform::never).error(), wait_error::stopped);
    EXPECT_EQ(f.wait().error(), wait_error::stopped);
    EXPECT_TRUE(f.valid());
    gave_up = true;
    EXPECT_EQ(*f.get(), 3);  // a stop does not end it
  });
  std::this_thread::sleep_for(1ms);
  waits.request_stop();
  ASSERT_TRUE(eventually([&] { return gave_up.load(); }));
  std::this_thread::sleep_for(1ms);
  p.set_value(std::make_unique<int>(3));
  waits.join();
  q.set_value();
  EXPECT_TRUE(g.get(clock::time_point{}).has_value());
}

TEST(packaged_task, provides_what_the_call_returns_or_throws) {
  rig r(1);
  packaged_task<int(int, std::unique_ptr<int>)> add([](int a, const std::unique_ptr<int>& b) { return a + *b; });
  auto sum = add.get_future();
  pirn::fiber f = r.rt.spawn([task = std::move(add)]() mutable { task(1, std::make_unique<int>(2)); });
  EXPECT_EQ(sum.get(), 3);
  f.join();
  EXPECT_FALSE(add.valid());  // NOLINT(bugprone-use-after-move): what a move leaves
  packaged_task<void()> fails([] { throw std::runtime_error("no"); });
  auto failure = fails.get_future();
  fails();
  EXPECT_THROW(failure.get(), std::runtime_error);
}

TEST(packaged_task, can_be_called_once_until_it_is_reset) {
  int calls = 0;
  packaged_task<int&()> count([&]() -> int& { return ++calls; });
  count();
  expect_error(future_errc::promise_already_satisfied, [&] { count(); });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(&count.get_future().get(), &calls);
  packaged_task<int&()> moved(std::move(count));
  expect_error(future_errc::promise_already_satisfied, [&] { moved(); });
  EXPECT_EQ(calls, 1);
  count = std::move(moved);
  expect_error(future_errc::promise_already_satisfied, [&] { count(); });
  EXPECT_EQ(calls, 1);
  count.reset();
  auto again = count.get_future();
  count();
  EXPECT_EQ(again.get(), 2);
  packaged_task<int&()> none;
  expect_error(future_errc::no_state, [&] { none(); });
  expect_error(future_errc::no_state, [&] { static_cast<void>(none.get_future()); });
  future<int&> broken;
  {
    packaged_task<int&()> never(std::move(count));
    never.reset();
    broken = never.get_future();
  }
  expect_error(future_errc::broken_promise, [&] { broken.get(); });
}

}  // namespace
