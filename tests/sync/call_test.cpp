// pirn::call: a request and its answer in one step, between fibers of one worker and of several, and its errors.
#include "pirn/sync/call.hpp"

#include <memory>
#include <string>

#include "fiber/support.hpp"
#include "pirn/sync/expert/local.hpp"
#include "pirn/sync/select.hpp"

namespace {

using namespace pirn_test;
using pirn::channel;
using pirn::wait_error;

/// Answers each request by the next number, until `requests` is closed.
template <class Channel>
void answer_all(Channel& requests, Channel& answers) {
  auto request = requests.receive();
  while (request) {
    request = pirn::call(answers, *request + 1, requests);
  }
  EXPECT_EQ(request.error(), wait_error::closed);
}

template <class Channel>
void count_to(int count, Channel& requests, Channel& answers) {
  int number = 0;
  while (number < count) {
    const auto answer = pirn::call(requests, number, answers);
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(*answer, number + 1);
    number = *answer;
  }
}

TEST(call, each_request_gets_its_answer) {
  for (const unsigned turns : {0u, 1u, 3u, pirn::runtime_options{}.lifo_turns}) {
    for (const std::size_t room : {0u, 1u, 3u}) {
      for (const int server : {0, 1}) {
        rig r(2, {.lifo_turns = turns});
        channel<int> requests(room);
        channel<int> answers(room);
        pirn::fiber answering = r.rt.spawn([&] { answer_all(requests, answers); }, {.worker = server});
        pirn::fiber asking = r.rt.spawn([&] { count_to(500, requests, answers); }, {.worker = 0});
        asking.join();
        requests.close();
        // Its last answer may find no receiver.
        static_cast<void>(answers.try_receive());
        answers.close();
        answering.join();
      }
    }
  }
}

TEST(call, a_plain_thread_and_a_migratable_fiber_call_too) {
  rig r(2);
  channel<int> requests;
  channel<int> answers;
  pirn::fiber answering = r.rt.spawn([&] {
    for (auto request = requests.receive(); request; request = requests.receive()) {
      EXPECT_TRUE(answers.send(*request + 1).has_value());
    }
  });
  count_to(20, requests, answers);
  r.rt.spawn([&] { count_to(20, requests, answers); }, {.migratable = true}).join();
  requests.close();
  answering.join();
}

TEST(call, within_a_local_channel) {
  rig r(1);
  r.rt.run([] {
    pirn::local::channel<int> requests;
    pirn::local::channel<int> answers;
    pirn::fiber answering = pirn::spawn([&] {
      for (auto request = requests.receive(); request; request = requests.receive()) {
        EXPECT_TRUE(answers.send(*request + 1, pirn::wake_policy::switch_over).has_value());
      }
    });
    count_to(200, requests, answers);
    requests.close();
    answering.join();
  });
}

TEST(call, values_of_other_types) {
  rig r(1);
  channel<std::unique_ptr<int>> requests;
  channel<std::string> answers;
  pirn::fiber answering = r.rt.spawn([&] {
    while (auto request = requests.receive()) {
      EXPECT_TRUE(answers.send(std::to_string(**request)).has_value());
    }
  });
  r.rt.run([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(pirn::call(requests, std::make_unique<int>(i), answers).value(), std::to_string(i));
    }
  });
  requests.close();
  answering.join();
}

TEST(call, runs_a_waiting_server_before_all_that_is_ready) {
  rig r(1);
  r.rt.run([] {
    channel<int> requests;
    channel<int> answers;
    std::string order;
    pirn::fiber answering = pirn::spawn([&] {
      const int request = requests.receive().value();
      order += 's';
      EXPECT_TRUE(answers.send(int{request}, pirn::wake_policy::switch_over).has_value());
    });
    pirn::this_fiber::yield();
    pirn::fiber other = pirn::spawn([&] { order += 'o'; });
    EXPECT_EQ(pirn::call(requests, 7, answers), 7);
    order += 'c';
    other.join();
    EXPECT_EQ(order, "sco");
    answering.join();
  });
}

TEST(call, again_and_again_starves_no_other_fiber) {
  rig r(1, {.lifo_turns = 10});
  r.rt.run([] {
    channel<int> requests;
    channel<int> answers;
    int calls = 0;
    pirn::fiber answering = pirn::spawn([&] { answer_all(requests, answers); });
    pirn::this_fiber::yield();
    pirn::fiber other = pirn::spawn([&] { EXPECT_LE(calls, 20); });
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(pirn::call(requests, i, answers), i + 1);
      ++calls;
    }
    other.join();
    requests.close();
    answering.join();
  });
}

TEST(call, takes_a_value_that_is_there_already_and_still_sends) {
  rig r(1);
  r.rt.run([] {
    channel<int> requests;
    channel<int> answers(1);
    int received = 0;
    pirn::fiber answering = pirn::spawn([&] { received = requests.receive().value(); });
    pirn::this_fiber::yield();
    EXPECT_TRUE(answers.send(5).has_value());
    EXPECT_EQ(pirn::call(requests, 6, answers), 5);
    answering.join();
    EXPECT_EQ(received, 6);
  });
}

TEST(call, gives_a_selecting_server_its_value) {
  rig r(1);
  r.rt.run([] {
    channel<int> requests;
    channel<int> answers;
    pirn::fiber answering = pirn::spawn([&] {
      int request = 0;
      EXPECT_TRUE(pirn::select(pirn::receive(requests, request)).outcome.has_value());
      EXPECT_EQ(pirn::select(pirn::send(answers, request + 1)).index, 0u);
    });
    pirn::this_fiber::yield();
    EXPECT_EQ(pirn::call(requests, 1, answers), 2);
    answering.join();
  });
}

TEST(call, to_a_closed_channel_leaves_the_value) {
  rig r(1);
  r.rt.run([] {
    channel<std::unique_ptr<int>> requests;
    channel<int> answers;
    requests.close();
    auto value = std::make_unique<int>(1);
    EXPECT_EQ(pirn::call(requests, std::move(value), answers).error(), wait_error::closed);
    EXPECT_NE(value, nullptr);  // NOLINT(bugprone-use-after-move): that is the promise
    channel<int> numbers;
    numbers.close();
    EXPECT_EQ(pirn::call(numbers, 1, answers).error(), wait_error::closed);
  });
}

TEST(call, without_an_answer_ends_by_the_close_or_the_deadline) {
  rig r(1);
  r.rt.run([] {
    channel<int> requests;
    channel<int> answers;
    int received = 0;
    pirn::fiber silent = pirn::spawn([&] {
      while (const auto request = requests.receive()) {
        ++received;
        if (*request == 1) {
          answers.close();
        }
      }
    });
    pirn::this_fiber::yield();
    EXPECT_EQ(pirn::call(requests, 0, answers, clock::now() + 1ms).error(), wait_error::timed_out);
    EXPECT_EQ(pirn::call(requests, 1, answers).error(), wait_error::closed);
    pirn::this_fiber::yield();
    EXPECT_EQ(pirn::call(requests, 2, answers).error(), wait_error::closed);
    requests.close();
    silent.join();
    EXPECT_EQ(received, 3);
  });
}

TEST(call, of_a_stopped_fiber_delivers_the_request_and_leaves_no_receiver) {
  rig r(1);
  r.rt.run([] {
    for (const bool stopped_before : {true, false}) {
      channel<int> requests;
      channel<int> answers;
      pirn::fiber server = pirn::spawn([&] { EXPECT_EQ(requests.receive(), 3); });
      pirn::this_fiber::yield();
      pirn::fiber caller = pirn::spawn([&] {
        if (stopped_before) {
          caller.request_stop();
        }
        EXPECT_EQ(pirn::call(requests, 3, answers).error(), wait_error::stopped);
      });
      pirn::this_fiber::yield();
      caller.request_stop();
      caller.join();
      server.join();
      EXPECT_EQ(answers.try_send(1).error(), wait_error::timed_out);  // no receiver is left there
    }
  });
}

}  // namespace
