// Each call that waits is ended by a stop or a deadline, with others waiting before and after it. It returns the
// reason, and the primitive works as if the call had not been made.
#include <memory>
#include <mutex>
#include <optional>

#include "fiber/support.hpp"
#include "pirn/sync/barrier.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/event.hpp"
#include "pirn/sync/expert/biased_mutex.hpp"
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

using namespace pirn_test;
using pirn::wait_error;
using result = std::expected<void, wait_error>;
using deadline_type = pirn::platform::time_point;

/// One call that waits, and the operation that lets one caller (or all) continue.
class primitive {
 public:
  primitive() = default;
  primitive(const primitive&) = delete;
  primitive& operator=(const primitive&) = delete;
  virtual ~primitive() = default;
  virtual result wait(deadline_type deadline) = 0;
  /// Lets the first waiter continue.
  virtual void release() = 0;
  [[nodiscard]] virtual bool releases_all() const { return false; }
  /// Returns whether a release without a waiter is kept. If not, `waiting` returns the number of waiters.
  [[nodiscard]] virtual bool kept_for_later() const { return true; }
  virtual int waiting() { return 0; }
  /// Prepares the next round.
  virtual void renew() {}
  /// Called when all waiters have continued.
  virtual void expect_quiet() {}
};

class on_mutex : public primitive {
 public:
  explicit on_mutex(pirn::mutex_policy policy) : m_(policy) { m_.lock(); }
  result wait(deadline_type deadline) override {
    // The new owner keeps it until `release`.
    return m_.lock(deadline);
  }
  void release() override { m_.unlock(); }
  void expect_quiet() override {
    EXPECT_FALSE(m_.try_lock());
    m_.unlock();
    EXPECT_TRUE(m_.try_lock());
  }

 private:
  pirn::mutex m_;
};

class on_condition : public primitive {
 public:
  result wait(deadline_type deadline) override {
    std::unique_lock lock(m_);
    ++waiting_;
    const result ended = changed_.wait(lock, deadline);
    EXPECT_TRUE(lock.owns_lock());
    --waiting_;
    return ended;
  }
  void release() override { changed_.notify_one(); }
  [[nodiscard]] bool kept_for_later() const override { return false; }
  int waiting() override {
    const std::lock_guard guard(m_);
    return waiting_;
  }
  void expect_quiet() override { EXPECT_TRUE(m_.try_lock()); }

 private:
  pirn::mutex m_;
  pirn::condition_variable changed_;
  int waiting_ = 0;
};

class on_group : public primitive {
 public:
  result wait(deadline_type deadline) override { return group_.wait(deadline); }
  void release() override { group_.done(); }
  [[nodiscard]] bool releases_all() const override { return true; }
  void renew() override { group_.add(); }
  void expect_quiet() override { EXPECT_EQ(group_.count(), 0u); }

 private:
  pirn::wait_group group_{1};
};

class on_receive : public primitive {
 public:
  result wait(deadline_type deadline) override {
    auto got = values_.receive(deadline);
    return got ? result{} : std::unexpected(got.error());
  }
  void release() override { EXPECT_TRUE(values_.try_send(++sent_).has_value()); }
  void expect_quiet() override { EXPECT_EQ(values_.size(), 0u); }

 private:
  pirn::channel<int> values_{1};
  int sent_ = 0;
};

class on_send : public primitive {
 public:
  on_send() { EXPECT_TRUE(values_.try_send(std::make_unique<int>(0)).has_value()); }
  result wait(deadline_type deadline) override {
    auto value = std::make_unique<int>(1);
    const result sent = values_.send(static_cast<std::unique_ptr<int>&&>(value), deadline);
    EXPECT_EQ(value == nullptr, sent.has_value());  // not lost
    return sent;
  }
  void release() override { EXPECT_TRUE(values_.try_receive().has_value()); }
  void expect_quiet() override {
    EXPECT_EQ(values_.size(), 1u);  // one more was sent than received
    EXPECT_TRUE(values_.try_receive().has_value());
  }

 private:
  pirn::channel<std::unique_ptr<int>> values_{1};
};

/// Returns the outcome of a select whose last case is the deadline.
result without_timer(const pirn::selection& s, std::size_t timer) {
  return s.index == timer ? std::unexpected(wait_error::timed_out) : s.outcome;
}

/// Waits for other objects besides the released one, before and after it in the order of the locks.
class on_select_receive : public primitive {
 public:
  result wait(deadline_type deadline) override {
    int got = 0;
    return without_timer(select(receive(values_[0], got), pirn::wait(never_set_), receive(values_[1], got),
                                receive(values_[2], got), pirn::until(deadline)),
                         4);
  }
  void release() override { EXPECT_TRUE(values_[1].try_send(++sent_).has_value()); }
  void expect_quiet() override { EXPECT_EQ(values_[1].size(), 0u); }

 private:
  pirn::channel<int> values_[3] = {pirn::channel<int>(1), pirn::channel<int>(1), pirn::channel<int>(1)};
  pirn::event never_set_;
  int sent_ = 0;
};

/// Waits on both sides of the same channels.
class on_select_send : public primitive {
 public:
  result wait(deadline_type deadline) override {
    auto value = std::make_unique<int>(1);
    std::unique_ptr<int> got;
    ++waiting_;
    const pirn::selection s = select(receive(other_, got), send(values_, static_cast<std::unique_ptr<int>&&>(value)),
                                     receive(values_of_nobody_, got), pirn::until(deadline));
    --waiting_;
    EXPECT_EQ(value == nullptr, s.index == 1);  // not lost
    EXPECT_EQ(got, nullptr);
    return without_timer(s, 3);
  }
  void release() override {
    ASSERT_TRUE(eventually([&] { return values_.try_receive().has_value(); }));
  }
  [[nodiscard]] bool kept_for_later() const override { return false; }
  int waiting() override { return waiting_; }
  void expect_quiet() override { EXPECT_FALSE(values_.try_receive().has_value()); }

 private:
  pirn::channel<std::unique_ptr<int>> other_;
  pirn::channel<std::unique_ptr<int>> values_;
  pirn::channel<std::unique_ptr<int>> values_of_nobody_;
  std::atomic<int> waiting_ = 0;
};

class on_select_event : public primitive {
 public:
  result wait(deadline_type deadline) override {
    return without_timer(
        select(pirn::wait(events_[0]), pirn::wait(events_[1]), pirn::wait(events_[2]), pirn::until(deadline)), 3);
  }
  void release() override { events_[1].set(); }
  void expect_quiet() override { EXPECT_FALSE(events_[1].is_set()); }

 private:
  std::array<pirn::event, 3> events_ = {pirn::event(pirn::event_reset::automatic),
                                        pirn::event(pirn::event_reset::automatic),
                                        pirn::event(pirn::event_reset::automatic)};
};

class on_queue : public primitive {
 public:
  result wait(deadline_type deadline) override {
    queue_.lock();
    const pirn::wake_reason reason = queue_.wait({.deadline = deadline});
    return reason == pirn::wake_reason::notified ? result{} : std::unexpected(pirn::detail::error_of(reason));
  }
  void release() override { EXPECT_TRUE(queue_.notify_one()); }
  [[nodiscard]] bool kept_for_later() const override { return false; }
  int waiting() override {
    const pirn::platform::spin_guard guard(queue_);
    int count = 0;
    for (const pirn::waiter* w = queue_.front(); w != nullptr; w = w->next) {
      ++count;
    }
    return count;
  }
  void expect_quiet() override { EXPECT_TRUE(queue_.empty()); }

 private:
  pirn::wait_queue queue_;
};

/// A semaphore or an event: each release lets one waiter continue.
template <class T>
class on_signal : public primitive {
 public:
  template <class... Arguments>
  explicit on_signal(Arguments... arguments) : signal_(arguments...) {}
  result wait(deadline_type deadline) override {
    if constexpr (requires { signal_.acquire(deadline); }) {
      return signal_.acquire(deadline);
    } else {
      return signal_.wait(deadline);
    }
  }
  void release() override {
    if constexpr (requires { signal_.release(); }) {
      signal_.release();
    } else {
      signal_.set();
    }
  }
  void expect_quiet() override { EXPECT_FALSE(wait(clock::time_point{}).has_value()); }

 protected:
  T signal_;
};

class on_manual_event : public on_signal<pirn::event> {
 public:
  [[nodiscard]] bool releases_all() const override { return true; }
  void renew() override { signal_.reset(); }
  void expect_quiet() override { EXPECT_TRUE(signal_.is_set()); }
};

/// A primitive that opens once, for all, and is made anew because it cannot be used again.
template <class T>
class on_gate : public primitive {
 public:
  [[nodiscard]] bool releases_all() const override { return true; }
  void renew() override { gate_.emplace(); }
  result wait(deadline_type deadline) override { return gate_->wait(deadline); }
  void release() override { gate_->release(); }

 private:
  std::optional<T> gate_{std::in_place};
};

struct latch_gate {
  pirn::latch gate{1};
  result wait(deadline_type deadline) { return gate.wait(deadline); }
  void release() { gate.count_down(); }
};

struct future_gate {
  pirn::promise<void> gate;
  pirn::shared_future<void> result_of = gate.get_future().share();
  result wait(deadline_type deadline) {
    const pirn::shared_future<void> mine = result_of;
    return mine.wait(deadline);
  }
  void release() { gate.set_value(); }
};

/// The others wait for the first call, which ends at `release`.
struct once_gate {
  pirn::once_flag gate;
  pirn::event begun;
  pirn::event end;
  std::jthread first{[this] {
    call_once(gate, [this] {
      begun.set();
      EXPECT_TRUE(end.wait().has_value());
    });
  }};
  once_gate() { EXPECT_TRUE(begun.wait().has_value()); }
  once_gate(const once_gate&) = delete;
  once_gate& operator=(const once_gate&) = delete;
  ~once_gate() { end.set(); }
  result wait(deadline_type deadline) {
    return gate.call([] { ADD_FAILURE(); }, deadline);
  }
  void release() { end.set(); }
};

enum class to { write, read };

/// A thread owns the lock until `release`. Each later owner unlocks it at once, so that all pass.
template <class Lock, to what = to::write>
struct lock_gate {
  Lock gate;
  pirn::event taken;
  pirn::event end;
  std::jthread owner{[this] {
    const std::lock_guard guard(gate);
    taken.set();
    EXPECT_TRUE(end.wait().has_value());
  }};
  lock_gate() { EXPECT_TRUE(taken.wait().has_value()); }
  lock_gate(const lock_gate&) = delete;
  lock_gate& operator=(const lock_gate&) = delete;
  ~lock_gate() { end.set(); }
  result wait(deadline_type deadline) {
    if constexpr (what == to::read) {
      const result locked = gate.lock_shared(deadline);
      if (locked) {
        gate.unlock_shared();
      }
      return locked;
    } else {
      const result locked = gate.lock(deadline);
      if (locked) {
        gate.unlock();
      }
      return locked;
    }
  }
  void release() { end.set(); }
};

/// Callers that give up have arrived and leave. `release` arrives for all missing parties.
class on_barrier : public primitive {
 public:
  result wait(deadline_type deadline) override {
    ++arrived_;
    ++waiting_;
    const result ended = gate_->arrive_and_wait(deadline);
    --waiting_;
    return ended;
  }
  void release() override { static_cast<void>(gate_->arrive(parties - arrived_)); }
  [[nodiscard]] bool releases_all() const override { return true; }
  [[nodiscard]] bool kept_for_later() const override { return false; }
  int waiting() override { return waiting_; }
  void renew() override {
    gate_.emplace(parties);
    arrived_ = 0;
  }

 private:
  static constexpr int parties = 100;
  std::optional<pirn::barrier<>> gate_{std::in_place, parties};
  std::atomic<int> arrived_ = 0;
  std::atomic<int> waiting_ = 0;
};

template <class T>
std::unique_ptr<primitive> make() {
  return std::make_unique<T>();
}

struct kind {
  const char* name;
  std::unique_ptr<primitive> (*make)();
};
const kind kinds[] = {
    {"fair_mutex", [] { return std::unique_ptr<primitive>(new on_mutex(pirn::mutex_policy::fair)); }},
    {"barging_mutex", [] { return std::unique_ptr<primitive>(new on_mutex(pirn::mutex_policy::barging)); }},
    {"condition_variable", [] { return std::unique_ptr<primitive>(new on_condition); }},
    {"wait_group", [] { return std::unique_ptr<primitive>(new on_group); }},
    {"receive", [] { return std::unique_ptr<primitive>(new on_receive); }},
    {"send", [] { return std::unique_ptr<primitive>(new on_send); }},
    {"select_receive", make<on_select_receive>},
    {"select_send", make<on_select_send>},
    {"select_event", make<on_select_event>},
    {"wait_queue", [] { return std::unique_ptr<primitive>(new on_queue); }},
    {"semaphore", [] { return std::unique_ptr<primitive>(new on_signal<pirn::counting_semaphore<>>(0)); }},
    {"event", [] { return std::unique_ptr<primitive>(new on_signal<pirn::event>(pirn::event_reset::automatic)); }},
    {"manual_event", make<on_manual_event>},
    {"latch", make<on_gate<latch_gate>>},
    {"barrier", make<on_barrier>},
    {"future", make<on_gate<future_gate>>},
    {"once", make<on_gate<once_gate>>},
    {"biased_mutex", make<on_gate<lock_gate<pirn::biased_mutex>>>},
    {"recursive_mutex", make<on_gate<lock_gate<pirn::recursive_mutex>>>},
    {"shared_mutex_writer", make<on_gate<lock_gate<pirn::shared_mutex>>>},
    {"shared_mutex_reader", make<on_gate<lock_gate<pirn::shared_mutex, to::read>>>},
};

class interruption : public testing::TestWithParam<std::tuple<kind, unsigned>> {
 protected:
  static constexpr int waiters = 7;
  std::unique_ptr<primitive> what = std::get<0>(GetParam()).make();
  unsigned workers = std::get<1>(GetParam());

  /// Waits until `count` callers wait, if a release would otherwise be lost.
  bool in_line(int count) {
    return eventually([&] { return what->kept_for_later() || what->waiting() == count; });
  }
};

TEST_P(interruption, leaves_those_before_and_after_in_their_places) {
  rig r(workers);
  std::vector<pirn::fiber> all;
  std::array<std::optional<result>, waiters> ended;
  std::atomic<int> done = 0;
  const auto stopped = [](int i) { return i == 1 || i == 3; };
  const auto timed = [](int i) { return i == 4; };
  for (int i = 0; i < waiters; ++i) {
    all.push_back(r.rt.spawn(
        [&, i] {
          const auto deadline = timed(i) ? clock::now() + 3ms : pirn::platform::never;
          ended[static_cast<std::size_t>(i)] = what->wait(deadline);
          ++done;
        },
        {.worker = i % static_cast<int>(workers)}));
    std::this_thread::sleep_for(1ms);  // so that they most likely wait in this order
  }
  all[1].request_stop();
  all[3].request_stop();
  ASSERT_TRUE(eventually([&] { return done == 3; }));
  for (int i = 0; i < waiters; ++i) {
    const auto& mine = ended[static_cast<std::size_t>(i)];
    EXPECT_EQ(mine.has_value(), stopped(i) || timed(i));
    if (mine.has_value()) {
      EXPECT_EQ(mine->error(), timed(i) ? wait_error::timed_out : wait_error::stopped);
    }
  }
  ASSERT_TRUE(in_line(4));
  for (int released = 1; released <= 4; ++released) {
    what->release();
    const int expected = what->releases_all() ? 7 : 3 + released;
    ASSERT_TRUE(eventually([&] { return done == expected; }));
    if (what->releases_all()) {
      break;
    }
  }
  join_all(all);
  for (const int i : {0, 2, 5, 6}) {
    const auto& mine = ended[static_cast<std::size_t>(i)];
    EXPECT_TRUE(mine.has_value() && mine->has_value());
  }
  what->expect_quiet();
}

TEST_P(interruption, of_all_leaves_it_as_new) {
  rig r(workers);
  std::vector<pirn::fiber> all;
  pirn::stop_source source;
  for (int i = 0; i < waiters; ++i) {
    all.push_back(r.rt.spawn(
        [&, i] {
          EXPECT_EQ(what->wait(i % 2 == 0 ? clock::now() + 2ms : pirn::platform::never).error(),
                    i % 2 == 0 ? wait_error::timed_out : wait_error::stopped);
        },
        {.worker = i % static_cast<int>(workers), .stop = i % 2 == 0 ? pirn::stop_token() : source.get_token()}));
  }
  std::this_thread::sleep_for(2ms);
  source.request_stop();
  join_all(all);
  pirn::fiber f = r.rt.spawn([&] { EXPECT_TRUE(what->wait(pirn::platform::never).has_value()); });
  ASSERT_TRUE(in_line(1));
  what->release();
  f.join();
  what->expect_quiet();
}

TEST_P(interruption, before_the_wait_ends_it_at_once) {
  rig r(workers);
  pirn::stop_source source;
  source.request_stop();
  r.rt.spawn(
          [&] {
            EXPECT_EQ(what->wait(pirn::platform::never).error(), wait_error::stopped);
            EXPECT_EQ(what->wait(clock::time_point{}).error(), wait_error::stopped);
          },
          {.stop = source.get_token()})
      .join();
  EXPECT_EQ(what->wait(clock::time_point{}).error(), wait_error::timed_out);  // a plain thread
  pirn::fiber f = r.rt.spawn([&] { EXPECT_TRUE(what->wait(pirn::platform::never).has_value()); });
  ASSERT_TRUE(in_line(1));
  what->release();
  f.join();
  what->expect_quiet();
}

TEST_P(interruption, at_the_moment_of_the_release_loses_nothing) {
  // Stop, deadline and release race for the first waiter. If it does not get the release, the second waiter does.
  rig r(workers);
  int first_got_it = 0;
  const bool with_deadlines = what->kept_for_later();  // otherwise both must be in line, which a deadline would spoil
  const int rounds = scaled(1000);
  for (int i = 0; i < rounds; ++i) {
    bool first_got = false;
    if (i > 0) {
      what->renew();
    }
    pirn::fiber first = r.rt.spawn(
        [&] {
          const auto deadline = with_deadlines && i % 3 == 0 ? clock::now() + std::chrono::microseconds(20 + i % 60)
                                                             : pirn::platform::never;
          first_got = what->wait(deadline).has_value();
        },
        {.worker = 0});
    pirn::fiber second = r.rt.spawn([&] { EXPECT_TRUE(what->wait(pirn::platform::never).has_value()); },
                                    {.worker = static_cast<int>(workers) - 1});
    ASSERT_TRUE(in_line(2));
    for (int spin = 0; spin < (i * 7) % 500; ++spin) {
      pirn::platform::relax();
    }
    if (i % 2 == 0) {
      first.request_stop();
      what->release();
    } else {
      what->release();
      first.request_stop();
    }
    first.join();
    if (first_got) {
      ++first_got_it;
      if (!what->releases_all()) {
        what->release();
      }
    }
    second.join();
  }
  RecordProperty("first_got_it", first_got_it);
  what->expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(everywhere, interruption, testing::Combine(testing::ValuesIn(kinds), testing::Values(1u, 3u)),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param).name) + "_" +
                                  std::to_string(std::get<1>(chosen.param));
                         });

}  // namespace
