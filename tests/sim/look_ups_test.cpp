// The look-ups that callers share, and the race of connections: each caller gets its answer, whatever the others do.
#include <optional>
#include <string>
#include <utility>

#include "net/connection_race.hpp"
#include "net/look_ups.hpp"
#include "pirn/net/tcp_listener.hpp"
#include "pirn/sim/network.hpp"
#include "sim/together.hpp"

using namespace pirn;
using namespace std::chrono_literals;
using detail::look_up_call;
using detail::look_ups;
using detail::record_kind;
using pirn_test::expect_passes;
using pirn_test::run_fibers;
using pirn_test::run_together;
using pirn_test::soon;

namespace {

/// A server in memory, which answers every query once it is open.
class memory_server {
 public:
  static constexpr int none = 0, name_a = 1, all_names = 2;  ///< what it answers
  class driver final : public detail::name_driver {
   public:
    explicit driver(memory_server& server) noexcept : server_(server) {}
    void ask(std::shared_ptr<detail::query> what, end_call end, look_ups& of) noexcept override {
      ++server_.asked;
      if (server_.at_once) {
        detail::answer given = answer();
        given.time_to_live = 60s;
        given.texts.emplace_back(server_.text, 'x');
        end(of, *what, std::move(given));
      } else {
        pending_.push_back({std::move(what), end, &of});
        if (server_.open_for.load() != none) {
          server_.ready.set();
        }
      }
    }
    platform::time_point next_look() noexcept override { return platform::never; }
    result<> wait(platform::time_point deadline) noexcept override {
      sim::check(!waiting_, "two callers drive");
      waiting_ = true;
      const auto woken = server_.ready.wait(deadline);
      waiting_ = false;
      return woken ? result<>() : fail(make_error_code(woken.error()));
    }
    void process() noexcept override {
      const int open = server_.open_for.load();
      for (auto& each : std::exchange(pending_, {})) {
        if (open == all_names || (open == name_a && each.what->asked.name == "a")) {
          each.end(*each.of, *each.what, answer());
        } else {
          pending_.push_back(std::move(each));
        }
      }
    }
    void cancel_all() noexcept override {
      ++server_.cancelled;
      for (auto& each : std::exchange(pending_, {})) {
        detail::answer stopped;
        stopped.error = io_error::stopped;
        each.end(*each.of, *each.what, std::move(stopped));
      }
    }
    [[nodiscard]] bool idle() const noexcept { return pending_.empty(); }

   private:
    struct one {
      std::shared_ptr<detail::query> what;
      end_call end;
      look_ups* of;
    };
    static detail::answer answer() {
      detail::answer made;
      made.addresses = {ip_address::loopback_v4()};
      return made;
    }
    memory_server& server_;
    std::vector<one> pending_;
    bool waiting_ = false;
  };

  explicit memory_server(std::size_t cached = 0)
      : shared{std::unique_ptr<detail::name_driver>(made), {.cached = cached}} {}

  event ready{event_reset::automatic};
  int asked = 0;
  int cancelled = 0;
  bool at_once = false;
  std::size_t text = 0;  ///< its length in an answer that is given at once
  sim::atomic<int> open_for{none};
  driver* made = new driver(*this);
  look_ups shared;

  /// Looks a name up; returns the error, or none with the right answer.
  std::error_code look_up(const char* name, time_limit deadline = platform::never) {
    look_up_call call(shared, {name, record_kind::a});
    look_up_call* const only[] = {&call};
    if (const auto done = shared.wait(only, look_ups::quorum::all, deadline); !done) {
      return done.error();
    }
    const auto got = call.find_answer();
    sim::check(got != nullptr && !got->error && got->addresses.size() == 1, "the answer");
    return {};
  }
  void open(int names = all_names) {
    open_for.store(names);
    ready.set();
  }
  /// Whether nothing is left of what the callers did.
  [[nodiscard]] bool idle() const { return made->idle(); }
};

}  // namespace

TEST(look_ups, callers_of_one_name_share_a_query) {
  for (const unsigned threads : {0U, 1U}) {
    expect_passes(
        [=] {
          memory_server server;
          run_together({[&] { server.open(); }, [&] { sim::check(!server.look_up("a")); },
                        [&] { sim::check(!server.look_up("a")); }},
                       {.threads = threads});
          sim::check(server.idle() && server.asked <= 2 && server.cancelled == 0);
        },
        {.preemptions = 1});
  }
}

TEST(look_ups, an_answer_is_kept_unless_it_is_large) {
  expect_passes(
      [] {
        for (const auto& [text, asked] : {std::pair<std::size_t, int>{3000, 1}, {5000, 2}}) {
          memory_server server(10);
          server.at_once = true;
          server.text = text;
          sim::check(!server.look_up("a") && !server.look_up("a"));
          sim::check(server.asked == asked);
        }
      },
      {.preemptions = 0});
}

TEST(look_ups, callers_of_two_names_drive_for_each_other) {
  expect_passes(
      [] {
        memory_server server;
        run_together({[&] { server.open(); }, [&] { sim::check(!server.look_up("a")); },
                      [&] { sim::check(!server.look_up("b")); }});
        sim::check(server.idle() && server.asked == 2);
      },
      {.preemptions = 1});
}

TEST(look_ups, an_answer_wakes_a_caller_that_does_not_drive) {
  expect_passes(
      [] {
        memory_server server;
        run_together({[&] { server.open(server.name_a); }, [&] { sim::check(!server.look_up("b")); },
                      [&] {
                        sim::check(!server.look_up("a"));
                        server.open();
                      }});
        sim::check(server.idle());
      },
      {.preemptions = 1});
}

TEST(look_ups, a_stopped_caller_leaves_the_others) {
  expect_passes(
      [] {
        memory_server server;
        std::vector<fiber> fibers;
        std::error_code first;
        run_together({[&] { first = server.look_up("a"); }, [&] { sim::check(!server.look_up("a")); },
                      [&] {
                        fibers[0].request_stop();
                        server.open();
                      }},
                     {.fibers = &fibers});
        sim::check(!first || first == io_error::stopped);
        sim::check(server.idle());
      },
      {.preemptions = 1});
}

TEST(look_ups, an_expired_caller_leaves_the_others) {
  expect_passes(
      [] {
        memory_server server;
        const time_point when = soon();
        std::error_code first;
        run_together({[&] { first = server.look_up("a", when); }, [&] { sim::check(!server.look_up("a")); },
                      [&] {
                        static_cast<void>(this_fiber::sleep_until(when));
                        server.open();
                      }});
        sim::check(!first || first == io_error::timed_out);
        sim::check(server.idle());
      },
      {.preemptions = 1});
}

TEST(look_ups, queries_without_callers_end) {
  expect_passes(
      [] {
        memory_server server;
        const time_point when = soon();
        const auto expire = [&](const char* name) { sim::check(server.look_up(name, when) == io_error::timed_out); };
        run_together({[&] { expire("a"); }, [&] { expire("b"); }});
        sim::check(server.idle() && server.cancelled >= 1);
      },
      {.preemptions = 1});
}

TEST(look_ups, a_caller_of_two_questions_takes_the_first_answer) {
  expect_passes(
      [] {
        memory_server server;
        run_together({[&] {
                        look_up_call a(server.shared, {"a", record_kind::a});
                        look_up_call b(server.shared, {"a", record_kind::aaaa});
                        look_up_call* const both[] = {&a, &b};
                        sim::check(server.shared.wait(both, look_ups::quorum::any, never).has_value());
                        sim::check(a.find_answer() != nullptr || b.find_answer() != nullptr);
                        sim::check(server.shared.wait(both, look_ups::quorum::all, never).has_value());
                        sim::check(a.find_answer() != nullptr && b.find_answer() != nullptr);
                      },
                      [&] { sim::check(!server.look_up("a")); }, [&] { server.open(); }});
        sim::check(server.idle());
      },
      {.preemptions = 1});
}

TEST(look_ups, answers_that_come_at_once) {
  expect_passes([] {
    memory_server server;
    server.at_once = true;
    run_together({[&] { sim::check(!server.look_up("a")); }, [&] { sim::check(!server.look_up("a")); }});
    sim::check(server.idle() && server.asked == 2);
  });
}

// ---- the race ------------------------------------------------------------------------------------------------------

namespace {

constexpr endpoint first{ip_address::loopback_v4(), 1};
constexpr endpoint second{ip_address::loopback_v4(), 2};
constexpr endpoint third{ip_address::loopback_v4(), 3};

/// Accepts connections until it is stopped, and waits for the end of each: a connection that stays open hangs.
void accept_all(tcp_listener& listener) {
  while (auto accepted = listener.accept(never)) {
    char byte;
    sim::check(accepted->read(&byte, 1).value_or(0) == 0);
  }
}

}  // namespace

TEST(connection_race, one_connection_is_left) {
  expect_passes(
      [] {
        tcp_listener a = tcp_listener::listen(first).value(), b = tcp_listener::listen(second).value();
        run_fibers(2, {[&] {
                     fiber serving_a = spawn([&] { accept_all(a); });
                     fiber serving_b = spawn([&] { accept_all(b); });
                     const endpoint both[] = {first, second};
                     {
                       const auto made = connect_any(both);
                       sim::check(made.has_value());
                     }
                     a.close();
                     b.close();
                     serving_a.join();
                     serving_b.join();
                   }});
      },
      {.preemptions = 2});
}

TEST(connection_race, one_of_two_that_arrive_at_once) {
  expect_passes(
      [] {
        tcp_listener a = tcp_listener::listen(first).value(), b = tcp_listener::listen(second).value();
        std::optional<sim::partition> apart_a(first.port), apart_b(second.port);
        const time_point both_wait = platform::later(platform::now(), attempt_delay + 1ms);
        // Which connections are left. The deadline is later than that of the race.
        const auto count_open = [&](tcp_listener& at) {
          int open = 0;
          while (auto accepted = at.accept(soon())) {
            char byte;
            open += accepted->read(&byte, 1, soon()).error() == io_error::timed_out ? 1 : 0;
          }
          return open;
        };
        run_together({[&] {
                        const endpoint both[] = {first, second};
                        const auto made = connect_any(both);
                        sim::check(made.has_value());
                        sim::check(count_open(a) + count_open(b) == 1, "the other one is closed");
                      },
                      [&] {
                        static_cast<void>(this_fiber::sleep_until(both_wait));
                        apart_a.reset();
                        apart_b.reset();
                      }},
                     {.migratable = true});
      },
      {.preemptions = 1});
}

TEST(connection_race, the_next_one_begins_after_a_refusal) {
  expect_passes(
      [] {
        tcp_listener b = tcp_listener::listen(second).value();
        run_fibers(2, {[&] {
                     fiber serving = spawn([&] { accept_all(b); });
                     const endpoint both[] = {first, second};
                     const auto begin = platform::now();
                     sim::check(connect_any(both).has_value());
                     sim::check(platform::now() - begin < attempt_delay, "without a pause");
                     b.close();
                     serving.join();
                   }});
      },
      {.preemptions = 2});
}

TEST(connection_race, the_next_one_begins_after_a_refusal_beside_one_that_runs) {
  expect_passes(
      [] {
        tcp_listener silent = tcp_listener::listen(first).value(), good = tcp_listener::listen(third).value();
        const sim::partition apart(first.port);
        run_fibers(1, {[&] {
                     const endpoint all[] = {first, second, third};
                     const auto begin = platform::now();
                     sim::check(connect_any(all).has_value());
                     sim::check(platform::now() - begin < attempt_delay + attempt_delay / 4, "without a second pause");
                   }});
      },
      {.preemptions = 1});
}

TEST(connection_race, many_dead_addresses_cost_no_more_than_five) {
  for (const std::size_t dead : {5UZ, 20UZ, 132UZ}) {
    expect_passes(
        [dead] {
          tcp_listener silent = tcp_listener::listen(first).value(), good = tcp_listener::listen(second).value();
          const sim::partition apart(first.port);
          run_fibers(1, {[&] {
                       std::vector<endpoint> all(dead, first);
                       all.push_back(second);
                       const auto begin = platform::now();
                       sim::check(connect_any(all).has_value());
                       sim::check(platform::now() - begin < 300ms, "as documented");
                     }});
        },
        {.preemptions = 0, .fairness = 100'000});  // the clock advances by itself after as many steps
  }
}

TEST(connection_race, addresses_that_come_while_it_runs) {
  expect_passes(
      [] {
        tcp_listener b = tcp_listener::listen(second).value();
        const connect_options how;
        run_together({[&] {
          detail::connection_race race(how);
          fiber adding = spawn([&] {
            race.add({&first, 1});
            this_fiber::yield();
            race.add({&second, 1});
            race.finish({});
          });
          sim::check(race.run(never).has_value());
          adding.join();
        }});
      },
      {.preemptions = 2});
}

TEST(connection_race, a_stop_leaves_no_connection) {
  expect_passes(
      [] {
        tcp_listener a = tcp_listener::listen(first).value();
        std::vector<fiber> fibers;
        run_together({[&] {
                        const auto made = connect_any({&first, 1});
                        sim::check(made || made.error() == io_error::stopped);
                      },
                      [&] { fibers[0].request_stop(); }},
                     {.fibers = &fibers});
        while (auto accepted = a.accept(soon())) {
          char byte;
          const auto end = accepted->read(&byte, 1, soon());
          sim::check(!end ? end.error() == std::errc::connection_reset : *end == 0);
        }
      },
      {.preemptions = 2});
}
