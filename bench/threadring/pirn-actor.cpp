// pirn's actors on one worker: a hop is a call that an actor posts to the next one.
#include <memory>
#include <vector>

#include "pirn/sync/actor.hpp"
#include "pirn/sync/event.hpp"
#include "threadring.hpp"

namespace {

/// The process that got the token as 0.
struct finish {
  pirn::event happened{pirn::event_reset::automatic};
  std::uint64_t place = 0;
};

struct process;
using actor = pirn::actor<process>;

struct process {
  std::uint64_t place;
  actor** next;
  finish* finished;

  void receive(std::int64_t token);
};

void post(actor& to, std::int64_t token) {
  bench::check(to.post([token](process& self) { self.receive(token); }), "an actor is open until all have ended");
}

void process::receive(std::int64_t token) {
  if (token == 0) {
    finished->place = place;
    finished->happened.set();
  } else {
    post(**next, token - 1);
  }
}

void measure() {
  const std::uint64_t processes = bench::input("PROCESSES");
  finish finished;
  std::vector<std::unique_ptr<actor>> owned;
  std::vector<actor*> ring(processes);
  for (std::uint64_t i = 0; i < processes; ++i) {
    owned.push_back(std::make_unique<actor>(process{i, &ring[(i + 1) % processes], &finished}));
    ring[i] = owned.back().get();
  }
  bench::threadring_row(
      "pirn-actor",
      [&](std::int64_t token) {
        post(*ring[0], token);
        (void)finished.happened.wait();  // never stopped
        return finished.place;
      },
      "actors that post calls to each other, each of which is allocated");
}

}  // namespace

int main() {
  bench::need_memory(bench::input("PROCESSES") * 5200);
  pirn::runtime runtime({.workers = 1, .stack_size = bench::input("STACK")});
  runtime.run(measure);
}
