// GNU Pth, all on one OS thread; as units_pirn.hpp.
#pragma once

#include <pth.h>

#include <mutex>

#include "units_c.hpp"

namespace bench {

struct units {
  static constexpr const char* name = "pth";
  static constexpr const char* note = nullptr;

  class mutex {
   public:
    mutex() { pth_mutex_init(&mutex_); }
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    void lock() { pth_mutex_acquire(&mutex_, FALSE, nullptr); }
    void unlock() { pth_mutex_release(&mutex_); }
    pth_mutex_t* native_handle() { return &mutex_; }

   private:
    pth_mutex_t mutex_;
  };

  class condition {
   public:
    condition() { pth_cond_init(&condition_); }
    condition(const condition&) = delete;
    condition& operator=(const condition&) = delete;
    template <typename Ready>
    void wait(std::unique_lock<mutex>& lock, Ready ready) {
      while (!ready()) {
        pth_cond_await(&condition_, lock.mutex()->native_handle(), nullptr);
      }
    }
    void notify_one() { pth_cond_notify(&condition_, FALSE); }

   private:
    pth_cond_t condition_;
  };

  static void yield() { pth_yield(nullptr); }

  template <typename Body>
  static void run(Body body) {
    pth_init();
    body();
  }

  template <typename Body>
  static void together(std::uint64_t count, Body body) {
    together_in_c(
        count, body, [](auto begin, void* argument) { return pth_spawn(PTH_ATTR_DEFAULT, begin, argument); },
        [](pth_t each) { pth_join(each, nullptr); });
  }

  template <typename Other, typename Mine>
  static void both(Other other, Mine mine) {
    both_in_c(
        other, mine, [](auto begin, void* argument) { return pth_spawn(PTH_ATTR_DEFAULT, begin, argument); },
        [](pth_t each) { pth_join(each, nullptr); });
  }
};

}  // namespace bench
