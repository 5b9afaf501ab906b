// The clocks of the C library show an exploration's time, and threads sleep in that time.
#include <gtest/gtest.h>
#include <sys/time.h>
#include <unistd.h>
#include <pirn/sim/explore.hpp>

#include <cerrno>
#include <chrono>
#include <ctime>

using namespace pirn;
using namespace std::chrono_literals;

namespace {

constexpr time_t calendar = 946'684'800;

TEST(c_clock, shows_virtual_time) {
  const sim::result found = sim::explore([] {
    sim::check(time(nullptr) == calendar);
    sim::check(sleep(90 * 60) == 0);
    timeval now{};
    sim::check(gettimeofday(&now, nullptr) == 0 && now.tv_sec == calendar + 90 * 60 && now.tv_usec == 0);
    time_t also = 0;
    sim::check(time(&also) == now.tv_sec && also == now.tv_sec);
    timespec first{}, second{};
    sim::check(timespec_get(&first, TIME_UTC) == TIME_UTC && first.tv_sec == also && first.tv_nsec == 0);
    sim::check(timespec_get(&first, 0) == 0);
    for (const clockid_t each : {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME}) {
      sim::check(clock_gettime(CLOCK_MONOTONIC, &first) == 0 && clock_gettime(each, &second) == 0);
      sim::check(first.tv_sec == second.tv_sec && first.tv_nsec == second.tv_nsec);
    }
    sim::check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &first) == 0 && first.tv_nsec != 0, "what the CPU has spent");
  });
  EXPECT_TRUE(found) << found.text();
}

TEST(c_clock, lets_threads_sleep) {
  const sim::result found = sim::explore([] {
    errno = 0;
    sim::check(usleep(250'000) == 0 && errno == 0);
    sim::check(sim::elapsed() == 250ms);
    timespec given = {.tv_sec = 1, .tv_nsec = 1'000'000'000};
    sim::check(nanosleep(&given, nullptr) == -1 && errno == EINVAL);
    given = {.tv_sec = 1, .tv_nsec = 5};
    sim::check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &given, nullptr) == 0, "that has passed");
    sim::check(sim::elapsed() == 250ms);
    sim::check(nanosleep(&given, &given) == 0 && given.tv_sec == 0 && given.tv_nsec == 0);
    sim::check(sim::elapsed() == 1250ms + 5ns);
    given = {.tv_sec = calendar + 2, .tv_nsec = 0};
    sim::check(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &given, nullptr) == 0);
    sim::check(sim::elapsed() == 2s);
  });
  EXPECT_TRUE(found) << found.text();
}

TEST(c_clock, is_the_real_one_outside_of_explorations) {
  timeval now{};
  EXPECT_EQ(gettimeofday(&now, nullptr), 0);
  EXPECT_NEAR(static_cast<double>(now.tv_sec), static_cast<double>(time(nullptr)), 2);
  EXPECT_GT(now.tv_sec, calendar + 20 * 365 * 24 * 3600);
  timespec before{}, after{};
  EXPECT_EQ(clock_gettime(CLOCK_MONOTONIC, &before), 0);
  EXPECT_EQ(usleep(2000), 0);
  EXPECT_EQ(clock_gettime(CLOCK_MONOTONIC, &after), 0);
  EXPECT_GE((after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec, 2'000'000);
  const timespec bad = {.tv_sec = -1, .tv_nsec = 0};
  EXPECT_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, nullptr), EINVAL);
}

}  // namespace
