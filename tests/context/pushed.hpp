// Calls whose arguments lie on the stack, in a function that suspends. The unwind tables behind a switch are right only
// if the switch has left the assembler's count of pushed bytes alone. Shared by the conformance programs and the tests
// of all forms of switch.
#pragma once

#include <cstdarg>
#include <cstdio>

#if defined(__clang__)
#define PUSHED_KEEP __attribute__((noinline))
#else
#define PUSHED_KEEP __attribute__((noipa))
#endif

namespace pushed {

/// Lies on the stack when passed by value, whatever registers the calling convention has.
struct structure {
  long words[9];
};

PUSHED_KEEP inline long sum(long a, long b, long c, long d, long e, long f, long g, long h, long i, structure last) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + last.words[0] - last.words[8];
}

/// Throws the last word.
PUSHED_KEEP inline void fail(long a, long b, long c, long d, long e, long f, long g, long h, long i, structure last) {
  if (a + b + c + d + e + f + g + h + i != 0) {
    throw last.words[8];
  }
}

PUSHED_KEEP inline long listed(int count, ...) {
  va_list list;
  va_start(list, count);
  long total = 0;
  for (int i = 0; i < count; ++i) {
    total = total * 3 + va_arg(list, long);
  }
  va_end(list);
  return total;
}

/// Throws the sum, unless it is 0. Compilers push such arguments, but not those with a structure.
PUSHED_KEEP inline void fail_plainly(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
  if (const long all = a + b + c + d + e + f + g + h + i + j; all != 0) {
    throw all;
  }
}

/// Adds one to the counter that it refers to when it is destroyed.
class ending {
 public:
  explicit ending(int& count) noexcept : count_(count) {}
  ~ending() { ++count_; }
  ending(const ending&) = delete;
  ending& operator=(const ending&) = delete;

 private:
  int& count_;
};

/// Suspends three times in each round, behind pushed arguments and before them: after a call, after an exception and
/// after a printf of ten numbers. `ended` grows by one when the function is left, or by two at the third suspension.
/// Inlined, so that everything is in the function that suspends.
template <class Suspend>
__attribute__((always_inline)) inline long body(long rounds, int& ended, Suspend suspend) {
  const ending first(ended);
  long total = 0;
  for (long i = 1; i <= rounds; ++i) {
    total += sum(i, 2, 3, 4, 5, 6, 7, 8, i, structure{{i, 0, 0, 0, 0, 0, 0, 0, 1}});
    suspend(total);
    try {
      const ending second(ended);
      fail(i, 2, 3, 4, 5, 6, 7, 8, i, structure{{0, 0, 0, 0, 0, 0, 0, 0, i + 100}});
    } catch (long caught) {
      --ended;
      total += caught;
    }
    suspend(total);
    try {
      fail_plainly(i, 2, 3, 4, 5, 6, 7, 8, 9, i);
    } catch (long caught) {
      total += caught;
    }
    char text[100];
    total +=
        std::snprintf(text, sizeof text, "%ld %ld %ld %ld %ld %ld %ld %ld %ld %ld\n", i, i, i, i, i, i, i, i, i, i);
    const ending second(ended);
    suspend(total);
    total += listed(10, i, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, i);
    --ended;
  }
  fail(0, 0, 0, 0, 0, 0, 0, 0, 0, structure{});
  return total;
}

/// Returns the sum of the totals that such a body shows as it suspends.
inline long shown_by(long rounds) {
  int ended = 0;
  long all = 0;
  body(rounds, ended, [&all](long total) { all = all * 7 % 1000003 + total; });
  return all;
}

}  // namespace pushed
