// pirn::call between two fibers of one worker while a third one, of another worker, disturbs it: a request is received
// once, an answer too, and no receiver is left behind.
#include <pirn/sync/call.hpp>

#include "sim/fibers.hpp"

using namespace pirn;
using pirn_test::expect_passes;
using pirn_test::run_fibers;

namespace {

/// What a server of two requests has received and answered; it answers by a call.
struct service {
  explicit service(std::size_t room) : requests(room), answers(room) {}

  void serve() {
    auto request = requests.receive();
    while (request) {
      ++received;
      request = call(answers, *request + 1, requests);
    }
  }
  /// Calls twice; returns the number of answers.
  int ask() {
    int got = 0;
    for (const int number : {1, 2}) {
      const auto answer = call(requests, int(number), answers);
      if (!answer) {
        break;
      }
      sim::check(*answer == number + 1 || shared, "the answer is that of its request");
      ++got;
    }
    return got;
  }

  channel<int> requests;
  channel<int> answers;
  int received = 0;
  bool shared = false;  ///< with another caller, which takes no answer
};

/// Runs a caller and a server on one worker and `other` on another one. At the end all channels are closed.
void serve_beside(service& of, const std::function<void(fiber&)>& other, const std::function<void(int)>& asked) {
  std::optional<sim::one_schedule> apart(std::in_place);
  runtime both({.workers = 2});
  fiber server = both.spawn([&] { of.serve(); }, {.worker = 0});
  fiber caller = both.spawn(
      [&] {
        asked(of.ask());
        of.requests.close();
        of.answers.close();
      },
      {.worker = 0});
  fiber disturber = both.spawn([&] { other(caller); }, {.worker = 1});
  apart.reset();
  disturber.join();
  caller.join();
  server.join();
  apart.emplace();
}

TEST(call, as_a_channel_is_closed) {
  for (const bool of_requests : {true, false}) {
    expect_passes([of_requests] {
      service s(0);
      serve_beside(
          s, [&](fiber& /*caller*/) { (of_requests ? s.requests : s.answers).close(); },
          [&](int answers) { sim::check(answers <= s.received && s.received <= answers + 1); });
    });
  }
}

TEST(call, as_a_stop_comes) {
  expect_passes([] {
    service s(0);
    serve_beside(
        s, [&](fiber& caller) { caller.request_stop(); },
        [&](int answers) {
          sim::check(answers <= s.received && s.received <= answers + 1);
          sim::check(!s.answers.try_send(9), "no receiver is left");
        });
  });
}

TEST(call, as_another_one_sends_a_request) {
  expect_passes([] {
    service s(1);
    s.shared = true;
    bool sent = false;
    serve_beside(s, [&](fiber& /*caller*/) { sent = s.requests.try_send(1).has_value(); }, [&](int /*answers*/) {});
    // Two requests are the caller's. An answer that is not received by a call is in the channel.
    sim::check(s.received <= 2 + static_cast<int>(sent) && s.received >= 2, "each request is received once");
  });
}

TEST(call, of_two_callers_on_two_workers) {
  expect_passes([] {
    channel<int> requests;
    channel<int> mine;
    channel<int> others;
    run_fibers(
        2, {[&] {
              for (int i = 0; i < 2; ++i) {
                const int request = requests.receive().value();
                (request == 1 ? mine : others).send(request + 1, wake_policy::switch_over).value();
              }
            },
            [&] { sim::check(call(requests, 10, others) == 11); }, [&] { sim::check(call(requests, 1, mine) == 2); }});
  });
}

}  // namespace
