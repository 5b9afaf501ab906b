// Requests of an engine with the completion half: arrival, stop, deadline, close, a second caller and the end of the
// runtime, in every order.
#include <gtest/gtest.h>
#include <pirn/fiber/scope.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/io/expert/operation.hpp>
#include <pirn/net/tcp_listener.hpp>
#include <pirn/net/tcp_stream.hpp>

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

runtime_options workers(unsigned count) { return {.workers = count, .engine = engine_kind::uring}; }

void run_fibers(unsigned count, const std::vector<std::function<void()>>& bodies, bool migratable = false) {
  pirn_test::run_fibers(workers(count), bodies, migratable);
}

/// Reads one byte, which is `expected`, or fails with one of two errors. Returns whether it has read.
bool read_or_fail(tcp_stream& from, char expected, std::error_code error, time_point deadline = never) {
  char byte = '?';
  const auto got = from.read(&byte, 1, deadline);
  if (got) {
    sim::check(*got == 1 && byte == expected);
    return true;
  }
  sim::check(got.error() == error && byte == '?');
  return false;
}
bool read_or_fail(tcp_stream& from, char expected, io_error error, time_point deadline = never) {
  return read_or_fail(from, expected, make_error_code(error), deadline);
}

void run_with_stop(const std::function<void()>& waits, const std::function<void(fiber&)>& stops,
                   bool migratable = false) {
  pirn_test::run_beside(engine_kind::uring, waits, stops, migratable);
}

TEST(completion, a_byte_arrives) {
  expect_passes(
      [] {
        connected c;
        run_fibers(2, {[&] {
                         char byte = '?';
                         sim::check(c.here.read(&byte, 1).value() == 1 && byte == 'a');
                       },
                       [&] { c.there.write("a").value(); }});
      },
      bound(2));
}

TEST(completion, a_byte_arrives_beside_a_stop) {
  expect_passes(
      [] {
        connected c;
        bool got = false;
        run_with_stop([&] { got = read_or_fail(c.here, 'a', io_error::stopped); },
                      [&](fiber& waits) {
                        c.there.write("a").value();
                        waits.request_stop();
                      });
        sim::check(got || read_or_fail(c.here, 'a', io_error::closed, platform::now() + 1s), "a byte is lost");
      },
      bound(2));
}

TEST(completion, a_byte_arrives_after_a_stop) {
  expect_passes(
      [] {
        connected c;
        bool got = false;
        run_with_stop([&] { got = read_or_fail(c.here, 'a', io_error::stopped); },
                      [&](fiber& waits) {
                        waits.request_stop();
                        c.there.write("ab").value();
                      });
        sim::check(read_or_fail(c.here, got ? 'b' : 'a', io_error::closed, platform::now() + 1s), "a byte is lost");
      },
      bound(1));
}

TEST(completion, a_byte_arrives_beside_a_deadline) {
  expect_passes(
      [] {
        connected c;
        bool got = false;
        run_fibers(2, {[&] { got = read_or_fail(c.here, 'a', io_error::timed_out, platform::now() + 1ms); },
                       [&] {
                         static_cast<void>(this_fiber::sleep_for(1ms));
                         c.there.write("a").value();
                       }});
        sim::check(got || read_or_fail(c.here, 'a', io_error::closed, platform::now() + 1s), "a byte is lost");
      },
      bound(1));
}

TEST(completion, a_request_that_ends_beside_its_deadline_leaves_the_next_one_alone) {
  expect_passes(
      [] {
        connected late, other;
        run_fibers(1, {[&] {
                         char byte = '?';
                         const auto got = late.here.read(&byte, 1, platform::now() + 1ms);
                         sim::check(got.value() == 1 && byte == 'a');
                       },
                       [&] {
                         // Its request is made between the end of the first one and the fiber of that, with its slot.
                         static_cast<void>(this_fiber::sleep_for(900us));
                         char byte = '?';
                         sim::check(other.here.read(&byte, 1).value() == 1 && byte == 'b');
                       },
                       [&] {
                         this_fiber::yield();
                         for (const auto begin = platform::now(); platform::now() < begin + 2ms;) {
                         }
                         late.there.write("a").value();
                         static_cast<void>(this_fiber::sleep_for(1ms));
                         other.there.write("b").value();
                       }});
      },
      bound(1));
}

TEST(completion, a_migratable_reader_is_stopped) {
  expect_passes(
      [] {
        connected c;
        bool got = false;
        run_with_stop([&] { got = read_or_fail(c.here, 'a', io_error::stopped); },
                      [&](fiber& waits) {
                        c.there.write("a").value();
                        waits.request_stop();
                        this_fiber::yield();
                      },
                      true);
        sim::check(got || read_or_fail(c.here, 'a', io_error::closed, platform::now() + 1s), "a byte is lost");
      },
      bound(1));
}

TEST(completion, a_close_ends_a_read) {
  expect_passes(
      [] {
        connected c;
        run_fibers(2, {[&] { read_or_fail(c.here, 'a', io_error::closed); }, [&] { c.here.close(); }});
      },
      bound(1));
}

TEST(completion, a_close_beside_a_byte_and_a_deadline) {
  expect_passes(
      [] {
        connected c;
        run_fibers(
            2, {[&] {
                  char byte = '?';
                  const auto got = c.here.read(&byte, 1, platform::now() + 1ms);
                  sim::check(got ? byte == 'a' : got.error() == io_error::closed || got.error() == io_error::timed_out);
                },
                [&] {
                  c.there.write("a").value();
                  c.here.close();
                }});
      },
      bound(2));
}

TEST(completion, a_close_beside_a_stop) {
  expect_passes(
      [] {
        connected c;
        run_with_stop(
            [&] {
              char byte = '?';
              const auto got = c.here.read(&byte, 1);
              sim::check(!got && (got.error() == io_error::closed || got.error() == io_error::stopped));
            },
            [&](fiber& waits) {
              waits.request_stop();
              c.here.close();
            });
      },
      bound(1));
}

TEST(completion, two_readers_share_two_bytes) {
  expect_passes(
      [] {
        connected c;
        const auto read = [&] {
          char byte = '?';
          sim::check(c.here.read(&byte, 1).value() == 1 && byte == 'a');
        };
        run_fibers(2, {read, read, [&] { c.there.write("aa").value(); }});
      },
      bound(1));
}

TEST(completion, of_two_readers_one_is_stopped) {
  expect_passes(
      [] {
        connected c;
        bool first = false;
        std::optional<sim::one_schedule> apart(std::in_place);
        runtime both(workers(2));
        fiber stopped = both.spawn([&] { first = read_or_fail(c.here, 'a', io_error::stopped); }, {.worker = 0});
        fiber other = both.spawn([&] { sim::check(read_or_fail(c.here, 'a', io_error::closed)); }, {.worker = 1});
        apart.reset();
        c.there.write("a").value();
        stopped.request_stop();
        stopped.join();
        if (first) {
          c.there.write("a").value();
        }
        other.join();
        apart.emplace();
      },
      bound(1));
}

TEST(completion, a_connection_is_accepted_beside_a_stop) {
  expect_passes(
      [] {
        auto listener = tcp_listener::listen({ip_address::loopback_v4(), 0}).value();
        const endpoint at = listener.local_endpoint().value();
        tcp_stream client;
        int accepted = 0;
        run_with_stop(
            [&] {
              const auto made = listener.accept();
              sim::check(made || made.error() == io_error::stopped);
              accepted += made ? 1 : 0;
            },
            [&](fiber& waits) {
              client = tcp_stream::connect(at).value();
              waits.request_stop();
            });
        accepted += listener.accept(platform::now() + 1s) ? 1 : 0;
        sim::check(accepted == 1, "a connection is lost");
      },
      bound(2));
}

TEST(completion, a_connection_is_accepted_beside_a_close) {
  expect_passes(
      [] {
        auto listener = tcp_listener::listen({ip_address::loopback_v4(), 0}).value();
        const endpoint at = listener.local_endpoint().value();
        run_fibers(2, {[&] {
                         const auto made = listener.accept();  // closed with it, or by the end of the listener
                         sim::check(made || made.error() == io_error::closed);
                       },
                       [&] {
                         static_cast<void>(tcp_stream::connect(at));
                         listener.close();
                       }});
      },
      bound(1));
}

TEST(completion, a_stream_outlives_its_runtime) {
  expect_passes(
      [] {
        connected c;
        const auto wait = [&] {
          const sim::one_schedule apart;
          runtime gone(workers(1));
          gone.run([&] { sim::check(!read_or_fail(c.here, 'a', io_error::timed_out, platform::now() + 1ms)); });
        };
        wait();
        run_fibers(2, {[&] { sim::check(read_or_fail(c.here, 'a', io_error::closed)); },
                       [&] { c.there.write("ab").value(); }});
        runtime last({.workers = 1});  // by readiness
        last.run([&] { sim::check(read_or_fail(c.here, 'b', io_error::closed)); });
      },
      bound(1));
}

TEST(completion, a_scope_with_a_deadline_ends_a_read) {
  expect_passes(
      [] {
        connected c;
        bool got = false;
        run_fibers(2, {[&] {
                         scope limited({.deadline = platform::now() + 1ms});
                         got = read_or_fail(c.here, 'a', io_error::expired);
                       },
                       [&] {
                         static_cast<void>(this_fiber::sleep_for(1ms));
                         c.there.write("a").value();
                       }});
        sim::check(got || read_or_fail(c.here, 'a', io_error::closed, platform::now() + 1s), "a byte is lost");
      },
      bound(1));
}

TEST(completion, a_plain_thread_reads_beside_a_fiber) {
  expect_passes(
      [] {
        connected c;
        std::optional<sim::one_schedule> apart(std::in_place);
        runtime one(workers(1));
        const auto read = [&] {
          char byte = '?';
          sim::check(c.here.read(&byte, 1).value() == 1 && byte == 'a');
        };
        fiber reader = one.spawn(read);
        apart.reset();
        c.there.write("aa").value();
        read();
        reader.join();
        apart.emplace();
      },
      bound(2));
}

/// Sends one byte while another fiber of the worker is ready, so that the send is a request.
result<> send_beside_another(tcp_stream& to, char byte, time_point deadline = never) {
  fiber other = spawn([] {}, {.worker = 0});
  const result<> sent = to.write(&byte, 1, deadline);
  other.join();
  return sent;
}

/// Reads what the other side has sent, until it has ended its half.
std::string rest(tcp_stream& from) {
  std::string all;
  char byte = '?';
  while (from.read(&byte, 1).value() == 1) {
    all += byte;
  }
  return all;
}

TEST(completion, a_byte_is_sent_beside_a_stop) {
  expect_passes(
      [] {
        connected c;
        bool sent = false;
        run_with_stop(
            [&] {
              const result<> done = send_beside_another(c.here, 'a');
              sim::check(done || done.error() == io_error::stopped);
              sent = done.has_value();
            },
            [](fiber& waits) { waits.request_stop(); });
        c.here.close();
        sim::check(rest(c.there) == (sent ? "a" : ""), "a byte is sent unseen, or lost");
      },
      bound(1));
}

TEST(completion, a_byte_is_sent_beside_a_close) {
  expect_passes(
      [] {
        connected c;
        bool sent = false;
        run_fibers(2, {[&] {
                         const result<> done = send_beside_another(c.here, 'a');
                         sim::check(done || done.error() == io_error::closed);
                         sent = done.has_value();
                       },
                       [&] { c.here.close(); }});
        sim::check(rest(c.there) == (sent ? "a" : ""), "a byte is sent unseen, or lost");
      },
      bound(1));
}

TEST(completion, a_byte_waits_for_room_until_a_deadline) {
  expect_passes(
      [] {
        connected c;
        const std::string much(std::size_t{1} << 16, 'm');
        const std::size_t full = c.here.write_some(much.data(), much.size()).value();
        bool sent = false;
        run_fibers(2, {[&] {
                         const result<> done = send_beside_another(c.here, 'a', platform::now() + 1ms);
                         sim::check(done || done.error() == io_error::timed_out);
                         sent = done.has_value();
                       },
                       [&] {
                         static_cast<void>(this_fiber::sleep_for(1ms));
                         std::string room(full, ' ');
                         sim::check(c.there.read_exactly(room.data(), full).has_value());
                       }});
        c.here.close();
        sim::check(rest(c.there) == (sent ? "a" : ""), "a byte is sent unseen, or lost");
      },
      bound(1));
}

}  // namespace
