// A client that tries again after a deadline takes the late answer to its first question for that to the second.
#include <pirn/fiber/runtime.hpp>
#include <pirn/fiber/this_fiber.hpp>
#include <pirn/sim/explore.hpp>
#include <pirn/sync/channel.hpp>

#include <cstdio>

namespace {

using namespace std::chrono_literals;

struct message {
  int id;
  int value;
};

/// Answers each question with its square, and takes ten milliseconds for it.
void serve(pirn::channel<message>& questions, pirn::channel<message>& answers) {
  for (const message& question : questions) {
    pirn::this_fiber::sleep_for(10ms).value();
    static_cast<void>(answers.send({question.id, question.value * question.value}));
  }
}

template <bool Fixed>
void ask(pirn::channel<message>& questions, pirn::channel<message>& answers) {
  for (int id = 1; id <= 2; ++id) {  // the first question may be given up, and then another one is asked
    const int value = 10 * id;
    questions.send({id, value}).value();
    const auto deadline = pirn::platform::now() + 10ms;
    for (auto answer = answers.receive(deadline); answer; answer = answers.receive(deadline)) {
      if (Fixed && answer->id != id) {
        continue;  // to an earlier question
      }
      pirn::sim::check(answer->value == value * value, "an answer to another question");
      break;
    }
  }
  questions.close();
}

template <bool Fixed>
void client_and_server() {
  pirn::runtime fibers{{.workers = 1}};
  pirn::channel<message> questions(2), answers(2);
  pirn::fiber server = fibers.spawn([&] { serve(questions, answers); }, {.name = "server"});
  pirn::fiber client = fibers.spawn([&] { ask<Fixed>(questions, answers); }, {.name = "client"});
  client.join();
}

}  // namespace

int main() {
  const pirn::sim::result bug = pirn::sim::explore(client_and_server<false>);
  std::fputs(bug.text().c_str(), stdout);
  const pirn::sim::result fixed = pirn::sim::explore(client_and_server<true>);
  std::fputs(fixed.text().c_str(), stdout);
  return bug.what == pirn::sim::outcome::assertion && fixed && fixed.complete ? 0 : 1;
}
