// Any thread or fiber ends the process by exit, while runtimes, their fibers and the objects that these wait for exist.
// The process ends with the given status.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "fiber/support.hpp"
#include "pirn/fiber/blocking.hpp"
#include "pirn/fiber/fiber_local.hpp"
#include "pirn/fiber/scope.hpp"

namespace {

using namespace pirn_test;

constexpr int status = 5;
constexpr unsigned longest = 60;  // seconds; a hang ends by SIGALRM
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
constexpr const char* silence = "";  // none from pirn; the sanitizer may report running threads
#else
constexpr const char* silence = "^$";
#endif

/// An event that exit destroys while fibers wait for it.
event& never_signalled() {
  static event never;
  return never;
}

#if defined(PIRN_TSAN)
#define SKIP_UNDER_TSAN() \
  GTEST_SKIP() << "who waits for a static object and its destructor are a data race, in exit too"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

template <class Body>
void ends_with_its_status(Body body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::alarm(longest);
        body();
        std::_Exit(1);
      },
      testing::ExitedWithCode(status), silence);
}

TEST(exit_death, by_a_fiber_of_a_runtime_on_the_stack) {
  SKIP_UNDER_TSAN();
  ends_with_its_status([] {
    pirn::runtime rt({.workers = 2});
    const pirn::fiber waits = rt.spawn([] { static_cast<void>(never_signalled().wait()); });
    rt.run([] { std::exit(status); });
  });
}

// exit calls the destructor functions of the program's file after all functions that were given to atexit.
void (*last_of_all)() = nullptr;
[[gnu::destructor]] void at_the_end_of_the_program() {
  if (last_of_all != nullptr) {
    last_of_all();
  }
}

TEST(exit_death, while_a_fiber_begins_to_wait_for_what_it_makes_then) {
  SKIP_UNDER_TSAN();
  ends_with_its_status([] {
    static std::atomic<bool> ends = false;
    static std::atomic<bool> waits = false;
    last_of_all = [] {
      ends = true;
      while (!waits) {
        std::this_thread::yield();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    pirn::runtime rt({.workers = 2});
    const pirn::fiber makes = rt.spawn([] {
      while (!ends) {
        pirn::this_fiber::yield();
      }
      event& made = never_signalled();
      waits = true;
      static_cast<void>(made.wait());
    });
    rt.run([] { std::exit(status); });
  });
}

TEST(exit_death, by_a_fiber_on_the_calling_thread) {
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 1, .calling_thread = true});
    rt.run([] { std::exit(status); });
  });
}

TEST(exit_death, by_a_fiber_of_a_static_runtime) {
  ends_with_its_status([] {
    static std::unique_ptr<pirn::runtime> rt;
    rt = std::make_unique<pirn::runtime>(pirn::runtime_options{.workers = 2});
    rt->run([] { std::exit(status); });
  });
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 2});  // destroyed before anything that it could have registered with atexit
    rt.run([] {
      static pirn::fiber_local<std::string> local;
      *local = "not destroyed";
      std::exit(status);
    });
  });
}

TEST(exit_death, with_a_static_pool_of_stacks) {
  ends_with_its_status([] {
    static pirn::guarded_pool pool;
    pirn::runtime rt({.workers = 2, .stacks = &pool});
    rt.run([] { std::exit(status); });
  });
}

TEST(exit_death, by_a_blocking_call) {
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 2});
    rt.run([] { pirn::blocking([] { std::exit(status); }); });
  });
}

TEST(exit_death, by_a_thread_while_fibers_wait_for_what_is_destroyed) {
  SKIP_UNDER_TSAN();
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 2});
    rt.spawn([] { static_cast<void>(never_signalled().wait()); }).detach();
    rt.run([] { pirn::this_fiber::yield(); });
    std::exit(status);
  });
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 2});
    static std::thread other([] { rt.run([] { static_cast<void>(never_signalled().wait()); }); });
    other.detach();
    std::this_thread::sleep_for(20ms);
    std::exit(status);
  });
}

TEST(exit_death, while_other_fibers_run) {
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 3});
    for (int i = 1; i < 3; ++i) {
      rt.spawn(
            [] {
              for (;;) {
                pirn::spawn([] { pirn::this_fiber::yield(); }).join();
              }
            },
            {.worker = i})
          .detach();
    }
    rt.spawn(
          [] {
            static_cast<void>(pirn::this_fiber::sleep_for(5ms));
            std::exit(status);
          },
          {.worker = 0})
        .join();
  });
}

// A runtime that is made meanwhile works and is waited for, and so is a runtime that has no fibers left.
TEST(exit_death, with_a_runtime_in_a_static_destructor) {
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 1});
    struct at_end {
      ~at_end() {
        pirn::runtime late({.workers = 1});
        if (late.run([] { return 1; }) + rt.run([] { return 2; }) != 3) {
          std::_Exit(1);
        }
      }
    };
    static const at_end last;
    std::exit(status);
  });
}

TEST(exit_death, with_a_static_fiber_whose_runtime_is_gone) {
  ends_with_its_status([] {
    static pirn::fiber waits;
    static pirn::runtime rt({.workers = 1});
    waits = rt.spawn([] { static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::hours(1))); });
    rt.run([] { pirn::this_fiber::yield(); });  // now the fiber waits
    std::exit(status);
  });
}

TEST(exit_death, with_a_static_scope_whose_runtime_is_gone) {
  ends_with_its_status([] {
    static std::optional<pirn::scope> children;
    static pirn::runtime rt({.workers = 1});
    children.emplace(rt);
    children->spawn([] {
      while (pirn::this_fiber::sleep_for(std::chrono::hours(1)) || true) {
      }
    });
    std::exit(status);
  });
}

// The runtime belongs to no static object, and its fibers may use objects on the stack.
TEST(exit_death, waits_for_a_runtime_that_is_made_meanwhile) {
  ends_with_its_status([] {
    struct at_end {
      ~at_end() {
        bool done = false;
        {
          pirn::runtime late({.workers = 1});
          late.spawn([&] {
                static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::milliseconds(5)));
                done = true;
              })
              .detach();
        }
        if (!done) {
          std::_Exit(1);
        }
      }
    };
    static const at_end last;
    std::exit(status);
  });
}

TEST(exit_death, of_a_child_process) {
#if defined(PIRN_TSAN)
  GTEST_SKIP() << "ThreadSanitizer itself ends a child of a process with threads";
#endif
  ends_with_its_status([] {
    static pirn::runtime rt({.workers = 1});
    rt.run([] {});
    if (const pid_t child = ::fork(); child == 0) {
      std::exit(status);
    } else {
      int how = 0;
      ::waitpid(child, &how, 0);
      std::exit(WIFEXITED(how) ? WEXITSTATUS(how) : 2);
    }
  });
}

// The misuse of destroying a runtime in one of its fibers, in a process that does not end.
TEST(exit_death, is_not_what_a_fiber_does_that_destroys_its_runtime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto rt = std::make_unique<pirn::runtime>(pirn::runtime_options{.workers = 1});
        rt->run([&] { rt.reset(); });
      },
      "pirn: a runtime is being destroyed by one of its fibers");
}

}  // namespace
