// Bytes that an engine receives for `lend`: arrival, stop, deadline, close, a second reader, readers on other workers
// and threads, a shortage of buffers and the end of the runtime, in every order. No byte is lost or comes twice, and
// all come in order.
#include <gtest/gtest.h>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/io/copy.hpp>

#include <optional>
#include <string>

#include "sim/connected.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::connected;
using pirn_test::expect_passes;

namespace {

sim::options bound(unsigned preemptions) { return {.preemptions = preemptions}; }

runtime_options workers(unsigned count, engine_kind engine = engine_kind::uring) {
  return {.workers = count, .engine = engine};
}

void run_fibers(unsigned count, const std::vector<std::function<void()>>& bodies) {
  pirn_test::run_fibers(workers(count), bodies);
}

/// Appends what the next view has. Returns false at the end.
bool take(tcp_stream& from, std::string& got) {
  read_view view = from.lend().value();
  got += view.text();
  const std::size_t size = view.bytes().size();
  view.consume(size);
  return size > 0;
}

/// Takes until there are `size` bytes.
void take(tcp_stream& from, std::string& got, std::size_t size) {
  while (got.size() < size) {
    sim::check(take(from, got), "the end comes too early");
  }
}

/// Makes the engine of worker 0 of a runtime receive for the stream, and ends the runtime unless it is given.
void arm(tcp_stream& stream, runtime& in) {
  in.spawn([&] { sim::check(stream.lend(platform::now() + 1ms).error() == io_error::timed_out); }, {.worker = 0})
      .join();
}

TEST(lend, bytes_and_the_end) {
  for (const engine_kind engine : {engine_kind::epoll, engine_kind::uring}) {
    expect_passes(
        [engine] {
          connected c;
          std::string got;
          pirn_test::run_fibers(workers(2, engine), {[&] {
                                                       while (take(c.here, got)) {
                                                       }
                                                     },
                                                     [&] {
                                                       c.there.write("ab").value();
                                                       c.there.write("c").value();
                                                       c.there.close();
                                                     }});
          sim::check(got == "abc", "bytes are lost or mixed");
        },
        bound(1));
  }
}

TEST(lend, what_is_not_consumed_stays) {
  expect_passes(
      [] {
        connected c;
        run_fibers(2, {[&] {
                         read_view view = c.here.lend().value();
                         const std::string first(view.text().substr(0, 1));
                         view.consume(1);
                         view.release();
                         std::string rest = first;
                         take(c.here, rest, 3);
                         sim::check(rest == "abc");
                       },
                       [&] { c.there.write("abc").value(); }});
      },
      bound(1));
}

TEST(lend, read_and_wait_know_of_the_bytes) {
  expect_passes(
      [] {
        connected c;
        run_fibers(2, {[&] {
                         c.here.lend().value().release();
                         c.here.wait_readable().value();
                         char all[3];
                         c.here.read_exactly(all, 3).value();
                         sim::check(std::string_view(all, 3) == "abc");
                         c.here.wait_readable().value();
                         sim::check(c.here.read(all, 1).value() == 0);
                       },
                       [&] {
                         c.there.write("ab").value();
                         c.there.write("c").value();
                         c.there.shutdown(shutdown_half::write).value();
                       }});
      },
      bound(1));
}

TEST(lend, bytes_beside_a_stop) {
  expect_passes(
      [] {
        connected c;
        std::string got;
        std::optional<sim::one_schedule> apart(std::in_place);
        runtime both(workers(2));
        arm(c.here, both);
        fiber reader = both.spawn(
            [&] {
              if (const auto view = c.here.lend()) {
                got = view->text();
              } else {
                sim::check(view.error() == io_error::stopped);
              }
            },
            {.worker = 0});
        fiber writer = both.spawn(
            [&] {
              c.there.write("a").value();
              reader.request_stop();
            },
            {.worker = 1});
        apart.reset();
        writer.join();
        reader.join();
        apart.emplace();
        std::string again;
        both.spawn([&] { take(c.here, again, 1); }, {.worker = 0}).join();
        sim::check(again == "a", "a byte is lost");
      },
      bound(2));
}

TEST(lend, bytes_beside_a_deadline) {
  expect_passes(
      [] {
        connected c;
        std::string got;
        run_fibers(2, {[&] {
                         const auto early = c.here.lend(platform::now() + 1ms);
                         sim::check(early || early.error() == io_error::timed_out);
                       },
                       [&] {
                         static_cast<void>(this_fiber::sleep_for(1ms));
                         c.there.write("a").value();
                       }});
        take(c.here, got, 1);
        sim::check(got == "a");
      },
      bound(1));
}

TEST(lend, bytes_beside_a_close) {
  expect_passes(
      [] {
        connected c;
        run_fibers(2, {[&] {
                         const auto view = c.here.lend();
                         sim::check(view ? view->text() == "a" : view.error() == io_error::closed);
                       },
                       [&] {
                         c.there.write("a").value();
                         c.here.close();
                       }});
      },
      bound(1));
}

TEST(lend, a_close_wakes_a_reader) {
  for (const unsigned count : {1U, 2U}) {
    expect_passes(
        [count] {
          connected c;
          run_fibers(count, {[&] { sim::check(c.here.lend().error() == io_error::closed); }, [&] { c.here.close(); }});
        },
        bound(1));
  }
}

TEST(lend, a_close_on_another_worker_ends_what_is_armed) {
  expect_passes(
      [] {
        connected c;
        std::optional<sim::one_schedule> apart(std::in_place);
        runtime both(workers(2));
        arm(c.here, both);
        apart.reset();
        both.spawn([&] { c.here.close(); }, {.worker = 1}).join();
        char byte;
        sim::check(c.there.read(&byte, 1).value() == 0, "the peer does not hear of it");
        apart.emplace();
      },
      bound(2));
}

TEST(lend, a_close_of_a_plain_thread_ends_what_is_armed) {
  expect_passes(
      [] {
        connected c;
        std::optional<sim::one_schedule> apart(std::in_place);
        runtime one(workers(1));
        arm(c.here, one);
        apart.reset();
        c.here.close();
        apart.emplace();
      },
      bound(2));
}

TEST(lend, of_two_readers_one_is_refused_or_both_get_bytes) {
  expect_passes(
      [] {
        connected c;
        std::string got;
        const auto read = [&] {
          if (auto view = c.here.lend(platform::now() + 1ms)) {
            got += view->text();
            view->consume(view->bytes().size());
          } else {
            sim::check(view.error() == std::errc::device_or_resource_busy || view.error() == io_error::timed_out);
          }
        };
        run_fibers(2, {read, [&] { c.there.write("ab").value(); }, read});
        const auto rest = c.here.lend(platform::now() + 1ms);
        got += rest ? rest->text() : "";
        sim::check(got == "ab");
      },
      bound(1));
}

TEST(lend, a_wait_beside_it_hears_of_the_bytes) {
  for (const engine_kind engine : {engine_kind::epoll, engine_kind::uring}) {
    expect_passes(
        [engine] {
          connected c;
          pirn_test::run_fibers(workers(2, engine), {[&] { c.here.wait_readable().value(); },
                                                     [&] { static_cast<void>(c.here.lend(platform::now() + 1ms)); },
                                                     [&] {
                                                       static_cast<void>(this_fiber::sleep_for(2ms));
                                                       c.there.write("a").value();
                                                     }});
          std::string got;
          take(c.here, got, 1);
        },
        bound(1));
  }
}

TEST(lend, a_read_that_began_before_it_gets_the_rest) {
  for (const engine_kind engine : {engine_kind::epoll, engine_kind::uring}) {
    expect_passes(
        [engine] {
          connected c;
          std::string all;
          const auto read_one = [&] {
            char byte;
            auto got = c.here.read(&byte, 1);
            while (!got && got.error() == std::errc::device_or_resource_busy) {
              this_fiber::yield();  // until the view has ended
              got = c.here.read(&byte, 1);
            }
            sim::check(got.value() == 1);
            all += byte;
          };
          const auto lend_one = [&] {
            if (auto view = c.here.lend()) {
              all += view->text().front();
              view->consume(1);
            } else {
              sim::check(view.error() == std::errc::device_or_resource_busy);
            }
          };
          pirn_test::run_fibers(workers(2, engine), {read_one, lend_one, [&] { c.there.write("ab").value(); }});
          sim::check(all.find('a') != all.npos);
        },
        bound(1));
  }
}

TEST(lend, two_readers_of_one_byte_each) {
  for (const engine_kind engine : {engine_kind::epoll, engine_kind::uring}) {
    expect_passes(
        [engine] {
          connected c;
          sim::check(!c.here.lend(platform::now()));  // so that both look for bytes where `lend` keeps them
          const auto read_one = [&] {
            char byte;
            sim::check(c.here.read(&byte, 1).value() == 1);
          };
          pirn_test::run_fibers(workers(2, engine), {read_one, read_one, [&] { c.there.write("ab").value(); }});
        },
        bound(1));
  }
}

TEST(lend, readers_on_two_workers_wait_in_peace) {
  expect_passes(
      [] {
        connected c;
        const auto read = [&] { sim::check(c.here.lend(platform::now() + 1ms).error() == io_error::timed_out); };
        run_fibers(2, {read, read});
      },
      bound(1));
}

TEST(lend, a_reader_on_another_worker_gets_the_bytes_in_order) {
  expect_passes(
      [] {
        connected c;
        std::string got;
        std::optional<sim::one_schedule> apart(std::in_place);
        runtime both(workers(2));
        arm(c.here, both);
        fiber reader = both.spawn([&] { take(c.here, got, 3); }, {.worker = 1});
        apart.reset();
        c.there.write("ab").value();
        c.there.write("c").value();
        reader.join();
        apart.emplace();
        sim::check(got == "abc", "bytes are lost or mixed");
      },
      bound(1));
}

TEST(lend, a_plain_thread_gets_the_bytes_in_order) {
  expect_passes(
      [] {
        connected c;
        std::string got;
        std::optional<sim::one_schedule> apart(std::in_place);
        runtime one(workers(1));
        arm(c.here, one);
        apart.reset();
        const sim::thread writer([&] {
          c.there.write("ab").value();
          c.there.write("c").value();
        });
        take(c.here, got, 3);
        apart.emplace();
        sim::check(got == "abc", "bytes are lost or mixed");
      },
      bound(1));
}

TEST(lend, bytes_outlive_the_runtime_that_received_them) {
  expect_passes(
      [] {
        connected c;
        std::string got;
        {
          std::optional<sim::one_schedule> apart(std::in_place);
          std::optional<runtime> gone(std::in_place, workers(1));
          arm(c.here, *gone);
          apart.reset();
          const sim::thread writer([&] { c.there.write("abcdef").value(); });
          gone.reset();
        }
        take(c.here, got, 6);
        sim::check(got == "abcdef", "bytes are lost or mixed");
      },
      bound(2));
}

TEST(lend, a_view_outlives_its_stream_and_runtime) {
  expect_passes(
      [] {
        connected c;
        read_view kept;
        run_fibers(1, {[&] { kept = c.here.lend().value(); }, [&] { c.there.write("abcd").value(); }});
        c.here.close();
        sim::check(kept.text() == "abcd");
        kept.consume(4);
      },
      bound(1));
}

TEST(lend, a_greedy_connection_leaves_its_neighbour_something) {
  expect_passes(
      [] {
        connected greedy, modest;
        const std::string much = "0123456789abcdefghijklm";
        std::string got, other;
        run_fibers(1, {[&] {
                         read_view first = greedy.here.lend().value();
                         take(modest.here, other, 1);  // while a view of the other is kept
                         first.release();
                         take(greedy.here, got, much.size());
                       },
                       [&] {
                         greedy.there.write(much).value();
                         modest.there.write("x").value();
                       }});
        sim::check(got == much && other == "x", "bytes are lost or mixed");
      },
      bound(1));
}

TEST(lend, a_copy_that_fails_loses_nothing) {
  expect_passes(
      [] {
        connected from, to;
        std::string rest;
        run_fibers(2, {[&] {
                         to.here.shutdown(shutdown_half::write).value();
                         const copy_result done = copy(from.here, to.here);
                         sim::check(done.error == std::errc::broken_pipe && done.written == 0);
                         take(from.here, rest, 2);
                       },
                       [&] { from.there.write("ab").value(); }});
        sim::check(rest == "ab", "bytes are lost");
      },
      bound(1));
}

}  // namespace
