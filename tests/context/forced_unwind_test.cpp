// Unwinding of a suspended context: its destructors, handlers that catch or swallow the unwind, and the cases that end
// the process.

#include "pirn/context/expert/forced_unwind.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <thread>
#include <vector>

#include "pirn/context/arch.hpp"
#include "pirn/context/expert/sanitizer.hpp"

namespace {

using pirn::ending;
using pirn::exception_globals;
using pirn::forced_unwind;
using pirn::arch::word;
namespace arch = pirn::arch;

/// A context that runs a function and can be cancelled while it is suspended. Continuation, coroutine and generator are
/// built like it.
class party {
 public:
  using body = void (*)(party&);
  explicit party(body run) : run_(run), bytes_(std::make_unique_for_overwrite<char[]>(stack_size)) {
    outside_hooks_.adopt_thread();
    inside_hooks_.create(bytes_.get(), stack_size, "party");
    inside_ = arch::prepare(bytes_.get() + stack_size, &enter);
    resume();
  }
  ~party() {
    inside_hooks_.destroy();
    outside_hooks_.destroy();
  }
  party(const party&) = delete;
  party& operator=(const party&) = delete;

  void resume() {
    word values[arch::value_words] = {reinterpret_cast<word>(this)};
    outside_hooks_.leave(inside_hooks_);
    arch::transfer(inside_, values);
    outside_hooks_.arrive();
  }
  /// Unwinds the context, again each time that it suspends instead of ending.
  void cancel(const char* name = "party") {
    outside_hooks_.destroy();
    outside_hooks_.adopt_thread();
    forced_unwind unwind(name);
    while (!ended) {
      word values[arch::value_words] = {reinterpret_cast<word>(&unwind)};
      outside_hooks_.leave(inside_hooks_);
      arch::transfer_tagged(inside_, values);
      outside_hooks_.arrive();
    }
  }
  /// Suspends the context from inside.
  void suspend() {
    word values[arch::value_words] = {};
    inside_hooks_.leave(outside_hooks_);
    arch::transfer(outside_, values);
    inside_hooks_.arrive();
    if (arch::is_tagged(outside_)) [[unlikely]] {
      outside_ = arch::untagged(outside_);
      reinterpret_cast<forced_unwind*>(values[0])->raise();
    }
  }

  /// As `suspend`, where exceptions are in flight: they stay with this context.
  void suspend_with_exceptions() {
    exception_globals own = std::exchange(exception_globals::of_thread(), {});
    word values[arch::value_words] = {};
    inside_hooks_.leave(outside_hooks_);
    arch::transfer(outside_, values);
    inside_hooks_.arrive();
    exception_globals::of_thread() = own;
    if (arch::is_tagged(outside_)) {
      outside_ = arch::untagged(outside_);
      reinterpret_cast<forced_unwind*>(values[0])->raise();
    }
  }

  bool ended = false;
  ending how = ending::returned;
  std::exception_ptr thrown;
  std::vector<int> log;

 private:
#if defined(PIRN_ASAN)
  static constexpr std::size_t stack_size = 512 * 1024;
#else
  static constexpr std::size_t stack_size = 128 * 1024;
#endif

  PIRN_NONE static void enter(void* pc, void* sp, void* fp, word self_word, word, word, word) {
    auto& self = *reinterpret_cast<party*>(self_word);
    self.outside_ = {pc, sp, fp};
    self.inside_hooks_.arrive();
    self.how = pirn::run_unwindable([&self] { self.run_(self); }, self.thrown);
    self.ended = true;
    word values[arch::value_words] = {};
    self.inside_hooks_.leave_for_good(self.outside_hooks_);
    arch::transfer_last(self.outside_, values);
  }

  body run_;
  std::unique_ptr<char[]> bytes_;
  arch::peer inside_, outside_;
  pirn::sanitizer_state inside_hooks_, outside_hooks_;
};

struct note {
  party& of;
  int number;
  ~note() { of.log.push_back(number); }
};

std::vector<std::string> reports;
class forced_unwind_test : public testing::Test {
 protected:
  forced_unwind_test() {
    reports.clear();
    forced_unwind::set_reporter([](const char* line) noexcept { reports.emplace_back(line); });
  }
  ~forced_unwind_test() override { forced_unwind::set_reporter(nullptr); }
};
using forced_unwind_death_test = forced_unwind_test;

void expect_clean(const party& context) {
  EXPECT_TRUE(context.ended);
  EXPECT_EQ(context.how, ending::unwound);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(std::current_exception(), nullptr);
}

[[gnu::noinline]] void deeper(party& self, int depth) {
  const note here{self, depth};
  if (depth == 0) {
    self.suspend();
    self.log.push_back(-1);
  } else {
    deeper(self, depth - 1);
  }
}

TEST_F(forced_unwind_test, destructors_run_once_and_in_order) {
  party context([](party& self) { deeper(self, 4); });
  EXPECT_TRUE(context.log.empty());
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_TRUE(reports.empty());
}

TEST_F(forced_unwind_test, a_body_that_goes_on_returns) {
  party context([](party& self) { deeper(self, 1); });
  context.resume();
  EXPECT_TRUE(context.ended);
  EXPECT_EQ(context.how, ending::returned);
  EXPECT_EQ(context.log, (std::vector{-1, 0, 1}));
}

TEST_F(forced_unwind_test, an_exception_of_the_body_is_kept) {
  party context([](party& self) {
    self.suspend();
    throw std::runtime_error("own");
  });
  context.resume();
  EXPECT_EQ(context.how, ending::threw);
  EXPECT_THROW(std::rethrow_exception(context.thrown), std::runtime_error);
}

TEST_F(forced_unwind_test, no_handler_of_a_type_catches_it) {
  party context([](party& self) {
    const note outer{self, 1};
    try {
      deeper(self, 0);
    } catch (const std::exception&) {
      self.log.push_back(-2);
    } catch (int) {
      self.log.push_back(-3);
    }
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{0, 1}));
}

TEST_F(forced_unwind_test, a_rethrow_lets_it_pass) {
  party context([](party& self) {
    try {
      try {
        deeper(self, 0);
      } catch (...) {
        self.log.push_back(10);
        throw;
      }
    } catch (...) {
      self.log.push_back(11);
      throw;
    }
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{0, 10, 11}));
  EXPECT_TRUE(reports.empty());
}

TEST_F(forced_unwind_test, swallowing_is_overruled_and_reported_once) {
  party context([](party& self) {
    const note outermost{self, 1};
    try {
      const note outer{self, 2};
      try {
        deeper(self, 0);
      } catch (...) {
        self.log.push_back(10);
      }
      self.log.push_back(-10);
    } catch (...) {
      self.log.push_back(11);
    }
    self.log.push_back(-11);
  });
  context.cancel("greedy");
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{0, 10, 2, 11, 1}));
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_NE(reports[0].find("\"greedy\""), std::string::npos);
  EXPECT_NE(reports[0].find("throw;"), std::string::npos);
}

TEST_F(forced_unwind_test, swallowing_in_a_loop_is_overruled) {
  party context([](party& self) {
    for (;;) {
      try {
        self.suspend();
      } catch (...) {
        self.log.push_back(1);
        continue;
      }
    }
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{1}));
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(forced_unwind_test, an_exception_pointer_cannot_keep_it) {
  party context([](party& self) {
    std::exception_ptr kept;
    try {
      self.suspend();
    } catch (...) {
      kept = std::current_exception();
      self.log.push_back(kept == nullptr ? 1 : -1);
    }
    self.log.push_back(-2);
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{1}));
}

TEST_F(forced_unwind_test, another_exception_may_take_its_place) {
  party context([](party& self) {
    const note outer{self, 1};
    try {
      self.suspend();
    } catch (...) {
      throw std::runtime_error("instead");
    }
  });
  context.cancel();
  EXPECT_EQ(context.how, ending::threw);
  EXPECT_EQ(context.log, (std::vector{1}));
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(forced_unwind_test, is_over_when_another_exception_took_its_place) {
  party context([](party& self) {
    try {
      try {
        self.suspend();
      } catch (...) {
        throw 5;
      }
    } catch (int) {
      self.log.push_back(std::uncaught_exceptions());
    }
    self.log.push_back(std::uncaught_exceptions());
    self.suspend();
    self.log.push_back(-1);
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{0, 0}));
}

TEST_F(forced_unwind_test, suspending_in_the_handler_of_an_answer_is_cancelled_again) {
  struct counted {
    party* of;
    explicit counted(party& self) : of(&self) {}
    counted(const counted& other) = default;
    ~counted() { of->log.push_back(2); }
  };
  party context([](party& self) {
    const note outer{self, 1};
    try {
      try {
        self.suspend();
      } catch (...) {
        throw counted(self);
      }
    } catch (const counted&) {
      self.suspend();
      self.log.push_back(-1);
    }
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{1, 2}));
}

TEST_F(forced_unwind_test, suspending_while_unwound_is_cancelled_again) {
  party context([](party& self) {
    const note outer{self, 1};
    try {
      self.suspend();
    } catch (...) {
      self.log.push_back(10);
      self.suspend();
      self.log.push_back(-10);
    }
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{10, 1}));
}

TEST_F(forced_unwind_test, scope_guards_see_a_failure) {
  struct guard {
    party& of;
    int before = std::uncaught_exceptions();
    ~guard() { of.log.push_back(std::uncaught_exceptions() - before); }
  };
  party context([](party& self) {
    const guard outer{self};
    self.suspend();
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{1}));
}

TEST_F(forced_unwind_test, destructors_may_throw_and_catch) {
  struct busy {
    party& of;
    ~busy() {
      try {
        try {
          throw 1;
        } catch (...) {
          throw;
        }
      } catch (int number) {
        of.log.push_back(number);
      }
    }
  };
  party context([](party& self) {
    const busy first{self};
    try {
      const busy second{self};
      self.suspend();
    } catch (...) {
      const busy third{self};
      throw;
    }
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{1, 1, 1}));
}

TEST_F(forced_unwind_test, a_destructor_may_cancel_another) {
  static party* inner = nullptr;
  struct owner {
    party& of;
    ~owner() {
      inner->cancel("inner");
      of.log.push_back(inner->ended ? 7 : -7);
    }
  };
  party nested([](party& self) {
    try {
      self.suspend();
    } catch (...) {
    }
  });
  inner = &nested;
  party context([](party& self) {
    const note outer{self, 1};
    const owner owns{self};
    try {
      self.suspend();
    } catch (...) {
    }
  });
  context.cancel("outer");
  expect_clean(context);
  expect_clean(nested);
  EXPECT_EQ(context.log, (std::vector{7, 1}));
  EXPECT_EQ(reports.size(), 2u);
}

TEST_F(forced_unwind_test, the_cancellers_exceptions_stay_its_own) {
  party context([](party& self) {
    try {
      self.suspend();
    } catch (...) {
      self.log.push_back(std::current_exception() == nullptr ? 1 : -1);
      throw;
    }
  });
  std::string caught;
  try {
    try {
      throw std::runtime_error("cancellers");
    } catch (...) {
      context.cancel();
      throw;
    }
  } catch (const std::exception& error) {
    caught = error.what();
  }
  EXPECT_EQ(caught, "cancellers");
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{1}));
}

TEST_F(forced_unwind_test, from_inside_catch_blocks) {
  struct counted {
    party* of;
    explicit counted(party& self) : of(&self) {}
    counted(const counted& other) = default;
    ~counted() { of->log.push_back(3); }
  };
  party context([](party& self) {
    const note outer{self, 1};
    try {
      throw counted(self);
    } catch (const counted&) {
      const note within{self, 2};
      try {
        try {
          throw std::runtime_error("second");
        } catch (const std::exception&) {
          try {
            self.suspend_with_exceptions();
          } catch (...) {  // foreign, besides two caught ones
            self.log.push_back(10);
          }
          self.log.push_back(-10);
        }
      } catch (...) {
        self.log.push_back(11);
        throw;
      }
    }
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{10, 11, 2, 1, 3}));
}

TEST_F(forced_unwind_test, by_another_thread) {
  party context([](party& self) { deeper(self, 2); });
  std::thread([&context] { context.cancel(); }).join();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{0, 1, 2}));
}

/// A buffer that suspends when it is written to: the frames between belong to the standard library.
class suspending_buffer : public std::streambuf {
 public:
  explicit suspending_buffer(party& of) : of_(of) {}

 private:
  int_type overflow(int_type character) override {
    of_.suspend();
    return character;
  }
  party& of_;
};

TEST_F(forced_unwind_test, through_the_standard_library) {
  party context([](party& self) {
    suspending_buffer buffer(self);
    std::ostream out(&buffer);
    const note outer{self, 1};
    out << 42;
    self.log.push_back(-1);
  });
  context.cancel();
  expect_clean(context);
  EXPECT_EQ(context.log, (std::vector{1}));
}

// ---- impossible unwinds -----------------------------------------------------------------------------------------

struct suspends_when_destroyed {
  party& of;
  ~suspends_when_destroyed() { of.suspend(); }
};

TEST_F(forced_unwind_death_test, suspended_under_noexcept) {
  EXPECT_DEATH(
      {
        party context([](party& self) { const suspends_when_destroyed last{self}; });
        context.cancel("stubborn");
      },
      "\"stubborn\" cannot be unwound: it is suspended under noexcept");
}

#if defined(__GNUC__) && !defined(__clang__)
TEST_F(forced_unwind_death_test, noexcept_is_found_before_anything_is_destroyed) {
  struct loud {
    ~loud() { std::fputs("destroyed", stderr); }
  };
  const auto run = [] {
    party context([](party& self) {
      const auto outer = [&self]() noexcept {
        const auto inner = [&self]() __attribute__((noinline)) {
          const loud first;
          self.suspend();
        };
        inner();
      };
      outer();
    });
    context.cancel();
  };
  EXPECT_DEATH(run(), "^pirn: \"party\" cannot be unwound: it is suspended under noexcept, in the function at");
}
#endif

TEST_F(forced_unwind_death_test, suspended_while_an_exception_unwinds) {
  EXPECT_DEATH(
      {
        party context([](party& self) {
          try {
            struct suspends {
              party& of;
              ~suspends() noexcept(false) { of.suspend_with_exceptions(); }
            };
            const suspends last{self};
            throw 1;
          } catch (int) {
          }
        });
        context.cancel("unlucky");
      },
      "\"unlucky\" cannot be unwound: it is suspended in a destructor");
}

TEST_F(forced_unwind_death_test, a_throwing_destructor_is_none_of_our_business) {
  struct throws_when_destroyed {
    ~throws_when_destroyed() { throw_it(); }
    static void throw_it() { throw std::runtime_error("from a destructor"); }
  };
  std::set_terminate([] {
    std::fputs("the handler that was there", stderr);
    std::abort();
  });
  EXPECT_DEATH(
      {
        party context([](party& self) {
          const throws_when_destroyed last;
          self.suspend();
        });
        context.cancel();
      },
      "the handler that was there");
  std::set_terminate(nullptr);
}

}  // namespace
