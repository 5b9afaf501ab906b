/* The promises of usched.h to the user of a dispatcher: fields, callbacks, buffers, ends. */
#include "usched.h"

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { MANY = 500 };

/* A scheduler of the user around a dispatcher: the ready threads, in order of arrival. */
struct world {
  struct usched dispatcher; /* first: callbacks get its address */
  struct ustack* ready[4 * MANY];
  int first;
  int last;
  int allocated;
  int freed;
  int freed_length;
  int fail_at;
  void (*on_failure)(void);
};

struct thread {
  struct ustack stack; /* first: ustack_self returns its address */
  struct world* of;
  unsigned seed;
  int blocks;
  int ended;
};

static struct ustack* next_ready(struct usched* dispatcher) {
  struct world* const w = (struct world*)dispatcher;
  return w->first == w->last ? NULL : w->ready[w->first++ % (4 * MANY)];
}
static void* allocate(struct usched* dispatcher, int size) {
  struct world* const w = (struct world*)dispatcher;
  if (++w->allocated == w->fail_at) {
    if (w->on_failure != NULL) {
      w->on_failure();
    }
    return NULL;
  }
  return malloc((size_t)size);
}
static void release(struct usched* dispatcher, void* buffer, int size) {
  struct world* const w = (struct world*)dispatcher;
  ++w->freed;
  w->freed_length = size;
  if (buffer != NULL && size != 16) { /* 16: lent by lent_buffers */
    free(buffer);
  }
}

static void make_ready(struct world* w, struct thread* who) { w->ready[w->last++ % (4 * MANY)] = &who->stack; }
static struct thread* self(void) { return (struct thread*)ustack_self(); }
static void turn(void) {
  make_ready(self()->of, self());
  ++self()->blocks;
  ustack_block();
}
static struct world* new_world(void) {
  struct world* const w = (struct world*)calloc(1, sizeof *w);
  CHECK(w != NULL);
  w->dispatcher.s_next = next_ready;
  w->dispatcher.s_alloc = allocate;
  w->dispatcher.s_free = release;
  return w;
}
static void begin(struct world* w, struct thread* who, void (*f)(void*), void* stack, int length) {
  who->of = w;
  ustack_init(&who->stack, &w->dispatcher, f, who, stack, length);
  make_ready(w, who);
}
static struct thread* new_threads(struct world* w, int count, void (*f)(void*)) {
  struct thread* const threads = (struct thread*)calloc((size_t)count, sizeof *threads);
  int i;
  CHECK(threads != NULL);
  for (i = 0; i < count; ++i) {
    threads[i].seed = (unsigned)i + 1;
    begin(w, &threads[i], f, NULL, 0);
  }
  return threads;
}
static void end_all(struct world* w, struct thread* threads, int count) {
  int i;
  for (i = 0; i < count; ++i) {
    CHECK(threads[i].ended == 1);
    free(threads[i].stack.u_stack);
  }
  free(threads);
  free(w);
}

/* ---- threads that never block ---- */

static void only_end(void* argument) {
  struct thread* const me = (struct thread*)argument;
  CHECK(ustack_self() == &me->stack);
  CHECK(me->stack.u_bottom != NULL);
  ++me->ended;
}
static void never_blocking(void) {
  struct world* const w = new_world();
  struct thread* const threads = new_threads(w, 2, only_end);
  CHECK(threads[0].stack.u_sched == &w->dispatcher && threads[0].stack.u_f == only_end);
  CHECK(threads[0].stack.u_arg == &threads[0] && threads[0].stack.u_bottom == NULL);
  CHECK(threads[0].stack.u_stack == NULL && threads[0].stack.u_len == 0);
  usched_run(&w->dispatcher);
  CHECK(w->allocated == 0 && w->freed == 0);
  end_all(w, threads, 2);
}

/* ---- blocking anywhere ---- */

static unsigned draw(unsigned* seed) { return (*seed = *seed * 1103515245u + 12345u) >> 16; }

static void wander(unsigned* seed, int depth) {
  const unsigned size = draw(seed) % 300 + 1;
  volatile unsigned char* const bytes = (volatile unsigned char*)alloca(size);
  const unsigned char mark = (unsigned char)draw(seed);
  unsigned i;
  int step;
  for (i = 0; i < size; ++i) {
    bytes[i] = (unsigned char)(mark + i);
  }
  for (step = 0; step < 3; ++step) {
    if (draw(seed) % 2 != 0) {
      turn();
    }
    if (depth > 0 && draw(seed) % 3 != 0) {
      wander(seed, depth - 1);
    }
    for (i = 0; i < size; ++i) {
      CHECK(bytes[i] == (unsigned char)(mark + i));
    }
  }
}
static void wanderer(void* argument) {
  struct thread* const me = (struct thread*)argument;
  unsigned seed = me->seed;
  wander(&seed, (int)(me->seed % 6));
  CHECK(self() == me);
  make_ready(me->of, me);
  usched_block(); /* the other spelling */
  CHECK(self() == me);
  ++me->ended;
}
static void blocking_anywhere(void) {
  struct world* const w = new_world();
  struct thread* const threads = new_threads(w, MANY, wanderer);
  usched_run(&w->dispatcher);
  CHECK(w->allocated - w->freed == MANY);
  end_all(w, threads, MANY);
}
static void* native(void* unused) {
  (void)unused;
  blocking_anywhere();
  return NULL;
}
static void on_many_native_threads(void) {
  pthread_t natives[4];
  int i;
  for (i = 0; i < 4; ++i) {
    CHECK(pthread_create(&natives[i], NULL, native, NULL) == 0);
  }
  for (i = 0; i < 4; ++i) {
    CHECK(pthread_join(natives[i], NULL) == 0);
  }
}

/* ---- buffers ---- */

static void blocks_twice(void* argument) {
  struct thread* const me = (struct thread*)argument;
  const int kept = (int)me->seed;
  turn();
  CHECK((int)me->seed == kept);
  turn();
  ++me->ended;
}
static void lent_buffers(void) {
  struct world* const w = new_world();
  struct thread* const threads = (struct thread*)calloc(2, sizeof *threads);
  char small[16 + 1];
  char* const large = (char*)malloc(100000);
  CHECK(threads != NULL && large != NULL);
  memset(small, 7, sizeof small);
  begin(w, &threads[0], blocks_twice, large + 1, 100000 - 1);
  begin(w, &threads[1], blocks_twice, small, 16);
  usched_run(&w->dispatcher);
  CHECK(w->allocated == 1 && w->freed == 1 && w->freed_length == 16);
  CHECK(small[0] == 7 && small[15] == 7);
  CHECK(threads[0].stack.u_stack == large + 1 && threads[0].stack.u_len == 100000 - 1);
  CHECK(threads[1].stack.u_stack != NULL && threads[1].stack.u_len > 16);
  threads[0].stack.u_stack = large;
  end_all(w, threads, 2);
}

/* A buffer of s_alloc's that was needed once shrinks after four blocks that need less than a quarter of it. */
static char* volatile seen_elsewhere;
static void deep_turn(void) {
  char below[1 << 18];
  seen_elsewhere = below;
  seen_elsewhere[0] = 5;
  seen_elsewhere[sizeof below - 1] = 7;
  turn();
  CHECK(below[0] == 5 && below[sizeof below - 1] == 7);
}
static void deep_once(void* argument) {
  struct thread* const me = (struct thread*)argument;
  int i;
  deep_turn();
  CHECK(me->stack.u_len > 1 << 18);
  for (i = 0; i < 3; ++i) {
    turn();
    CHECK(me->stack.u_len > 1 << 18);
  }
  turn();
  CHECK(me->stack.u_len < 4096);
  turn();
  ++me->ended;
}
static void deep_now_and_then(void* argument) {
  struct thread* const me = (struct thread*)argument;
  int i;
  for (i = 0; i < 20; ++i) {
    deep_turn();
    turn();
    turn();
    turn();
  }
  CHECK(me->stack.u_len > 1 << 18);
  ++me->ended;
}
static void runs_with_buffers(void (*body)(void*), int fail_at, int allocated, int freed) {
  struct world* const w = new_world();
  struct thread* const threads = new_threads(w, 1, body);
  w->fail_at = fail_at;
  usched_run(&w->dispatcher);
  CHECK(w->allocated == allocated && w->freed == freed);
  end_all(w, threads, 1);
}
/* s_alloc may refuse the smaller one: the large one stays, and is tried again after four more blocks. */
static void deep_without_memory(void* argument) {
  struct thread* const me = (struct thread*)argument;
  int i;
  deep_turn();
  for (i = 0; i < 7; ++i) {
    turn();
    CHECK(me->stack.u_len > 1 << 18);
  }
  turn();
  CHECK(me->stack.u_len < 4096);
  ++me->ended;
}
/* A buffer that the program has lent, and one that it has set meanwhile, do not shrink. */
static void own_buffer(void* argument) {
  struct thread* const me = (struct thread*)argument;
  int i;
  deep_turn();
  free(me->stack.u_stack);
  me->stack.u_len = 1 << 19;
  me->stack.u_stack = calloc(1, 1 << 19);
  CHECK(me->stack.u_stack != NULL);
  for (i = 0; i < 9; ++i) {
    turn();
  }
  CHECK(me->stack.u_len == 1 << 19);
  ++me->ended;
}

/* s_alloc without a buffer may end the thread, ... */
static void abort_running(void) {
  --self()->of->last; /* it is no longer ready */
  ustack_abort();
}
static void ends_by_abort(void* argument) {
  struct thread* const me = (struct thread*)argument;
  turn();
  ++me->ended;
}
static void abort_when_out_of_memory(void) {
  struct world* const w = new_world();
  struct thread* const threads = new_threads(w, 3, ends_by_abort);
  w->fail_at = 2;
  w->on_failure = abort_running;
  usched_run(&w->dispatcher);
  CHECK(threads[0].ended == 1 && threads[1].ended == 0 && threads[2].ended == 1);
  threads[1].ended = 1;
  end_all(w, threads, 3);
}
/* ... or return to an outer frame of the thread, which then continues. */
static jmp_buf outer;
static void back_to_outer(void) { longjmp(outer, 1); }
static void tries_again(void* argument) {
  struct thread* const me = (struct thread*)argument;
  volatile int failures = 0;
  if (setjmp(outer) == 0) {
    ustack_block();
    CHECK(0);
  }
  ++failures;
  turn();
  CHECK(failures == 1);
  ++me->ended;
}
static void longjmp_when_out_of_memory(void) {
  struct world* const w = new_world();
  struct thread* const threads = new_threads(w, 1, tries_again);
  w->fail_at = 1;
  w->on_failure = back_to_outer;
  usched_run(&w->dispatcher);
  CHECK(w->allocated == 2);
  end_all(w, threads, 1);
}

/* ---- ends ---- */

static void aborts_below(int depth) {
  volatile char frame[1000];
  frame[0] = (char)depth;
  if (depth > 0) {
    aborts_below(depth - 1);
  }
  frame[1] = frame[0];
  ustack_abort();
}
static void aborts(void* argument) {
  struct thread* const me = (struct thread*)argument;
  turn();
  me->ended = 1;
  aborts_below(5);
}
static void aborting(void) {
  struct world* const w = new_world();
  struct thread* const threads = new_threads(w, 10, aborts);
  usched_run(&w->dispatcher);
  end_all(w, threads, 10);
}

/* s_next may forget a thread that has just blocked, and free all of it. */
static struct thread* doomed;
static struct ustack* next_after_free(struct usched* dispatcher) {
  if (doomed != NULL) {
    free(doomed->stack.u_stack);
    free(doomed);
    doomed = NULL;
  }
  return next_ready(dispatcher);
}
static void blocks_for_ever(void* argument) {
  doomed = (struct thread*)argument;
  ustack_block();
  CHECK(0);
}
static void freed_when_blocked(void) {
  struct world* const w = new_world();
  struct thread* threads;
  int i;
  w->dispatcher.s_next = next_after_free;
  for (i = 0; i < 5; ++i) {
    struct thread* const gone = (struct thread*)calloc(1, sizeof *gone);
    CHECK(gone != NULL);
    begin(w, gone, blocks_for_ever, NULL, 0);
  }
  threads = new_threads(w, 3, blocks_twice);
  usched_run(&w->dispatcher);
  end_all(w, threads, 3);
}

/* A thread may free itself before it ends. */
static void frees_itself(void* argument) { free(argument); }
static void freed_by_itself(void) {
  struct world* const w = new_world();
  int i;
  for (i = 0; i < 5; ++i) {
    struct thread* const one = (struct thread*)calloc(1, sizeof *one);
    CHECK(one != NULL);
    begin(w, one, frees_itself, NULL, 0);
  }
  usched_run(&w->dispatcher);
  free(w);
}

/* usched_run may be called again from the same place. */
static void blocks_unasked(void* argument) {
  struct thread* const me = (struct thread*)argument;
  ustack_block();
  ++me->ended;
}
static void running_again(void) {
  struct world* const w = new_world();
  struct thread* const threads = new_threads(w, 2, blocks_unasked);
  int i;
  for (i = 0; i < 2; ++i) {
    usched_run(&w->dispatcher);
    if (i == 0) {
      CHECK(threads[0].ended == 0 && threads[0].stack.u_top < threads[0].stack.u_bottom);
      make_ready(w, &threads[0]);
      make_ready(w, &threads[1]);
    }
  }
  end_all(w, threads, 2);
}

/* ---- what is refused ---- */

static void block_outside(void) { ustack_block(); }
static void self_outside(void) { ustack_self(); }
static void no_buffer(void) {
  struct world* const w = new_world();
  new_threads(w, 1, blocks_unasked);
  w->fail_at = 1;
  usched_run(&w->dispatcher);
}
static __attribute__((noinline)) void run_below(struct world* w, unsigned size) {
  volatile char* const space = (volatile char*)alloca(size);
  space[0] = 1;
  usched_run(&w->dispatcher);
  space[size - 1] = 1;
}
static void run_deeper(void) {
  struct world* const w = new_world();
  new_threads(w, 1, blocks_unasked);
  run_below(w, 100);
  run_below(w, 10000);
}
static void ended_again(void) {
  struct world* const w = new_world();
  make_ready(w, new_threads(w, 1, only_end));
  usched_run(&w->dispatcher);
}
/* A thread of another dispatcher: at first, after a block, and a thread that has blocked there. */
static void others_at_first(void) {
  struct world* const w = new_world();
  make_ready(w, new_threads(new_world(), 1, only_end));
  usched_run(&w->dispatcher);
}
static void others_after_a_block(void) {
  struct world* const w = new_world();
  new_threads(w, 1, blocks_unasked);
  make_ready(w, new_threads(new_world(), 1, only_end));
  usched_run(&w->dispatcher);
}
static void others_that_is_blocked(void) {
  struct world* const w = new_world();
  struct world* const other = new_world();
  struct thread* const blocked = new_threads(other, 1, blocks_unasked);
  usched_run(&other->dispatcher);
  new_threads(w, 1, blocks_unasked);
  make_ready(w, blocked);
  usched_run(&w->dispatcher);
}
/* ThreadSanitizer accepts no new threads in a child, and no longjmp to a stack other than the one that it sees. */
#ifndef PIRN_TEST_SANITIZED
/* A handler blocks on its own stack, which lies below that of the native thread. */
static char* two_stacks;
enum { STACK = 1 << 20 };
static void block_in_handler(int unused) {
  (void)unused;
  turn();
}
static void raises(void* unused) {
  struct sigaction action;
  stack_t lower;
  (void)unused;
  memset(&action, 0, sizeof action);
  memset(&lower, 0, sizeof lower);
  lower.ss_sp = two_stacks;
  lower.ss_size = STACK;
  action.sa_handler = block_in_handler;
  action.sa_flags = SA_ONSTACK;
  CHECK(sigaltstack(&lower, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
  raise(SIGUSR1);
}
static void* native_above(void* unused) {
  struct world* const w = new_world();
  new_threads(w, 1, raises);
  usched_run(&w->dispatcher);
  return unused;
}
static void block_elsewhere(void) {
  pthread_attr_t upper;
  pthread_t native_thread;
  two_stacks = (char*)mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(two_stacks != (char*)MAP_FAILED);
  CHECK(pthread_attr_init(&upper) == 0 && pthread_attr_setstack(&upper, two_stacks + STACK, STACK) == 0);
  CHECK(pthread_create(&native_thread, &upper, native_above, NULL) == 0);
  pthread_join(native_thread, NULL);
}
/* After s_alloc has left usched_run, no thread runs: at once, and after another usched_run. */
static __attribute__((noinline)) void leave_run(void) {
  struct world* const w = new_world();
  new_threads(w, 1, blocks_unasked);
  w->fail_at = 1;
  w->on_failure = back_to_outer;
  if (setjmp(outer) == 0) {
    usched_run(&w->dispatcher);
    CHECK(0);
  }
}
static void self_after_leaving(void) {
  leave_run();
  ustack_self();
}
static void block_after_leaving(void) {
  leave_run();
  ustack_block();
}
static void self_after_another_run(void) {
  leave_run();
  never_blocking();
  ustack_self();
}
#endif
/* While s_next chooses, no thread runs; it may just have freed the thread that ran last. */
static void (*while_choosing)(void);
static struct ustack* next_then_call(struct usched* dispatcher) {
  struct world* const w = (struct world*)dispatcher;
  if (w->allocated != 0) {
    while_choosing();
  }
  return next_ready(dispatcher);
}
static void call_when_blocked(void (*what)(void)) {
  struct world* const w = new_world();
  while_choosing = what;
  w->dispatcher.s_next = next_then_call;
  new_threads(w, 1, blocks_unasked);
  usched_run(&w->dispatcher);
}
static void block_in_next(void) { call_when_blocked(block_outside); }
static void self_in_next(void) { call_when_blocked(self_outside); }
static void abort_in_next(void) { call_when_blocked(ustack_abort); }
static void no_callbacks(void) {
  struct usched dispatcher;
  memset(&dispatcher, 0, sizeof dispatcher);
  usched_run(&dispatcher);
}

int main(void) {
  never_blocking();
  blocking_anywhere();
  on_many_native_threads();
  lent_buffers();
  runs_with_buffers(deep_once, 0, 2, 1);
  runs_with_buffers(deep_now_and_then, 0, 1, 0);
  runs_with_buffers(deep_without_memory, 2, 3, 1);
  runs_with_buffers(own_buffer, 0, 1, 0);
  abort_when_out_of_memory();
  longjmp_when_out_of_memory();
  aborting();
  freed_when_blocked();
  freed_by_itself();
  running_again();
  CHECK_DIES(block_outside, SIGABRT, "ustack_block was called outside of a thread");
  CHECK_DIES(self_outside, SIGABRT, "ustack_self was called outside of a thread");
  CHECK_DIES(no_buffer, SIGABRT, "s_alloc returned no buffer");
  CHECK_DIES(run_deeper, SIGABRT, "from deeper in the stack");
  CHECK_DIES(ended_again, SIGABRT, "s_next returned a thread that has ended");
  CHECK_DIES(others_at_first, SIGABRT, "s_next returned a thread of another dispatcher");
  CHECK_DIES(others_after_a_block, SIGABRT, "s_next returned a thread of another dispatcher");
  CHECK_DIES(others_that_is_blocked, SIGABRT, "s_next returned a thread of another dispatcher");
  CHECK_DIES(block_in_next, SIGABRT, "ustack_block was called outside of a thread");
  CHECK_DIES(self_in_next, SIGABRT, "ustack_self was called outside of a thread");
  CHECK_DIES(abort_in_next, SIGABRT, "ustack_abort was called outside of a thread");
#ifndef PIRN_TEST_SANITIZED
  CHECK_DIES(block_elsewhere, SIGABRT, "on another stack than the one that usched_run was called on");
  CHECK_DIES(self_after_leaving, SIGABRT, "ustack_self was called outside of a thread");
  CHECK_DIES(block_after_leaving, SIGABRT, "ustack_block was called outside of a thread");
  CHECK_DIES(self_after_another_run, SIGABRT, "ustack_self was called outside of a thread");
#endif
  CHECK_DIES(no_callbacks, SIGABRT, "before the callbacks were set");
  return 0;
}
