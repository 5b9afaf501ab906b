/* Images of all sizes, of which anything between nothing and everything changes from one turn to the next: what comes
 * back is what was there. Coroutines with images of one size are exchanged, and only changed lines are written. */
#include <stdlib.h>
#include <string.h>

#include "aco.h"
#include "check.h"

static unsigned next_random(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* What a coroutine does before it yields: changes nothing, the byte at `at`, or each line. */
struct job {
  int change; /* 0, 1, 2 */
  size_t at;
  unsigned char value;
  unsigned char* copy; /* of what its frame should hold */
  int ended;
};

static void change(unsigned char* bytes, size_t size, const struct job* todo) {
  size_t i;
  if (todo->change == 1) {
    bytes[todo->at % size] = todo->value;
  } else if (todo->change == 2) {
    for (i = 0; i < size; i += 32) {
      bytes[i] = (unsigned char)(todo->value + i);
    }
  }
}

/* A function with `size` bytes in its frame, which it compares after each turn. */
#define HOLDS(size)                                        \
  static void holds_##size(void) {                         \
    struct job* const todo = (struct job*)aco_get_arg();   \
    unsigned char bytes[size];                             \
    memset(bytes, todo->value, sizeof bytes);              \
    memset(todo->copy, todo->value, sizeof bytes);         \
    while (!todo->ended) {                                 \
      __asm__ volatile("" : : "r"(bytes) : "memory");      \
      aco_yield();                                         \
      CHECK(memcmp(bytes, todo->copy, sizeof bytes) == 0); \
      change(bytes, sizeof bytes, todo);                   \
      change(todo->copy, sizeof bytes, todo);              \
    }                                                      \
    aco_exit();                                            \
  }
HOLDS(200)
HOLDS(240)
HOLDS(256)
HOLDS(312)
HOLDS(500)
HOLDS(1016)
HOLDS(1500)
HOLDS(2040)
HOLDS(2990)
HOLDS(3300)
HOLDS(8000)

/* Some coroutines of `first`, and one of `other`, on one stack, resumed in a random order. */
static void test(aco_t* of_thread, aco_cofuncp_t first, aco_cofuncp_t other, unsigned random) {
  enum { coroutines = 7, turns = 3000, most = 8000 };
  struct job jobs[coroutines];
  aco_t* co[coroutines];
  aco_share_stack_t* const shared = aco_share_stack_new(1 << 16);
  int i;
  for (i = 0; i < coroutines; ++i) {
    jobs[i].change = 0;
    jobs[i].value = (unsigned char)i;
    jobs[i].ended = 0;
    jobs[i].copy = (unsigned char*)malloc(most);
    CHECK(jobs[i].copy != NULL);
    co[i] = aco_create(of_thread, shared, 0, i + 1 < coroutines ? first : other, &jobs[i]);
  }
  for (i = 0; i < turns; ++i) {
    const unsigned which = i < 200 ? (unsigned)i % (coroutines - 1) : next_random(&random) % coroutines;
    jobs[which].change = (int)(next_random(&random) % 3);
    jobs[which].at = next_random(&random) % (i % 5 == 0 ? 16 : most);
    jobs[which].value = (unsigned char)next_random(&random);
    aco_resume(co[which]);
  }
  for (i = 0; i < coroutines; ++i) {
    jobs[i].ended = 1;
    aco_resume(co[i]);
    CHECK(co[i]->is_end);
    aco_destroy(co[i]);
    free(jobs[i].copy);
  }
  aco_share_stack_destroy(shared);
}

int main(void) {
  static const aco_cofuncp_t all[] = {holds_200,  holds_240,  holds_256,  holds_312,  holds_500, holds_1016,
                                      holds_1500, holds_2040, holds_2990, holds_3300, holds_8000};
  enum { count = sizeof all / sizeof all[0] };
  aco_t* main_co;
  unsigned i;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  for (i = 0; i < count; ++i) {
    test(main_co, all[i], all[(i + 1) % count], i);
  }
  aco_destroy(main_co);
  return 0;
}
