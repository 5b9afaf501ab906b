/* Cycles of threads that pass messages to the right, on the example schedulers of usched: rr.h, with SINGLE_THREAD its
   form without locks, with LOCAL ll.h. In each round one thread of a cycle sends first and the others pass on what they
   get.

   usage: usched_ring THREADS_IN_A_CYCLE CYCLES ROUNDS BYTES NATIVE_THREADS */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#ifdef LOCAL
#include "ll.h"
#define FORM(name) ll_##name
#else
#include "rr.h"
#define FORM(name) rr_##name
#endif

struct place {
  struct FORM(thread) * thread;
  int sent;
  int received;
  int ended;
};

static int members;
static int rounds;
static int bytes;
static struct place* places;

static void pass_messages(int index) {
  const int first = index / members * members;
  struct place* const self = &places[index];
  struct place* const right = &places[first + (index - first + 1) % members];
  int round;
  for (round = 0; round < rounds; ++round) {
    const int begins = round % members == index - first;
    if (!begins) {
      FORM(wait)();
      ++self->received;
    }
    ++self->sent;
    FORM(wake)(right->thread);
    if (begins) {
      FORM(wait)();
      ++self->received;
    }
  }
  ++self->ended;
}

/* Keeps `bytes` bytes in its frame during its whole run. */
static void live(void* argument) {
  const int index = (int)(long)argument;
  volatile unsigned char kept[bytes + 1];
  int i;
  for (i = 0; i <= bytes; ++i) {
    kept[i] = (unsigned char)(index + i);
  }
  pass_messages(index);
  for (i = 0; i <= bytes; ++i) {
    CHECK(kept[i] == (unsigned char)(index + i));
  }
  FORM(done)();
}

int main(int count, char** words) {
  int natives;
  int all;
  int i;
  CHECK(count == 6);
  members = atoi(words[1]);
  all = members * atoi(words[2]);
  rounds = atoi(words[3]);
  bytes = atoi(words[4]);
  natives = atoi(words[5]);
  places = calloc((size_t)all, sizeof *places);
  CHECK(places != NULL);
  CHECK(FORM(init)(natives, all) == 0);
  for (i = 0; i < all; ++i) {
#ifdef LOCAL
    places[i].thread = ll_thread_init(live, (void*)(long)i, i / members);
#else
    places[i].thread = rr_thread_init(live, (void*)(long)i);
#endif
    CHECK(places[i].thread != NULL);
  }
  CHECK(FORM(start)() == 0);
  FORM(fini)();
  for (i = 0; i < all; ++i) {
    CHECK(places[i].sent == rounds && places[i].received == rounds && places[i].ended == 1);
  }
  free(places);
  return 0;
}
