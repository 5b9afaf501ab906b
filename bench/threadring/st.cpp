// State Threads that wait for condition variables.
#include "threadring.hpp"

#include <st.h>

namespace {

/// The place where a process gets the token.
struct place {
  st_cond_t arrived = st_cond_new();
  bool full = false;
  std::int64_t token = 0;

  void put(std::int64_t value) {
    token = value;
    full = true;
    st_cond_signal(arrived);
  }
  std::int64_t take() {
    while (!full) {
      st_cond_wait(arrived);
    }
    full = false;
    return token;
  }
};

struct process {
  place mine;
  process* next = nullptr;
  place* finished = nullptr;
  std::int64_t index = 0;
};

void* body(void* argument) {
  process& self = *static_cast<process*>(argument);
  bench::threadring_process([&self] { return self.mine.take(); },
                            [&self](std::int64_t token) { self.next->mine.put(token); },
                            [&self] { self.finished->put(self.index); });
  return nullptr;
}

}  // namespace

int main() {
  const std::uint64_t processes = bench::input("PROCESSES");
  bench::need_memory(processes * 9000);
  st_init();
  place finished;
  std::vector<process> ring(processes);
  std::vector<st_thread_t> handles(processes);
  for (std::uint64_t i = 0; i < processes; ++i) {
    ring[i].next = &ring[(i + 1) % processes];
    ring[i].finished = &finished;
    ring[i].index = static_cast<std::int64_t>(i);
    handles[i] = st_thread_create(body, &ring[i], 1, static_cast<int>(bench::input("STACK")));
    if (handles[i] == nullptr) {
      bench::skip("it has no memory for thread " + std::to_string(i + 1));
    }
  }
  bench::threadring_row(
      "st",
      [&](std::int64_t token) {
        ring[0].mine.put(token);
        return static_cast<std::uint64_t>(finished.take());
      },
      "condition variables");
  ring[0].mine.put(-1);
  for (st_thread_t handle : handles) {
    st_thread_join(handle, nullptr);
  }
}
