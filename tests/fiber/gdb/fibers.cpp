// A program with fibers in known states, which tools/pirn_gdb.py shows at `ready_to_be_looked_at`. With the argument
// "abort" it aborts there. With "protected" its stacks are guarded by mprotect: gdb's gcore command leaves out memory
// near other guards.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "pirn/fiber/expert/wait_queue.hpp"
#include "pirn/fiber/runtime.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

namespace {

std::atomic<bool> released{false};
std::atomic<unsigned> spun{0};
pirn::wait_queue letters;
const int letter_box = 0;

}  // namespace

extern "C" [[gnu::noinline]] void ready_to_be_looked_at(bool die) {
  if (die) {
    std::abort();
  }
  asm volatile("");
}

[[gnu::noinline]] void spins() {
  while (!released.load(std::memory_order_relaxed)) {
    spun.store(spun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  asm volatile("");
}

[[gnu::noinline]] void sleeps() {
  static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::hours(1)));
  asm volatile("");
}

/// Its switch is inlined here, so gdb finds this frame by the state that the switch has saved.
[[gnu::noinline]] void yields(int step) {
  int kept = step + 1;
  while (!released.load(std::memory_order_relaxed)) {
    pirn::this_fiber::yield();
  }
  asm volatile("" : : "r"(kept));
}

[[gnu::noinline]] void waits_deep(int depth) {
  int below = depth - 1;
  if (below > 0) {
    waits_deep(below);
  } else {
    letters.lock();
    static_cast<void>(letters.wait({.what = "a letter", .object = &letter_box}));
  }
  asm volatile("" : : "r"(below));
}

namespace {

/// Returns whether all fibers that shall wait do so, according to the runtime's own dump.
bool settled(pirn::runtime& runtime) {
  std::FILE* const file = std::tmpfile();
  runtime.dump(fileno(file));
  std::fseek(file, 0, SEEK_SET);
  std::string all;
  char line[1024];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    all += line;
  }
  std::fclose(file);
  std::size_t waiting = 0;
  for (std::size_t at = 0; (at = all.find("\": waiting for ", at)) != std::string::npos; ++at) {
    ++waiting;
  }
  return waiting == 4 && all.find("\"spinner\": running") != std::string::npos;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view wish = count > 1 ? arguments[1] : "";
  pirn::guarded_pool pool(
      {.guard = wish == "protected" ? pirn::guard_kind::protected_pages : pirn::guard_kind::automatic});
  pirn::runtime runtime({.workers = 2, .stacks = &pool});
  {
    auto yielder = runtime.spawn([] { yields(6); }, {.name = "yielder", .worker = 0});
    auto spinner = runtime.spawn([] { spins(); }, {.name = "spinner", .worker = 0});
    auto sleeper = runtime.spawn([] { sleeps(); }, {.name = "sleeper", .worker = 1});
    auto waiter = runtime.spawn([] { waits_deep(3); }, {.name = "waiter", .worker = 1});
    auto joiner = runtime.spawn(
        [] {
          auto inner = pirn::spawn([] { waits_deep(1); }, {.name = "inner"});
          inner.join();
        },
        {.name = "joiner", .worker = 1});
    while (!settled(runtime)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    // Wait until the spinner has left the handler of that dump.
    for (const unsigned before = spun.load(); spun.load() - before < 2;) {
      std::this_thread::yield();
    }
    // It is queued behind the spinner, so it cannot begin.
    auto fresh = runtime.spawn([] { sleeps(); }, {.name = "fresh", .worker = 0});
    ready_to_be_looked_at(wish == "abort");
    released = true;
    letters.notify_all();
  }
  return 0;
}
