// A descriptor between runtimes and between users, on the network of an exploration.
#include <gtest/gtest.h>
#include <pirn/fiber/this_fiber.hpp>

#include <optional>
#include <string>

#include "sim/connected.hpp"
#include "sim/fibers.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using pirn_test::connected;
using pirn_test::expect_passes;
using pirn_test::run_fibers;

namespace {

sim::options bound(unsigned preemptions) { return {.preemptions = preemptions}; }

/// Waits for `stream` in a runtime that is gone afterwards.
void wait_in_another_runtime(tcp_stream& stream) {
  const sim::one_schedule apart;
  runtime gone({.workers = 1});
  gone.run([&] {
    char byte;
    sim::check(stream.read(&byte, 1, platform::now() + 1ms).error() == io_error::timed_out);
  });
}

void read_one(tcp_stream& from, char expected) {
  char byte = '?';
  sim::check(from.read(&byte, 1).value() == 1 && byte == expected);
}

TEST(reattachment, a_reader_and_a_writer_of_two_workers) {
  expect_passes(
      [] {
        connected c;
        wait_in_another_runtime(c.here);
        const std::string much(5000, 'x');  // more than there is room for
        run_fibers(3, {[&] { read_one(c.here, 'a'); }, [&] { c.here.write(much).value(); },
                       [&] {
                         std::string got(much.size(), ' ');
                         c.there.write("a").value();
                         c.there.read_exactly(got.data(), got.size()).value();
                       }});
      },
      bound(1));
}

TEST(reattachment, two_readers_of_two_workers) {
  expect_passes(
      [] {
        connected c;
        wait_in_another_runtime(c.here);
        run_fibers(
            2, {[&] { read_one(c.here, 'a'); }, [&] { read_one(c.here, 'a'); }, [&] { c.there.write("aa").value(); }});
      },
      bound(1));
}

TEST(reattachment, what_had_come_before_is_read) {
  expect_passes(
      [] {
        connected c;
        {
          const sim::one_schedule apart;
          runtime gone({.workers = 1});
          gone.run([&] {
            c.there.write("a").value();
            char several[8];
            sim::check(c.here.read(several, sizeof several).value() == 1);
            sim::check(c.here.read(several, sizeof several, platform::now() + 1ms).error() == io_error::timed_out);
            c.there.write("a").value();
            sim::check(c.here.read(several, sizeof several).value() == 1);  // and no other byte has come
          });
        }
        run_fibers(2, {[&] { read_one(c.here, 'a'); }, [&] { c.there.write("a").value(); }});
      },
      bound(2));
}

TEST(reattachment, beside_a_close) {
  expect_passes(
      [] {
        connected c;
        wait_in_another_runtime(c.here);
        run_fibers(2, {[&] {
                         char byte;
                         const auto got = c.here.read(&byte, 1);
                         sim::check(!got && got.error() == io_error::closed);
                       },
                       [&] { c.here.close(); }});
      },
      bound(2));
}

TEST(reattachment, a_waiter_of_another_runtime_goes_on) {
  expect_passes(
      [] {
        connected c;
        std::optional<sim::one_schedule> apart(std::in_place);
        std::optional<runtime> first(std::in_place, runtime_options{.workers = 1});
        runtime second({.workers = 1});
        first->run([&] {
          char byte;
          sim::check(c.here.read(&byte, 1, platform::now() + 1ms).error() == io_error::timed_out);
        });
        apart.reset();
        fiber reader = second.spawn([&] { read_one(c.here, 'a'); });
        first.reset();  // the reader may wait at its engine
        c.there.write("a").value();
        reader.join();
        apart.emplace();
      },
      bound(1));
}

TEST(numbers, are_kept_while_a_call_uses_them) {
  const auto beside_a_close = [](auto ask) {
    return [ask] {
      connected c;
      run_fibers(2, {[&] {
                       const auto got = ask(c.here);
                       sim::check(got || got.error() == io_error::closed);
                     },
                     [&] { c.here.close(); }});
    };
  };
  expect_passes(beside_a_close([](tcp_stream& s) { return s.remote_endpoint(); }), bound(2));
  expect_passes(beside_a_close([](tcp_stream& s) { return s.local_endpoint(); }), bound(2));
  expect_passes(beside_a_close([](tcp_stream& s) { return s.set_delay(tcp_stream::delay::allowed); }), bound(2));
  expect_passes(beside_a_close([](tcp_stream& s) { return s.shutdown(shutdown_half::write); }), bound(2));
}

}  // namespace
