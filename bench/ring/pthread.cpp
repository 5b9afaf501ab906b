// OS threads that wake each other by semaphores, on P cores.
#include <pthread.h>
#include <semaphore.h>

#include <cerrno>

#include "ring.hpp"

namespace {

/// The messages of a thread; the semaphore counts those that it has not taken.
struct place {
  sem_t arrived;
  std::uint8_t messages[bench::ring::mailbox::capacity];
};

struct thread {
  const bench::ring::shape* what;
  std::uint64_t index;
  place* mine;
  place* right;
  std::uint64_t hops;
};

void wait(sem_t& semaphore) {
  while (sem_wait(&semaphore) != 0) {
    bench::check(errno == EINTR, "a semaphore is waited for");
  }
}

void* body(void* argument) {
  thread& self = *static_cast<thread*>(argument);
  wait(self.mine->arrived);  // for the start
  bench::ring::with_extra(self.what->extra, [&self] {
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;
    self.hops = bench::ring::make_rounds(
        *self.what, self.index,
        [&](std::uint8_t message) {
          self.right->messages[sent++ % bench::ring::mailbox::capacity] = message;
          sem_post(&self.right->arrived);
        },
        [&] {
          wait(self.mine->arrived);
          return self.mine->messages[taken++ % bench::ring::mailbox::capacity];
        });
  });
  return nullptr;
}

}  // namespace

int main() {
  const bench::ring::shape what = bench::ring::checked_shape(20000);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bench::input("STACK"));
  std::vector<place> places(what.coroutines);
  std::vector<thread> threads(what.coroutines);
  std::vector<pthread_t> handles(what.coroutines);
  for (std::uint64_t i = 0; i < what.coroutines; ++i) {
    sem_init(&places[i].arrived, 0, 0);
    threads[i] = {&what, i, &places[i], &places[what.right_of(i)], 0};
    if (const int error = pthread_create(&handles[i], &attributes, body, &threads[i]); error != 0) {
      bench::skip("the system refuses thread " + std::to_string(i + 1) + ": " + std::strerror(error));
    }
  }
  const auto now = what.workers == 1 ? bench::now_ns : bench::wall_ns;
  const double start = now();
  for (place& each : places) {
    sem_post(&each.arrived);
  }
  std::uint64_t hops = 0;
  for (std::uint64_t i = 0; i < what.coroutines; ++i) {
    pthread_join(handles[i], nullptr);
    hops += threads[i].hops;
  }
  bench::ring::row("pthread", what, now() - start, hops, "OS threads on as many cores as there are workers");
}
