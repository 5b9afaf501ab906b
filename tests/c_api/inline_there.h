/* The two sides of inline.c. */
#pragma once

#include "pirn/inline.h"

#define NOINLINE __attribute__((noinline))

#ifdef __cplusplus
extern "C" {
#endif

extern pirn_context here, there;

/* The entry functions of contexts. */
void echo(uintptr_t first, uintptr_t second);
void keep_there(uintptr_t first, uintptr_t second);
void clear_below(uintptr_t first, uintptr_t second);
void unwind_and_leave(uintptr_t first, uintptr_t second);

extern volatile uintptr_t numbers[16];
extern volatile double reals[12];
extern int kept_there; /* whether keep_there has found its values each time */
extern int depth;      /* frames that unwind_and_leave has found */

#ifdef __cplusplus
}
#endif

/* Values that are computed before a switch and used after it, more than there are callee-saved registers. `scale` tells
 * the two sides apart, so that a register which is not kept shows. */
#define KEEP_LIVE_VALUES(scale, leave)                                                                                 \
  do {                                                                                                                 \
    const uintptr_t a = numbers[0] * (scale), b = numbers[1] * (scale), c = numbers[2] * (scale),                      \
                    d = numbers[3] * (scale), e = numbers[4] * (scale), f = numbers[5] * (scale),                      \
                    g = numbers[6] * (scale), h = numbers[7] * (scale), i = numbers[8] * (scale),                      \
                    j = numbers[9] * (scale);                                                                          \
    const double p = reals[0] * (scale), q = reals[1] * (scale), r = reals[2] * (scale), s = reals[3] * (scale),       \
                 t = reals[4] * (scale), u = reals[5] * (scale);                                                       \
    const long double l = (long double)reals[6] * (scale), m = (long double)reals[7] * (scale);                        \
    leave;                                                                                                             \
    kept = kept && a == 1 * (scale) && b == 2 * (scale) && c == 3 * (scale) && d == 4 * (scale) && e == 5 * (scale) && \
           f == 6 * (scale) && g == 7 * (scale) && h == 8 * (scale) && i == 9 * (scale) && j == 10 * (scale) &&        \
           p == 1.5 * (scale) && q == 2.5 * (scale) && r == 3.5 * (scale) && s == 4.5 * (scale) &&                     \
           t == 5.5 * (scale) && u == 6.5 * (scale) && l == (long double)7.5 * (scale) &&                              \
           m == (long double)8.5 * (scale);                                                                            \
  } while (0)
