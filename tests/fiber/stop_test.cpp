// Stop sources, tokens and callbacks.
#include "pirn/fiber/stop.hpp"

#include <memory>
#include <optional>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;
using pirn::stop_callback;
using pirn::stop_source;
using pirn::stop_token;

TEST(stop, a_token_tells_of_its_source) {
  stop_source source;
  const stop_token token = source.get_token();
  const stop_token none;
  EXPECT_TRUE(token.stop_possible());
  EXPECT_FALSE(none.stop_possible());
  EXPECT_FALSE(token.stop_requested());
  stop_source copy = source;
  EXPECT_TRUE(copy.request_stop());
  EXPECT_FALSE(source.request_stop());
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(source.stop_requested());
  EXPECT_FALSE(none.stop_requested());
  copy = stop_source();
  EXPECT_FALSE(copy.stop_requested());
}

TEST(stop, a_token_outlives_its_source) {
  stop_token token;
  {
    stop_source source;
    token = source.get_token();
    source.request_stop();
  }
  stop_token moved = std::move(token);
  EXPECT_TRUE(moved.stop_requested());
}

TEST(stop, callbacks_run_once_newest_first) {
  stop_source source;
  std::string order;
  const stop_callback a(source.get_token(), [&] { order += 'a'; });
  std::optional<stop_callback<std::function<void()>>> b;
  b.emplace(source.get_token(), [&] { order += 'b'; });
  const stop_callback c(source.get_token(), [&] { order += 'c'; });
  const stop_callback never(stop_token(), [&] { order += 'x'; });
  b.reset();
  source.request_stop();
  EXPECT_EQ(order, "ca");
  const stop_callback late(source.get_token(), [&] { order += 'l'; });
  EXPECT_EQ(order, "cal");
  source.request_stop();
  EXPECT_EQ(order, "cal");
}

TEST(stop, a_callback_may_remove_itself_and_the_source) {
  auto source = std::make_unique<stop_source>();
  using callback = stop_callback<std::function<void()>>;
  std::unique_ptr<callback> itself;
  int calls = 0;
  itself = std::make_unique<callback>(source->get_token(), [&] {
    ++calls;
    itself.reset();
  });
  stop_source& alias = *source;
  const stop_callback other(source->get_token(), [&] { source.reset(); });
  alias.request_stop();
  EXPECT_EQ(calls, 1);
}

TEST(stop, removing_waits_for_a_call_that_runs) {
  for (int i = 0; i < 30; ++i) {
    stop_source source;
    std::atomic<int> state = 0;
    std::optional<stop_callback<std::function<void()>>> callback;
    callback.emplace(source.get_token(), [&] {
      state = 1;
      std::this_thread::sleep_for(100us);
      state = 2;
    });
    std::jthread t([&] { source.request_stop(); });
    while (state == 0) {
      std::this_thread::yield();
    }
    callback.reset();
    EXPECT_EQ(state, 2);
  }
}

TEST(stop, reaches_each_fiber_exactly_once_while_others_end) {
  rig r(2);
  for (int round = 0; round < scaled(100); ++round) {
    stop_source source;
    std::atomic<int> stopped = 0;
    std::vector<pirn::fiber> all;
    for (int i = 0; i < 10; ++i) {
      all.push_back(r.rt.spawn(
          [&, i] {
            if (i % 2 == 0) {
              return;  // unregisters while the request may be under way
            }
            while (pirn::this_fiber::sleep_for(5us)) {
            }
            ++stopped;
          },
          {.worker = i % 4 < 2 ? 0 : 1, .stop = source.get_token()}));
    }
    source.request_stop();
    all.clear();
    EXPECT_EQ(stopped, 5);
  }
}

TEST(stop, a_fiber_may_request_its_own) {
  rig r;
  stop_source source;
  r.rt.spawn(
          [&] {
            source.request_stop();
            EXPECT_TRUE(pirn::this_fiber::stop_requested());
            EXPECT_EQ(pirn::this_fiber::sleep_for(1h).error(), pirn::wait_error::stopped);
          },
          {.stop = source.get_token()})
      .join();
}

}  // namespace
