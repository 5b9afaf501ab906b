// Fibers that suspend and continue in turn, so many that each has left the cache when its turn comes: each line that a
// suspension and a continuation touch is a miss. cache_lines_test.py counts them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "pirn/fiber/expert/inline_wait.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/mutex.hpp"

namespace {

constexpr std::size_t fibers = 4000;
std::uint64_t turns_left = 0;

/// Takes one of the turns; false if there are none.
bool take_turn() {
  if (turns_left == 0) {
    return false;
  }
  --turns_left;
  return true;
}

void yields(std::size_t /*index*/) {
  while (take_turn()) {
    pirn::this_fiber::yield();
  }
}

/// Of all fibers one holds the mutex, and lets it go after a yield, in which it is the only one that is ready.
pirn::mutex mutex;
void locks(std::size_t /*index*/) {
  while (take_turn()) {
    mutex.lock();
    pirn::this_fiber::yield();
    mutex.unlock();
  }
}

/// A place in a line of cache where no other one lies.
template <class T>
struct alignas(64) apart {
  template <class... Arguments>
  explicit apart(Arguments... arguments) : it(arguments...) {}
  T it;
};

// Rings around which a token goes: each fiber waits at its place, and then lets the one at the next place continue.
std::vector<std::unique_ptr<apart<pirn::wait_queue>>> queues;
void waits(std::size_t index) {
  pirn::wait_queue& mine = queues[index]->it;
  pirn::wait_queue& next = queues[(index + 1) % fibers]->it;
  for (;;) {
    mine.lock();
    static constexpr pirn::wait_options for_token{.stoppable = false, .what = "the token"};
    pirn::wait_inline(mine, for_token);
    const bool more = take_turn();
    next.lock();
    if (!pirn::notify_one_inline(next) || !more) {
      return;
    }
  }
}

std::vector<std::unique_ptr<apart<pirn::channel<std::uint64_t>>>> channels;
void passes(std::size_t index) {
  pirn::channel<std::uint64_t>& mine = channels[index]->it;
  pirn::channel<std::uint64_t>& next = channels[(index + 1) % fibers]->it;
  for (;;) {
    const auto token = mine.receive();
    const bool more = take_turn();
    if (!token || !next.send(*token) || !more) {
      return;
    }
  }
}

/// Runs `fibers` of them. `start` is called once all have suspended for the first time.
template <class Start>
void run(void (*body)(std::size_t), const Start& start) {
  std::vector<pirn::fiber> all;
  all.reserve(fibers);
  for (std::size_t i = 0; i < fibers; ++i) {
    all.push_back(pirn::spawn([body, i] { body(i); }));
  }
  pirn::this_fiber::yield();
  start();
  for (pirn::fiber& each : all) {
    each.join();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: cache_lines yield|mutex|wait_queue|channel TURNS\n", stderr);
    return 2;
  }
  const char* const kind = argv[1];
  turns_left = std::strtoull(argv[2], nullptr, 10);
  pirn::runtime runtime({.workers = 1, .calling_thread = true});
  runtime.run([&] {
    if (std::strcmp(kind, "yield") == 0) {
      run(&yields, [] {});
    } else if (std::strcmp(kind, "mutex") == 0) {
      run(&locks, [] {});
    } else if (std::strcmp(kind, "wait_queue") == 0) {
      for (std::size_t i = 0; i < fibers; ++i) {
        queues.push_back(std::make_unique<apart<pirn::wait_queue>>());
      }
      run(&waits, [] { queues[0]->it.notify_one(); });
    } else {
      for (std::size_t i = 0; i < fibers; ++i) {
        channels.push_back(std::make_unique<apart<pirn::channel<std::uint64_t>>>(std::size_t{1}));
      }
      run(&passes, [] { static_cast<void>(channels[0]->it.send(1)); });
    }
  });
  return turns_left == 0 ? 0 : 1;
}
