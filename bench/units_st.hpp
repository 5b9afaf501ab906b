// State Threads, all on one OS thread; as units_pirn.hpp.
#pragma once

#include <st.h>

#include <mutex>

#include "units_c.hpp"

namespace bench {

struct units {
  static constexpr const char* name = "st";
  static constexpr const char* note = "yields by a sleep of no time";

  class mutex {
   public:
    mutex() = default;
    ~mutex() { st_mutex_destroy(mutex_); }
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    void lock() { st_mutex_lock(mutex_); }
    void unlock() { st_mutex_unlock(mutex_); }

   private:
    st_mutex_t mutex_ = st_mutex_new();
  };

  class condition {
   public:
    condition() = default;
    ~condition() { st_cond_destroy(condition_); }
    condition(const condition&) = delete;
    condition& operator=(const condition&) = delete;
    template <typename Ready>
    void wait(std::unique_lock<mutex>& lock, Ready ready) {
      while (!ready()) {
        lock.unlock();  // which lets no other unit run before the wait has begun
        st_cond_wait(condition_);
        lock.lock();
      }
    }
    void notify_one() { st_cond_signal(condition_); }

   private:
    st_cond_t condition_ = st_cond_new();
  };

  static void yield() { st_usleep(0); }

  template <typename Body>
  static void run(Body body) {
    st_init();
    body();
  }

  template <typename Body>
  static void together(std::uint64_t count, Body body) {
    together_in_c(
        count, body,
        [](auto begin, void* argument) {
          return st_thread_create(begin, argument, 1, static_cast<int>(input("STACK")));
        },
        [](st_thread_t each) { st_thread_join(each, nullptr); });
  }

  template <typename Other, typename Mine>
  static void both(Other other, Mine mine) {
    both_in_c(
        other, mine,
        [](auto begin, void* argument) {
          return st_thread_create(begin, argument, 1, static_cast<int>(input("STACK")));
        },
        [](st_thread_t each) { st_thread_join(each, nullptr); });
  }
};

}  // namespace bench
