/* The loop of C that hot_path_test.py checks in machine code. */
#include "pirn/inline.h"

uintptr_t switch_loop_of_c(pirn_context* from, const pirn_context* to, uintptr_t count);

uintptr_t switch_loop_of_c(pirn_context* from, const pirn_context* to, uintptr_t count) {
  uintptr_t sum = 0;
  for (uintptr_t i = 0; i < count; ++i) {
    uintptr_t first = i, second = 0;
    pirn_switch(from, to, &first, &second);
    sum += first;
  }
  return sum;
}
