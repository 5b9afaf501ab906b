// A client that retries after a deadline mistakes the late answer to its first question for the second answer.
#include <pirn/fiber/runtime.hpp>
#include <pirn/net/tcp_listener.hpp>
#include <pirn/sim/network.hpp>

#include <cstdio>

namespace {

using namespace std::chrono_literals;

const pirn::endpoint server{pirn::ip_address::loopback_v4(), 80};

struct message {
  int id;
  int value;
};

/// Answers each question with its square.
void serve(pirn::tcp_listener& listener) {
  auto stream = listener.accept().value();
  for (message about; stream.read_exactly(&about, sizeof about);) {
    about.value *= about.value;
    static_cast<void>(stream.write(&about, sizeof about));  // the client may have gone
  }
}

template <bool Fixed>
void ask() {
  auto stream = pirn::tcp_stream::connect(server).value();
  for (int id = 1; id <= 2; ++id) {  // the client may give up the first question and then ask another one
    const message question{.id = id, .value = 10 * id};
    stream.write(&question, sizeof question).value();
    const auto deadline = pirn::clock::now() + 10ms;
    for (message answer{}; stream.read_exactly(&answer, sizeof answer, deadline);) {
      if (Fixed && answer.id != id) {
        continue;  // to an earlier question
      }
      pirn::sim::check(answer.value == question.value * question.value, "an answer to another question");
      break;
    }
  }
}

template <bool Fixed>
void client_and_server() {
  const pirn::sim::latency each_way(5ms);
  pirn::tcp_listener listener = pirn::tcp_listener::listen(server).value();
  pirn::runtime fibers{{.workers = 1}};
  pirn::fiber answers = fibers.spawn([&] { serve(listener); }, {.name = "server"});
  pirn::fiber asks = fibers.spawn(ask<Fixed>, {.name = "client"});
  asks.join();
}

}  // namespace

int main() {
  const pirn::sim::result bug = pirn::sim::explore(client_and_server<false>);
  std::fputs(bug.text().c_str(), stdout);
  const pirn::sim::result fixed = pirn::sim::explore(client_and_server<true>);
  std::fputs(fixed.text().c_str(), stdout);
  return bug.what == pirn::sim::outcome::assertion && fixed && fixed.complete ? 0 : 1;
}
