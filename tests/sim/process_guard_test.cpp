// A program that does to the process what it must not ends the execution, and the report says where.
#include "sim/process_guard.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <pirn/fiber/runtime.hpp>
#include <pirn/sim/explore.hpp>

#include <cstdlib>
#include <string>
#include <thread>

using namespace pirn;
using sim::outcome;

namespace {

template <std::size_t Bytes>
int deep(int calls) {
  volatile char frame[Bytes];
  frame[0] = static_cast<char>(calls);
  return calls == 0 ? frame[0] : deep<Bytes>(calls - 1) + frame[0];
}

TEST(process_guard, says_where_the_program_crashes_or_ends_the_process) {
  const auto last_line = [](const std::function<void()>& what) {
    const sim::result found = sim::explore([&] {
      runtime fibers({.workers = 1});
      fibers.spawn(what, {.name = "who"}).join();
    });
    EXPECT_EQ(found.what, outcome::aborted) << found.text();
    EXPECT_NE(found.trace.find("\"who\" on worker 0: "), std::string::npos) << found.text();
    const std::string trace = found.trace.substr(0, found.trace.size() - 1);
    return found.message + trace.substr(trace.rfind(": "));
  };
  const auto here = [](int line) { return ", at process_guard_test.cpp:" + std::to_string(line) + " ("; };
  const auto begins = [](const std::string& text, const std::string& with) {
    EXPECT_EQ(text.substr(0, with.size()), with);
  };
  int* volatile nowhere = reinterpret_cast<int*>(64);  // volatile, so that no compiler knows better
  begins(last_line([&] { *nowhere = 1; }),
         "it crashed: Segmentation fault, at address 0x40: crashes" + here(__LINE__ - 1));
  begins(last_line([] {
           void (*volatile none)() = nullptr;
           none();
           sim::check(true);  // prevents a tail call
         }),
         "it crashed: Segmentation fault, at address (nil): crashes" + here(__LINE__ - 3));
  const char* const overflow = "it crashed: Segmentation fault, a stack overflow: in the guard of a stack";
  begins(last_line([] { deep<512>(1 << 20); }), overflow);
  begins(last_line([] { deep<20'000>(1 << 20); }), overflow);  // with its stack pointer in the guard
  begins(last_line([] { std::abort(); }),
         "std::abort was called; its message is on standard error: aborts" + here(__LINE__ - 1));
  begins(last_line([] { std::exit(3); }), "exit(3) was called: aborts" + here(__LINE__));
  begins(last_line([] { std::quick_exit(3); }), "quick_exit(3) was called: aborts" + here(__LINE__));
  begins(last_line([] { _exit(1); }), "_exit(1) was called: aborts" + here(__LINE__));
  begins(
      last_line([] { std::thread([] {}).join(); }),
      "a thread was started that the exploration does not control: make it a sim::thread: aborts" + here(__LINE__ - 1));
}

TEST(process_guard, sees_what_is_done_to_memory_that_was_given_back) {
  struct two_words {
    long first, second;
  };
  const auto twice = sim::explore([] {
    two_words* volatile made = new two_words;
    for (int i = 0; i < 2; ++i) {
      ::operator delete(static_cast<void*>(made));
    }
    sim::check(true);  // no tail call
  });
  EXPECT_EQ(twice.what, outcome::aborted) << twice.text();
  EXPECT_EQ(twice.message, "memory was freed twice");
  EXPECT_NE(twice.trace.find("aborts, at process_guard_test.cpp:"), std::string::npos) << twice.text();

  const auto written_by = [](int what) {
    return sim::explore([what] {
      auto* const made = new two_words;
      volatile two_words* volatile same = made;
      delete made;
      if (what == 1) {
        same->first = 7;
      } else {
        same->second = 7;
      }
      if (what == 2) {
        two_words* volatile another = new two_words;
        delete another;
      }
    });
  };
  for (const int what : {0, 1, 2}) {
    const auto found = written_by(what);
    EXPECT_EQ(found.what, outcome::aborted) << found.text();
    EXPECT_EQ(found.message, "memory was written after it was freed");
  }
  EXPECT_TRUE(sim::explore([] { delete new two_words; }));
}

}  // namespace
