// The ring workload for the example schedulers of usched, rr.h and ll.h: a program includes one of these, defines
// RING_FORM(name) as the name with its prefix, and RING_IMPL and RING_NOTE. Built with usched's headers and sources it
// measures usched.
#pragma once

#include <memory>

#include "ring.hpp"

namespace {

struct place {
  struct RING_FORM(thread) * thread;
  bench::ring::letterbox mail;
  std::uint64_t hops;
};

const bench::ring::shape* what;
std::unique_ptr<place[]> places;

void run_one(void* argument) {
  const auto index = reinterpret_cast<std::uintptr_t>(argument);
  place& mine = places[index];
  place& right = places[what->right_of(index)];
  bench::ring::with_extra(what->extra, [&] {
    mine.hops = bench::ring::make_rounds(
        *what, index,
        [&right, sent = std::uint64_t{0}](std::uint8_t message) mutable {
          right.mail.put(sent++, message);
          RING_FORM(wake)(right.thread);
        },
        [&mine, taken = std::uint64_t{0}]() mutable {
          RING_FORM(wait)();  // each wake-up counts
          return mine.mail.take(taken++);
        });
  });
  RING_FORM(done)();
}

}  // namespace

int main() {
  const bench::ring::shape shape = bench::ring::checked_shape(400);
#if defined(SINGLE_THREAD)
  if (shape.workers != 1) {
    bench::skip("it is for one native thread");
  }
#endif
  what = &shape;
  places = std::make_unique<place[]>(shape.coroutines);
  bench::check(RING_FORM(init)(static_cast<int>(shape.workers), static_cast<int>(shape.coroutines)) == 0, "it begins");
  for (std::uint64_t i = 0; i < shape.coroutines; ++i) {
    places[i].thread = RING_FORM(thread_init)(run_one, reinterpret_cast<void*>(i) RING_GROUP(i / shape.n));
    bench::check(places[i].thread != nullptr, "a thread is made");
  }
  const auto now = bench::clock_for(shape.workers);
  const double began = now();
  bench::check(RING_FORM(start)() == 0, "its native threads begin");
  RING_FORM(fini)();
  const double took = now() - began;
  std::uint64_t hops = 0;
  for (std::uint64_t i = 0; i < shape.coroutines; ++i) {
    hops += places[i].hops;
  }
  bench::ring::row(RING_IMPL, shape, took, hops, RING_NOTE);
}
