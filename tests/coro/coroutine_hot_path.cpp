// Loops over coroutines: coroutine_hot_path_test.py checks their machine code. Compiling it needs no library.
#include <cstdint>

#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_pool.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"

using word = std::uint64_t;

namespace {

struct count_up {
  word operator()(pirn::coroutine<word()>::yield& yield) const {
    for (word i = 0;; ++i) {
      yield(i);
    }
  }
};

}  // namespace

pirn::coroutine<word()> make_counter(const pirn::stack& memory) { return pirn::coroutine<word()>(memory, count_up()); }

extern "C" {

word resume_all(pirn::coroutine<word()>& one, word times) {
  word sum = 0;
  for (word i = 0; i < times; ++i) {
    sum += one.resume();
  }
  return sum;
}

void resume_both(pirn::coroutine<void()>& first, pirn::coroutine<void()>& second, word times) {
  for (word i = 0; i < times; ++i) {
    first.resume();
    second.resume();
  }
}

void create_run_destroy(const pirn::stack& memory, word& ran, word times) {
  for (word i = 0; i < times; ++i) {
    pirn::coroutine<void()>(memory, [&ran](pirn::coroutine<void()>::yield&) { ++ran; }).resume();
  }
}

void start_jobs(pirn::coroutine_pool& pool, word& ran, word times) {
  for (word i = 0; i < times; ++i) {
    pool.start([&ran](pirn::coroutine_pool::yield&) { ++ran; });
  }
}

void resume_jobs(pirn::coroutine_pool::job& job, word times) {
  for (word i = 0; i < times; ++i) {
    job.resume();
  }
}

void start_endless_job(pirn::coroutine_pool& pool, pirn::coroutine_pool::job& job) {
  job = pool.start([](pirn::coroutine_pool::yield& yield) {
    for (;;) {
      yield();
    }
  });
}
}
