/* A coroutine of an installed pirn, in C. */
#include <pirn/pirn.h>
#include <stdint.h>

static void *add(pirn_coroutine *self, void *first) {
  uintptr_t sum = 0;
  for (;;) {
    sum += (uintptr_t)first;
    pirn_yield(self, (void *)sum, &first);
  }
}

int main(void) {
  pirn_coroutine *co;
  void *sum = NULL;
  uintptr_t i;
  if (pirn_create(&co, NULL, add, NULL) != 0) {
    return 1;
  }
  for (i = 1; i <= 3; ++i) {
    if (pirn_resume(co, (void *)i, &sum) != PIRN_YIELDED) {
      return 2;
    }
  }
  return pirn_destroy(co) == 0 && (uintptr_t)sum == 6 ? 0 : 3;
}
