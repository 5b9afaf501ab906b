/* The functions of inline.c that run as contexts. */
#include "inline_there.h"

#include <string.h>
#include <unwind.h>

volatile uintptr_t numbers[16];
volatile double reals[12];

void echo(uintptr_t first, uintptr_t second) {
  for (;;) {
    uintptr_t turned = second;
    second = first + 1;
    first = turned + 2;
    pirn_switch(&there, &here, &first, &second);
  }
}

int kept_there = 1;

void keep_there(uintptr_t first, uintptr_t second) {
  for (;;) {
    int kept = 1;
    KEEP_LIVE_VALUES(1000, pirn_switch(&there, &here, &first, &second));
    kept_there = kept_there && kept;
  }
}

void clear_below(uintptr_t first, uintptr_t second) {
  for (;;) {
    volatile char room[256];
    memset((void*)room, 0x5a, sizeof room);
    pirn_switch(&there, &here, &first, &second);
  }
}

int depth = 0;

static _Unwind_Reason_Code count_frame(struct _Unwind_Context* context, void* unused) {
  (void)context;
  (void)unused;
  return ++depth > 64 ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

static NOINLINE uintptr_t misaligned(void) {
  __attribute__((aligned(16))) volatile char aligned[16];
  aligned[0] = 1;
  return (uintptr_t)aligned % 16;
}

void unwind_and_leave(uintptr_t first, uintptr_t second) {
  (void)first;
  (void)second;
  depth = 0;
  _Unwind_Backtrace(count_frame, NULL);
  pirn_switch_last(&here, misaligned(), 99);
}
