// Jobs of a coroutine_pool. A job that has served a request continues with the next, as long as there is one.
#pragma once

#include "pirn/coro/coroutine_pool.hpp"
#include "serve.hpp"

namespace bench {

/// A waiter for the storage: a job, which is resumed once the storage's error is there.
struct alignas(64) pool_session {
  [[gnu::always_inline]] void complete(int result) {
    error = result;
    job.resume();
  }

  pirn::coroutine_pool::job job;
  int error = 0;
  pool_session* next = nullptr;  ///< in the list of idle sessions
};

/// `reserved` coroutines wait for jobs before the clock starts.
inline void pool_main(const char* impl, std::uint64_t reserved, const char* note) {
  pirn::guarded_pool stacks;
  pirn::coroutine_pool jobs(stacks, input("STACK"));
  jobs.reserve(reserved);
  const auto kept = std::make_unique<server<pool_session>>();
  pool_session* idle = nullptr;
  const auto begin = [&, &of = *kept](std::string_view line) {
    pool_session* const one = idle != nullptr ? std::exchange(idle, idle->next) : new pool_session;
    auto begun = jobs.start([&, one, line](auto& yield) {
      for (std::string_view asked = line; !asked.empty(); asked = of.next()) {
        serve(of, asked, [&] {
          of.disk.submit(*one);
          yield();
          return one->error;
        });
      }
      one->next = std::exchange(idle, one);
    });
    one->job = std::move(begun);
  };
  callbacks_rows(impl, *kept, begin, note);
}

}  // namespace bench
