// The senders of pirn's variants of write_fully: ordinary functions, the innermost of which suspends.
#pragma once

#include "pirn/fiber/runtime.hpp"
#include "write_fully.hpp"

namespace bench {

/// Whether a wait returns at once.
inline bool ready = false;

inline void wait_for_ready() {
  if (!ready) {
    pirn::this_fiber::yield();
  }
}

inline std::size_t send_some(sink& to, const std::byte* data, std::size_t size) {
  wait_for_ready();
  return offer(to, data, size);
}

[[gnu::noinline]] inline std::size_t write_fully(sink& to, const std::byte* data, std::size_t size) {
  std::size_t sent = 0;
  while (sent < size) {
    sent += send_some(to, data + sent, size - sent);
  }
  return sent;
}

/// Runs fibers on stacks of the given pool.
inline void write_fully_with(const char* impl, pirn::guarded_pool& stacks, const char* note) {
  pirn::runtime runtime({.workers = 1, .stack_size = input("STACK"), .stacks = &stacks});
  runtime.run([&] {
    write_fully_rows(
        impl, ready,
        [](std::vector<sink>& sinks, const payload& whole) {
          std::vector<pirn::fiber> senders;
          for (sink& each : sinks) {
            senders.push_back(pirn::spawn([&each, &whole] {
              check(write_fully(each, whole.data(), whole.size()) == whole.size(), "the sum of the steps is right");
            }));
          }
          for (pirn::fiber& sender : senders) {
            sender.join();
          }
        },
        note);
  });
}

}  // namespace bench
