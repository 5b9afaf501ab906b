// Streams in memory between fibers of several workers and plain threads, with reads, views, deadlines, stops and ends
// at random. Every byte tells its place in the stream. Seeds are fixed; the machine's timing is not.
#include <atomic>
#include <random>
#include <string>
#include <utility>

#include "fiber/support.hpp"
#include "pirn/io/copy.hpp"
#include "pirn/io/memory_stream.hpp"
#include "stress/support.hpp"

namespace {

using namespace pirn_test;
using pirn::io_error;
using pirn::memory_stream;

const auto duration = stress_time(2s);

pirn::time_point soon(std::minstd_rand& random) { return clock::now() + std::chrono::microseconds(random() % 200); }
pirn::time_point soon_or_never(std::minstd_rand& random) { return random() % 2 == 0 ? soon(random) : pirn::never; }

char byte_at(std::size_t place) { return static_cast<char>(place * 7 + place / 256); }

/// One direction: its writer, then its reader, each continues where an earlier one was stopped.
struct direction {
  std::size_t written = 0;
  std::size_t read = 0;
};

/// Writes some bytes; returns false at the end.
bool write_next(memory_stream& to, direction& at, std::minstd_rand& random) {
  char bytes[300];
  const std::size_t size = random() % sizeof bytes + 1;
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = byte_at(at.written + i);
  }
  const std::size_t middle = random() % (size + 1);
  const pirn::const_buffer parts[] = {{bytes, middle}, {bytes + middle, size - middle}};
  const pirn::copy_result done = write_all(to, parts, soon_or_never(random));
  at.written += done.written;
  return done || done.error == io_error::timed_out;
}

bool is_next(std::string_view got, std::size_t place) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != byte_at(place + i)) {
      return false;
    }
  }
  return true;
}

/// Reads some bytes by one of the calls; returns false at the end.
bool read_next(memory_stream& from, direction& at, std::minstd_rand& random) {
  const pirn::time_point deadline = soon_or_never(random);
  std::error_code error;
  std::size_t count = 0;
  switch (random() % 4) {
    case 0: {
      const auto ready = from.wait_readable(deadline);
      return ready || ready.error() == io_error::timed_out;
    }
    case 1: {
      auto view = from.lend(deadline);
      if (view) {
        EXPECT_TRUE(is_next(view->text(), at.read));
        count = view->empty() ? 0 : random() % view->text().size() + 1;
        view->consume(count);
      } else {
        error = view.error();
      }
      break;
    }
    default: {
      char bytes[300];
      const auto got = from.read(bytes, random() % sizeof bytes + 1, deadline);
      if (got) {
        count = *got;
        EXPECT_TRUE(is_next({bytes, count}, at.read));
      } else {
        error = got.error();
      }
    }
  }
  at.read += count;
  return error ? error == io_error::timed_out : count != 0;
}

TEST(stream_stress, stops_and_deadlines_lose_no_byte) {
  std::minstd_rand seeds(1);
  for (const std::size_t capacity : {std::size_t{10}, std::size_t{100}, std::size_t{5000}}) {
    rig r(2);
    auto ends = memory_stream::pair(capacity);
    memory_stream& a = ends.first;
    memory_stream& b = ends.second;
    direction there;
    direction back;
    const auto end = clock::now() + duration / 3;
    // One way between fibers that are stopped and replaced, the other way from a thread to a fiber.
    std::jthread thread([&] {
      std::minstd_rand random(2);
      while (write_next(b, back, random)) {
      }
    });
    pirn::fiber reads_back = r.rt.spawn([&] {
      std::minstd_rand random(3);
      while (read_next(a, back, random)) {
      }
    });
    pirn::fiber fibers[2];
    while (clock::now() < end) {
      for (const int i : {0, 1}) {
        if (fibers[i].joinable()) {
          std::this_thread::sleep_for(std::chrono::microseconds(seeds() % 1000));
          fibers[i].request_stop();
          fibers[i].join();
        }
        fibers[i] = r.rt.spawn(
            [&, i, seed = seeds()] {
              std::minstd_rand random(seed);
              while (i == 0 ? write_next(a, there, random) : read_next(b, there, random)) {
              }
            },
            {.worker = i});
      }
    }
    fibers[0].request_stop();
    fibers[0].join();
    EXPECT_TRUE(a.shutdown(pirn::shutdown_half::write));
    fibers[1].join();
    EXPECT_EQ(there.read, there.written);
    EXPECT_GT(there.read, 0u);
    EXPECT_EQ(a.shutdown(pirn::shutdown_half::read), pirn::result<>());
    thread.join();
    reads_back.join();
    EXPECT_LE(back.read, back.written);
    EXPECT_GT(back.read, 0u);
  }
}

TEST(stream_stress, ends_are_closed_at_any_moment) {
  rig r(2);
  std::minstd_rand random(4);
  const auto end = clock::now() + duration / 2;
  std::size_t carried = 0;
  while (clock::now() < end) {
    auto [a, b] = memory_stream::pair(random() % 200 + 1);
    direction there;
    bool to_the_end = true;
    pirn::fiber writes = r.rt.spawn(
        [&, seed = random()] {
          std::minstd_rand own(seed);
          for (auto times = own() % 50; times > 0 && write_next(a, there, own); --times) {
          }
          if (own() % 2 == 0) {
            a.close();
          } else {
            static_cast<void>(a.shutdown(pirn::shutdown_half::write));
          }
        },
        {.worker = 0});
    pirn::fiber reads = r.rt.spawn(
        [&, seed = random()] {
          std::minstd_rand own(seed);
          while (read_next(b, there, own)) {
          }
        },
        {.worker = 1});
    if (random() % 2 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      to_the_end = random() % 2 == 0;
      (to_the_end ? a : b).close();
    }
    writes.join();
    reads.join();
    EXPECT_TRUE(to_the_end ? there.read == there.written : there.read <= there.written);
    EXPECT_EQ(to_the_end ? b.is_open() : !b.is_open(), true);
    carried += there.read;
  }
  EXPECT_GT(carried, 0u);
}

}  // namespace
