/* A scheduler on aco.h, in two threads at once: a thousand coroutines on four share stacks and some alone on theirs,
 * which live for a random time and are replaced when they end. Each finds its own frames and values at every turn. */
#include "aco.h"

#include <pthread.h>

#include "check.h"

enum { live = 1000, shared_stacks = 4, alone = 10, all = 3000 };

struct job {
  aco_t* co;
  unsigned number;
  unsigned turns; /* that it will have */
  unsigned had;
};

static unsigned next_random(unsigned* state) {
  *state = *state * 1664525U + 1013904223U;
  return *state >> 8;
}

static unsigned deep(struct job* mine, unsigned depth) {
  volatile unsigned values[8];
  unsigned i, sum = 0;
  for (i = 0; i < 8; ++i) {
    values[i] = mine->number + depth + i;
  }
  if (depth != 0) {
    sum = deep(mine, depth - 1);
  } else {
    ++mine->had;
    CHECK(aco_get_co() == mine->co && aco_get_arg() == mine);
    aco_yield();
  }
  for (i = 0; i < 8; ++i) {
    CHECK(values[i] == mine->number + depth + i);
    sum += values[i];
  }
  return sum;
}

static void run_job(void) {
  struct job* const mine = (struct job*)aco_get_arg();
  while (mine->had < mine->turns) {
    CHECK(deep(mine, (mine->number + mine->had) % 7) != 0);
  }
  aco_exit();
}

static void* schedule(void* seed) {
  unsigned state = (unsigned)(uintptr_t)seed;
  static __thread struct job jobs[live];
  aco_share_stack_t* stacks[shared_stacks + alone];
  unsigned i, begun = 0, ended = 0;
  unsigned long turns = 0, wanted = 0;
  aco_t* main_co;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  for (i = 0; i < shared_stacks + alone; ++i) {
    stacks[i] = aco_share_stack_new2(i % 3 == 0 ? 0 : 64 * 1024, (char)(i % 2));
  }
  while (ended < all) {
    for (i = 0; i < live; ++i) {
      struct job* const each = &jobs[i];
      if (each->co == NULL && begun < all) {
        aco_share_stack_t* const on =
            i < alone ? stacks[shared_stacks + i] : stacks[next_random(&state) % shared_stacks];
        each->number = ++begun;
        each->turns = next_random(&state) % 40;
        each->had = 0;
        wanted += each->turns;
        each->co = aco_create(main_co, on, 0, run_job, each);
      }
      if (each->co != NULL) {
        const unsigned before = each->had;
        aco_resume(each->co);
        CHECK(each->had == before + 1 || (each->co->is_end && each->had == each->turns));
        turns += each->had - before;
        if (each->co->is_end) {
          aco_destroy(each->co);
          each->co = NULL;
          ++ended;
        }
      }
    }
  }
  CHECK(turns == wanted);
  for (i = 0; i < shared_stacks + alone; ++i) {
    aco_share_stack_destroy(stacks[i]);
  }
  aco_destroy(main_co);
  return NULL;
}

int main(void) {
  pthread_t other;
  CHECK(pthread_create(&other, NULL, schedule, (void*)(uintptr_t)2) == 0);
  schedule((void*)(uintptr_t)1);
  CHECK(pthread_join(other, NULL) == 0);
  return 0;
}
