// The two example schedulers of usched, as one template: native threads, each with a dispatcher and a list of its ready
// threads, last in, first out. They differ in `remote`: whether threads of other native threads may wake a thread. If
// not, only new threads pass a lock.
//
// A native thread is quiet when it can run nothing more unless a new thread is made for it: no thread is ready, and
// none waits that another native thread could wake. A native thread that is not quiet may make threads for all others,
// so they end together, when all are quiet. A thread that ends its native thread, by pthread_exit for example, ends
// alone: the others of that native thread run to their ends first, since no other stack can have their frames.
//
// A thread that is preempted goes to another list, first in, first out: on the list of ready threads it would
// be the next one again.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "compat/usched_run_all.hpp"
#include "pirn/detail/platform.hpp"
#include "usched.h"

namespace pirn_compat {

template <bool remote>
class scheduler {
 public:
  /// The type of rr_thread and ll_thread.
  struct thread {
    ustack stack;             // first: the dispatcher knows only this member
    thread* after = nullptr;  // on the list of ready threads
    thread* made_before = nullptr;
    int wakes = 0;  // not yet taken by a wait
    bool waits = false;
  };

  int init(int natives) {
    natives_ = natives > 0 ? natives : 1;
    made_.store(0, pirn::platform::memory_order_relaxed);
    started_ = 0;
    unquiet_ = 0;
    cpu_of_ = nullptr;
    preemption_ = {};
    all_ =
        static_cast<native*>(std::aligned_alloc(alignof(native), sizeof(native) * static_cast<std::size_t>(natives_)));
    if (all_ == nullptr) {
      std::fputs("usched (pirn): no memory for the native threads\n", stderr);
      std::abort();
    }
    for (int i = 0; i < natives_; ++i) {
      new (&all_[i]) native{.of = this};
    }
    return 0;
  }

  void set_affinity(int (*cpu_of)(int native)) { cpu_of_ = cpu_of; }
  void set_preemption(int sig, long us, const char* begin, const char* end) { preemption_ = {sig, us, begin, end}; }

  int start() {
    for (; started_ < natives_; ++started_) {
      count_unquiet(1);
      if (const int problem = start(started_)) {
        count_unquiet(-1);
        return problem;
      }
    }
    return 0;
  }

  void fini() {
    pthread_mutex_lock(&quiet_lock_);
    while (unquiet_ != 0) {
      pthread_cond_wait(&all_quiet_, &quiet_lock_);
    }
    pthread_mutex_unlock(&quiet_lock_);
    for (int i = 0; i < natives_; ++i) {
      const locked lock(all_[i]);
      all_[i].exits = true;
      pthread_cond_signal(&all_[i].work);
    }
    for (int i = 0; i < natives_; ++i) {
      if (i < started_) {
        pthread_join(all_[i].handle, nullptr);
      }
      all_[i].~native();
    }
    std::free(all_);
    all_ = nullptr;
  }

  /// Makes a thread on native thread `which` modulo their number.
  thread* make(void (*f)(void*), void* argument, int which) {
    void* const memory = std::malloc(sizeof(thread));
    auto* const made = memory == nullptr ? nullptr : new (memory) thread;
    if (made != nullptr) {
      native& home = all_[which % natives_];
      ustack_init(&made->stack, &home.dispatcher, f, argument, nullptr, 0);
      const locked lock(home);
      made->made_before = home.made_last;
      home.made_last = made;
      made->after = home.inbox;
      home.inbox = made;
      if (home.quiet) {
        home.quiet = false;
        count_unquiet(1);
      }
      pthread_cond_signal(&home.work);
    }
    return made;
  }
  /// Returns the native thread for the next of `total` threads that are spread in runs.
  int spread(int total) {
    constexpr int min_run = 128;
    const int run = total / natives_ > min_run ? total / natives_ : min_run;
    return made_.fetch_add(1, pirn::platform::memory_order_relaxed) / run;
  }

  static void wait() {
    thread& self = running();
    native& home = home_of(self);
    {
      const locked_if_remote lock(home);
      if (self.wakes != 0) {
        --self.wakes;
        return;
      }
      self.waits = true;
      ++home.waiting;
    }
    ustack_block();
  }

  static void wake(thread& who) {
    native& home = home_of(who);
    const locked_if_remote lock(home);
    if (who.waits) {
      who.waits = false;
      --home.waiting;
      who.after = home.ready;
      home.ready = &who;
      if (remote && home.sleeps) {
        pthread_cond_signal(&home.work);
      }
    } else {
      ++who.wakes;
    }
  }

  static void done() {
    ustack& stack = running().stack;
    std::free(stack.u_stack);
    stack.u_stack = nullptr;
  }

 private:
  struct native {
    usched dispatcher{nullptr, nullptr, &next, &allocate, &free, &preempt};  // first: s_next gets its address
    thread* ready = nullptr;
    int waiting = 0;  // threads that wait
    thread* preempted = nullptr;
    thread* preempted_last = nullptr;  // if `preempted` is not null
    // Written by other native threads, under the lock; so are the fields above where they may wake its threads.
    alignas(64) pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t work = PTHREAD_COND_INITIALIZER;
    thread* inbox = nullptr;
    thread* made_last = nullptr;
    bool sleeps = false;
    bool quiet = false;
    bool exits = false;
    bool over = false;   // no thread of it will run any more
    bool begun = false;  // `refused` is known
    int refused = 0;     // a negated errno: it cannot preempt its threads, and runs none
    pthread_t handle{};
    scheduler* of = nullptr;

    ~native() {
      while (made_last != nullptr) {
        thread* const gone = made_last;
        made_last = gone->made_before;
        std::free(gone->stack.u_stack);
        std::free(gone);
      }
      pthread_cond_destroy(&work);
      pthread_mutex_destroy(&lock);
    }

    static void* main(void* self) {
      native& mine = *static_cast<native*>(self);
      if (mine.of->preemption_.us != 0 && !mine.begin_to_preempt()) {
        return nullptr;
      }
      pthread_cleanup_push(&native::left, self);
      pirn_usched_run_all(&mine.dispatcher);
      pthread_cleanup_pop(0);
      mine.end_to_preempt();
      return nullptr;
    }
    /// Returns whether it can, and tells `start`.
    bool begin_to_preempt() {
      const preemption& how = of->preemption_;
      const int result = usched_preempt_in(how.sig, how.us, how.begin, how.end);
      const locked mine(*this);
      refused = result;
      begun = true;
      pthread_cond_signal(&work);
      return result == 0;
    }
    void end_to_preempt() {
      if (of->preemption_.us != 0) {
        usched_preempt_in(0, 0, nullptr, nullptr);
      }
    }
    /// Called when the end of the native thread leaves `main`, which it does when all is over. It does so earlier when
    /// the C library could not unwind the frames of a thread.
    static void left(void* self) {
      static_cast<native*>(self)->end_to_preempt();
      if (!static_cast<native*>(self)->over) {
        std::fputs(
            "usched (pirn): pthread_exit or pthread_cancel has ended a native thread of rr.h or ll.h in a thread whose "
            "frames cannot be unwound: a function on its stack has no unwind tables "
            "(-fasynchronous-unwind-tables), or it runs on a separate stack\n",
            stderr);
        std::abort();
      }
    }

    /// Waits for work, with the lock held. A cancellation leaves it with the lock released.
    void sleep() {
      sleeps = true;
      pthread_cleanup_push(&native::cancelled, this);
      pthread_cond_wait(&work, &lock);
      pthread_cleanup_pop(0);
      sleeps = false;
    }
    static void cancelled(void* self) {
      static_cast<native*>(self)->sleeps = false;
      pthread_mutex_unlock(&static_cast<native*>(self)->lock);
    }
  };

  class locked {
   public:
    explicit locked(native& of) noexcept : of_(of) { pthread_mutex_lock(&of_.lock); }
    ~locked() { pthread_mutex_unlock(&of_.lock); }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;

   private:
    native& of_;
  };
  struct unlocked {
    explicit unlocked(native&) noexcept {}
  };
  template <bool really, class Lock, class None>
  struct choose {
    using type = Lock;
  };
  template <class Lock, class None>
  struct choose<false, Lock, None> {
    using type = None;
  };
  using locked_if_remote = typename choose<remote, locked, unlocked>::type;

  static thread& running() { return *reinterpret_cast<thread*>(ustack_self()); }
  static native& home_of(const thread& who) { return *reinterpret_cast<native*>(who.stack.u_sched); }

  /// Starts a native thread. Returns 0 or a negated errno.
  int start(int index) {
    native& one = all_[index];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int problem = 0;
    if (const int cpu = cpu_of_ != nullptr ? cpu_of_(index) : -1; cpu >= CPU_SETSIZE) {
      problem = EINVAL;
    } else if (cpu >= 0) {
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(cpu, &only);
      problem = pthread_attr_setaffinity_np(&attributes, sizeof only, &only);
    }
    if (problem == 0) {
      problem = pthread_create(&one.handle, &attributes, &native::main, &one);
    }
    pthread_attr_destroy(&attributes);
    if (problem != 0 || preemption_.us == 0) {
      return -problem;
    }
    {
      const locked lock(one);
      while (!one.begun) {
        pthread_cond_wait(&one.work, &one.lock);
      }
    }
    if (one.refused != 0) {
      pthread_join(one.handle, nullptr);
    }
    return one.refused;
  }

  /// Called in the handler of a signal that has interrupted the thread, but never one that holds a lock of this file.
  static int preempt(usched* of, ustack* running) {
    native& self = *reinterpret_cast<native*>(of);
    auto& stopped = *reinterpret_cast<thread*>(running);
    {
      const locked lock(self);
      if (self.ready == nullptr && self.inbox == nullptr && self.preempted == nullptr) {
        return 0;
      }
    }
    stopped.after = nullptr;
    (self.preempted == nullptr ? self.preempted : self.preempted_last->after) = &stopped;
    self.preempted_last = &stopped;
    return 1;
  }

  static ustack* next(usched* of) {
    native& self = *reinterpret_cast<native*>(of);
    {
      const locked_if_remote lock(self);
      if (thread* const chosen = self.ready; chosen != nullptr) [[likely]] {
        self.ready = chosen->after;
        return &chosen->stack;
      }
    }
    const locked lock(self);
    for (;;) {
      if (thread* const chosen = take(self.ready); chosen != nullptr) {
        return &chosen->stack;
      }
      if (thread* const chosen = take(self.inbox); chosen != nullptr) {
        return &chosen->stack;
      }
      if (thread* const chosen = take(self.preempted); chosen != nullptr) {
        return &chosen->stack;
      }
      if (self.exits) {
        self.over = true;
        return nullptr;
      }
      // A waiting thread that no thread could wake is left behind, as by usched.
      if (!self.quiet && (!remote || self.waiting == 0)) {
        self.quiet = true;
        self.of->count_unquiet(-1);
      }
      self.sleep();
    }
  }
  void count_unquiet(int more) {
    pthread_mutex_lock(&quiet_lock_);
    unquiet_ += more;
    if (unquiet_ == 0) {
      pthread_cond_signal(&all_quiet_);
    }
    pthread_mutex_unlock(&quiet_lock_);
  }
  static thread* take(thread*& list) {
    thread* const first = list;
    if (first != nullptr) {
      list = first->after;
    }
    return first;
  }
  static void* allocate(usched*, int size) {
    void* const buffer = std::malloc(static_cast<std::size_t>(size));
    if (buffer == nullptr) {
      std::fprintf(stderr, "usched (pirn): no memory for the %d bytes of a thread's stack\n", size);
      std::abort();
    }
    return buffer;
  }
  static void free(usched*, void* buffer, int) { std::free(buffer); }

  native* all_ = nullptr;
  int natives_ = 1;
  int started_ = 0;
  int (*cpu_of_)(int) = nullptr;
  /// Of usched_preempt_in; none if `us` is 0.
  struct preemption {
    int sig = 0;
    long us = 0;
    const char* begin = nullptr;
    const char* end = nullptr;
  } preemption_;
  pirn::platform::atomic<int> made_ = 0;
  // Locked with the lock of a native thread held, or with none.
  pthread_mutex_t quiet_lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t all_quiet_ = PTHREAD_COND_INITIALIZER;
  int unquiet_ = 0;  // native threads that have been started and are not quiet
};

}  // namespace pirn_compat
