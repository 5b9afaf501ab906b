/* pthread_exit and pthread_cancel in a thread of usched.h: its cleanups run, then those of the function that has called
   usched_run, and the OS thread ends. Built with -fexceptions, so that the cleanup attribute has an effect. */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "usched.h"

enum { MANY = 20 };

struct world {
  struct usched dispatcher; /* first: callbacks get its address */
  struct ustack* ready[MANY];
  int first;
  int last;
  int ends_in_next; /* s_next ends the OS thread after so many calls; 0: never */
};
struct thread {
  struct ustack stack; /* first: ustack_self returns its address */
  struct world* of;
  int blocks;
};

static int cancelled;
static int bodies;  /* threads whose cleanups have run */
static int callers; /* callers of usched_run whose cleanups have run */
static int result_of_native;

static void count(int** which) { ++**which; }
#define COUNTED(which)                                          \
  __attribute__((cleanup(count))) int* which##_here = &(which); \
  (void)which##_here

static void end_native(void) {
  if (!cancelled) {
    pthread_exit(&result_of_native);
  }
  CHECK(pthread_cancel(pthread_self()) == 0);
  for (;;) {
    usleep(1000);
  }
}

static struct ustack* next_ready(struct usched* dispatcher) {
  struct world* const w = (struct world*)dispatcher;
  if (w->ends_in_next != 0 && --w->ends_in_next == 0) {
    COUNTED(bodies);
    end_native();
  }
  return w->first == w->last ? NULL : w->ready[w->first++ % MANY];
}
static void* allocate(struct usched* dispatcher, int size) {
  (void)dispatcher;
  return malloc((size_t)size);
}
static void release(struct usched* dispatcher, void* buffer, int size) {
  (void)dispatcher;
  (void)size;
  free(buffer);
}
static void make_ready(struct thread* who) { who->of->ready[who->of->last++ % MANY] = &who->stack; }
static void turn(void) {
  make_ready((struct thread*)ustack_self());
  ustack_block();
}
static void start_world(struct world* w) {
  memset(w, 0, sizeof *w);
  w->dispatcher.s_next = next_ready;
  w->dispatcher.s_alloc = allocate;
  w->dispatcher.s_free = release;
}
static struct thread* new_thread(struct world* w, void (*f)(void*), int blocks) {
  struct thread* const made = (struct thread*)calloc(1, sizeof *made);
  CHECK(made != NULL);
  made->of = w;
  made->blocks = blocks;
  ustack_init(&made->stack, &w->dispatcher, f, made, NULL, 0);
  make_ready(made);
  return made;
}
static void free_thread(struct thread** who) {
  free((*who)->stack.u_stack);
  free(*who);
}
#define THREAD(name) __attribute__((cleanup(free_thread))) struct thread* name

/* An OS thread runs `f` and ends in it. */
static void expect(void* (*f)(void*), int bodies_expected, int callers_expected) {
  for (cancelled = 0; cancelled < 2; ++cancelled) {
    pthread_t native;
    void* result = NULL;
    bodies = 0;
    callers = 0;
    CHECK(pthread_create(&native, NULL, f, NULL) == 0 && pthread_join(native, &result) == 0);
    CHECK(result == (cancelled ? PTHREAD_CANCELED : (void*)&result_of_native));
    CHECK(bodies == bodies_expected);
    CHECK(callers == callers_expected);
  }
}

static void blocks_and_ends(int blocks) {
  COUNTED(bodies);
  while (--blocks >= 0) {
    turn();
  }
  end_native();
}
static void ends(void* argument) {
  COUNTED(bodies);
  blocks_and_ends(((struct thread*)argument)->blocks);
}
static void only_blocks(void* argument) {
  struct thread* const me = (struct thread*)argument;
  while (--me->blocks >= 0) {
    turn();
  }
}

static void* at_once(void* unused) {
  COUNTED(callers);
  struct world w;
  start_world(&w);
  THREAD(only) = new_thread(&w, ends, 0);
  usched_run(&w.dispatcher);
  return unused;
}
static void* after_blocks(void* unused) {
  COUNTED(callers);
  struct world w;
  start_world(&w);
  THREAD(other) = new_thread(&w, only_blocks, 1);
  THREAD(first) = new_thread(&w, ends, 3);
  THREAD(late) = new_thread(&w, only_blocks, 7);
  usched_run(&w.dispatcher);
  CHECK(0);
  return unused;
}

/* A thread that has freed itself. */
static void frees_itself(void* argument) {
  COUNTED(bodies);
  turn();
  free(((struct thread*)argument)->stack.u_stack);
  free(argument);
  end_native();
}
static void* when_freed(void* unused) {
  COUNTED(callers);
  struct world w;
  start_world(&w);
  new_thread(&w, frees_itself, 0);
  usched_run(&w.dispatcher);
  return unused;
}

/* A thread that has called usched_run for others: both are left. */
static void runs_others(void* argument) {
  COUNTED(bodies);
  if (((struct thread*)argument)->blocks != 0) {
    turn();
  }
  after_blocks(NULL);
}
static void* in_inner_dispatcher(void* unused) {
  COUNTED(callers);
  struct world w;
  start_world(&w);
  THREAD(outer) = new_thread(&w, runs_others, 1);
  THREAD(other) = new_thread(&w, only_blocks, 3);
  usched_run(&w.dispatcher);
  return unused;
}

/* The other threads are still blocked, and run on when a cleanup of the caller runs the dispatcher again. */
static void run_rest(struct world* w) {
  usched_run(&w->dispatcher);
  CHECK(w->first == w->last);
  ++callers;
}
static void ends_later(void* argument) {
  COUNTED(bodies);
  only_blocks(argument);
}
static void* others_run_on(void* unused) {
  THREAD(first) = NULL;
  THREAD(second) = NULL;
  __attribute__((cleanup(run_rest))) struct world w;
  start_world(&w);
  first = new_thread(&w, ends_later, 5);
  second = new_thread(&w, ends, 2);
  usched_run(&w.dispatcher);
  return unused;
}

/* s_next ends the OS thread: at first, after a block, and when a thread has ended. */
static void* in_next(int calls, int blocks) {
  COUNTED(callers);
  struct world w;
  start_world(&w);
  w.ends_in_next = calls;
  THREAD(only) = new_thread(&w, only_blocks, blocks);
  usched_run(&w.dispatcher);
  return NULL;
}
static void* in_first_next(void* unused) {
  (void)unused;
  return in_next(1, 1);
}
static void* in_next_after_block(void* unused) {
  (void)unused;
  return in_next(2, 1);
}
static void* in_next_after_end(void* unused) {
  (void)unused;
  return in_next(3, 1);
}

/* Handlers of both functions, which the C library keeps on a list. */
static void add(void* to) { ++*(int*)to; }
static void ends_with_handler(void* argument) {
  only_blocks(argument);
  pthread_cleanup_push(add, &bodies);
  end_native();
  pthread_cleanup_pop(0);
}
static void free_memory(void* what) {
  struct thread* who = (struct thread*)what;
  free_thread(&who);
}
static void* with_handlers(void* unused) {
  struct world w;
  struct thread* only;
  start_world(&w);
  only = new_thread(&w, ends_with_handler, 1);
  pthread_cleanup_push(add, &callers);
  pthread_cleanup_push(free_memory, only);
  usched_run(&w.dispatcher);
  pthread_cleanup_pop(1);
  pthread_cleanup_pop(1);
  return unused;
}

int main(void) {
  alarm(60);
  expect(at_once, 2, 1);
  expect(after_blocks, 2, 1);
  expect(when_freed, 1, 1);
  expect(in_inner_dispatcher, 3, 2);
  expect(others_run_on, 3, 1);
  expect(in_first_next, 1, 1);
  expect(in_next_after_block, 1, 1);
  expect(in_next_after_end, 1, 1);
  expect(with_handlers, 1, 1);
  return 0;
}
