// Overrunning a stack without a guard: reported by name, where the memory below lets the program come that far.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/inline.h"
#include "pirn/pirn.h"
#include "pirn/stack/expert/copy_stack.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"
#include "pirn/stack/stack.hpp"

namespace {

#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
#define ENDS(message, ...) GTEST_SKIP() << "frames are larger, and the sanitizer sees it first"
#else
#define ENDS(message, ...) EXPECT_DEATH(([&] __VA_ARGS__)(), message)

/// Returns the upper half of memory of the caller; the lower half may be overwritten.
pirn::stack upper_half() {
  alignas(4096) static char memory[65536];
  return {memory + 32768, memory + sizeof memory};
}

/// Writes `bytes` bytes of its frame, and calls `then` above them.
template <class F>
[[gnu::noinline]] void go_down(std::size_t bytes, F&& then) {
  auto* const frame = static_cast<char*>(__builtin_alloca(bytes));
  std::memset(frame, 1, bytes);
  asm volatile("" : : "r"(frame) : "memory");
  then();
}

/// Calls `then` in each frame of a recursion. It does not yield itself: an unoptimized frame of a function that does is
/// large, and little of it is written.
template <class F>
[[gnu::noinline]] int recurse(int depth, const F& then) {
  int local[8];  // written whole: a compiler that inlines some levels leaves few words of small frames unwritten
  for (int& each : local) {
    each = depth;
  }
  asm volatile("" : "+m"(local));
  if (depth > 0) {
    local[0] += recurse(depth - 1, then);
  }
  then(local[0]);
  asm volatile("" : "+m"(local));
  return local[0];
}

/// Writes a word in every 128 bytes of the stack, until it is below `end`. The words lie `shift` bytes above multiples
/// of 128 from `end`.
[[gnu::noinline]] void sparse_frames(const void* end, std::size_t shift) {
  const auto low = reinterpret_cast<std::uintptr_t>(end);
  const auto sp = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  char* const frame = static_cast<char*>(__builtin_alloca(sp - low + 1024));
  asm volatile("" : : "r"(frame) : "memory");
  for (std::uintptr_t at = low + 128 * 4 + shift; at > low - 512; at -= 128) {
    *reinterpret_cast<volatile std::uint32_t*>(at) = 1;
  }
}
#endif

TEST(stack_end_death, a_recursion_of_400_in_a_frame) {
  for ([[maybe_unused]] const bool yields : {true, false}) {
    ENDS("overflow in a generator: its stack has [0-9]+ bytes and no guard.* Its body is .*lambda", {
      struct {
        char below[524288];  // without optimization a frame of the recursion may have 600 bytes
        bool yields;
        pirn::generator<int, pirn::frame<8192>> g = [this](auto& yield) {
          recurse(400, [&](int value) {
            if (yields) {
              yield(value);
            }
          });
          yield(1);
        };
      } frame;
      frame.yields = yields;
      for ([[maybe_unused]] const int each : frame.g) {
      }
      std::_Exit(0);
    });
  }
}

// A local array lies over the end of the stack, and only what is far below is written, and left before the next yield.
TEST(stack_end_death, a_frame_that_passes_over_the_end) {
  for ([[maybe_unused]] const bool ends : {true, false}) {
    ENDS("overflow in a generator: its stack has [0-9]+ bytes and no guard", {
      struct {
        char below[65536];
        bool ends;
        char* limit = reinterpret_cast<char*>(&g) + pirn::frame_buffer<8192>::margin;
        pirn::generator<int, pirn::frame<8192>> g = [this](auto& yield) {
          [&]() __attribute__((noinline)) {
            auto* const here = static_cast<char*>(__builtin_frame_address(0));
            auto* const frame = static_cast<char*>(__builtin_alloca(here - limit + 600));
            asm volatile("" : : "r"(frame) : "memory");
            std::memset(limit - 200, 1, 100);
          }();
          yield(1);
          if (!ends) {
            yield(2);
          }
        };
      } frame;
      frame.ends = ends;
      for ([[maybe_unused]] const int each : frame.g) {
        if (!frame.ends) {
          break;
        }
      }
      if (frame.ends) {
        std::_Exit(0);
      }
    });
  }
}

// An overflow may overwrite the iterator, so that nobody takes the generator back from it.
TEST(stack_end_death, a_generator_that_is_destroyed_before_its_iterator) {
  ENDS("overflow in a generator: its stack has [0-9]+ bytes and no guard", {
    struct {
      char below[65536];
      char* limit = reinterpret_cast<char*>(&g) + pirn::frame_buffer<8192>::margin;
      pirn::generator<int, pirn::frame<8192>> g = [this](auto& yield) {
        std::memset(limit - 200, 1, 100);
        yield(1);
      };
    } frame;
    static_cast<void>(new auto(frame.g.begin()));
  });
}

// As frames of 128 bytes do, in which little more than the return address is written.
TEST(stack_end_death, small_frames_that_leave_most_of_the_margin_unwritten) {
  for (std::size_t shift = 0; shift < 128; shift += 16) {
    ENDS("overflow in a generator: its stack has [0-9]+ bytes and no guard", {
      struct {
        char below[65536];
        std::size_t shift;
        pirn::generator<int, pirn::frame<8192>> g = [this](auto& yield) {
          sparse_frames(&g, shift);
          yield(1);
        };
      } frame;
      frame.shift = shift;
      for ([[maybe_unused]] const int each : frame.g) {
      }
      std::_Exit(0);
    });
  }
}

TEST(stack_end_death, a_generator_that_yields_further_down) {
  ENDS("stack overflow in a generator: its stack has [0-9]+ bytes and no guard.* needed at least [12][0-9]{4}", {
    struct {
      char below[65536];
      pirn::generator<int, pirn::frame<8192>> g = [](auto& yield) {
        yield(1);
        go_down(16384, [&] { yield(2); });
      };
    } frame;
    for (const int each : frame.g) {
      EXPECT_EQ(each, 1);
    }
  });
}

TEST(stack_end_death, a_generator_that_has_come_back) {
  ENDS("pirn: stack overflow in a generator", {
    struct {
      char below[65536];
      pirn::generator<int, pirn::frame<8192>> g = [](auto& yield) {
        go_down(16384, [] {});
        yield(1);
        yield(2);
      };
    } frame;
    for (const int each : frame.g) {
      EXPECT_EQ(each, 1);
    }
  });
}

// The consumer's frame lies below, including the iterator.
TEST(stack_end_death, a_generator_over_whatever_the_compiler_puts_below) {
  for ([[maybe_unused]] const std::size_t bytes : {9000, 10000, 12000, 16000}) {
    ENDS("pirn: stack overflow in a generator: its stack has [0-9]+ bytes", {
      pirn::frame_generator<int> g = [bytes](auto& yield) {
        go_down(bytes, [] {});
        yield(1);
        yield(2);
      };
      int sum = 0;
      for (const int each : g) {
        sum += each;
      }
      std::_Exit(sum);
    });
  }
}

// The program skips the word at the end without writing there.
TEST(stack_end_death, a_generator_that_steps_over_the_end) {
  ENDS("stack overflow in a generator: its stack has [0-9]+ bytes and no guard.* needed at least [12][0-9]{4}", {
    struct {
      char below[65536];
      pirn::frame_generator<int> g = [](auto& yield) {
        auto* const frame = static_cast<char*>(__builtin_alloca(16384));
        asm volatile("" : : "r"(frame) : "memory");
        yield(1);
      };
    } frame;
    for (const int each : frame.g) {
      EXPECT_EQ(each, 1);
    }
    std::_Exit(0);
  });
}

// The body of one generator yields as the other, which it runs: from its own stack, which may lie directly below.
TEST(stack_end, who_yields_on_another_stack_has_not_run_off) {
  pirn::generator<int>::yield* up = nullptr;
  struct {
    pirn::frame_generator<int, 16384> inner;
    pirn::frame_generator<int, 65536> outer;
  } frames{.inner =
               [&](auto& yield) {
                 (*up)(1);
                 yield(1);
               },
           .outer =
               [&](auto& yield) {
                 up = &yield;
                 for (const int each : frames.inner) {
                   yield(each);
                 }
                 pirn::frame_generator<int> nested = [&](auto&) { yield(3); };
                 pirn::generator<int> pooled = [&](auto&) { yield(4); };
                 static_cast<void>(nested.begin());
                 static_cast<void>(pooled.begin());
               }};
  int sum = 0;
  for (const int each : frames.outer) {
    sum += each;
  }
  EXPECT_EQ(sum, 9);
}

// As above, with stacks of the C API below: on memory of the caller's, of mmap, and with a bare context.
TEST(stack_end, who_yields_in_a_coroutine_of_c_has_not_run_off) {
  struct halves {
    alignas(16) char low[262144];
    alignas(16) char high[65536];
  };
  static halves memory;
  static pirn::generator_yield<int>* up;
  const auto yields = [](pirn_coroutine* self, void* in) -> void* {
    (*up)(1);
    pirn_yield(self, in, &in);
    (*up)(2);
    return in;
  };
  int sum = 0;
  pirn::generator<int> on_memory(pirn::stack(memory.high, memory.high + sizeof memory.high), [&](auto& yield) {
    up = &yield;
    pirn_stack* where = nullptr;
    pirn_coroutine* inner = nullptr;
    EXPECT_EQ(pirn_stack_create_in(&where, memory.low, sizeof memory.low), 0);
    EXPECT_EQ(pirn_create(&inner, where, yields, nullptr), 0);
    pirn_resume(inner, nullptr, nullptr);
    yield(3);
    pirn_resume(inner, nullptr, nullptr);
    pirn_destroy(inner);
  });
  for (const int each : on_memory) {
    sum += each;
  }
  EXPECT_EQ(sum, 6);

  static pirn_context outside;
  static pirn_context inside;
  pirn::generator<int> with_a_context(pirn::stack(memory.high, memory.high + sizeof memory.high), [&](auto& yield) {
    up = &yield;
    std::uintptr_t first = 0;
    std::uintptr_t second = 0;
    pirn_context_prepare(&inside, memory.low + sizeof memory.low, [](std::uintptr_t, std::uintptr_t) {
      (*up)(4);
      (*up)(5);
      pirn_switch_last(&outside, 0, 0);
    });
    pirn_switch(&outside, &inside, &first, &second);
    yield(6);
  });
  for (const int each : with_a_context) {
    sum += each;
  }
  EXPECT_EQ(sum, 21);
}

TEST(stack_end_death, memory_of_the_callers) {
  ENDS("pirn: stack overflow in a generator: its stack has 32768 bytes", {
    pirn::generator<int> g(upper_half(), [](auto& yield) {
      go_down(40000, [] {});
      yield(1);
    });
    for (const int each : g) {
      EXPECT_EQ(each, 1);
    }
    g = pirn::generator<int>([](auto&) {});
  });
  ENDS("pirn: stack overflow in a coroutine: its stack has 32768 bytes", {
    pirn::coroutine<void()> c(upper_half(), [](auto&) { go_down(40000, [] {}); });
    c.resume();
    c = {};
  });
}

TEST(stack_end_death, a_coroutine_in_a_frame) {
  ENDS("pirn: stack overflow in a coroutine: its stack has 8192 bytes", {
    struct {
      char below[65536];
      pirn::frame_buffer<8192> buffer;
    } frame;
    pirn::coroutine<void()> c(frame.buffer, [](auto&) { go_down(16384, [] {}); });
    c.resume();
    c = {};
  });
}

TEST(stack_end_death, a_coroutine_at_its_next_yield) {
  ENDS("stack overflow in a coroutine: its stack has 32[0-9]{3} bytes and no guard.* needed more", {
    pirn::coroutine<void()> c(upper_half(), [](auto& yield) {
      go_down(40000, [] {});
      yield();
    });
    c.resume();
    std::_Exit(0);
  });
  ENDS("stack overflow in a coroutine: its stack has [0-9]+ bytes and no guard.* needed at least 4[0-9]{4}", {
    pirn::coroutine<void()> c(upper_half(), [](auto& yield) { go_down(40000, [&] { yield(); }); });
    c.resume();
    std::_Exit(0);
  });
}

// The program skips the word at the end without writing there.
TEST(stack_end_death, a_coroutine_that_steps_over_the_end) {
  ENDS("stack overflow in a coroutine: its stack has [0-9]+ bytes and no guard.* needed at least [12][0-9]{4}", {
    struct {
      char below[65536];
      pirn::frame_buffer<8192> memory;
    } frame;
    pirn::coroutine<int()> one(frame.memory, [](auto& yield) {
      auto* const bytes = static_cast<char*>(__builtin_alloca(16384));
      asm volatile("" : : "r"(bytes) : "memory");
      yield(1);
      return 2;
    });
    std::_Exit(one.resume());
  });
}

// The yield object is used below the frame in which the coroutine's stack lies.
TEST(stack_end, who_yields_as_a_coroutine_of_a_caller_has_not_run_off) {
  pirn::coroutine<int()>::yield* up = nullptr;
  pirn::frame_buffer<16384> memory;
  pirn::coroutine<int()> one(memory, [&](auto& yield) {
    up = &yield;
    yield(1);
    return 2;
  });
  EXPECT_EQ(one.resume(), 1);
  EXPECT_THROW((*up)(4), std::logic_error);
}

TEST(stack_end_death, a_body_that_ends) {
  ENDS("pirn: stack overflow in a coroutine", {
    pirn::coroutine<void()> c(upper_half(), [](auto&) { go_down(40000, [] {}); });
    c.resume();
    std::_Exit(0);
  });
  ENDS("pirn: stack overflow in a generator", {
    pirn::generator<int> g(upper_half(), [](auto& yield) {
      yield(1);
      go_down(40000, [] {});
    });
    for (const int each : g) {
      EXPECT_EQ(each, 1);
    }
    std::_Exit(0);
  });
  ENDS("pirn: stack overflow in a continuation: its stack has 32768 bytes", {
    pirn::continuation<>(upper_half(), [](pirn::continuation<> back) {
      go_down(40000, [] {});
      return std::move(back).finish();
    }).resume();
    std::_Exit(0);
  });
}

TEST(stack_end_death, a_continuation_that_is_dropped) {
  struct {
    char below[65536];
    pirn::frame_buffer<8192> buffer;
  } frame;
  ENDS("pirn: stack overflow in a continuation: its stack has 8192 bytes", {
    pirn::continuation<> c(frame.buffer, [](pirn::continuation<> back) {
      go_down(16384, [] {});
      back = std::move(back).resume();
      return std::move(back).finish();
    });
    c = std::move(c).resume();
    c = {};
    std::_Exit(0);
  });
}

TEST(stack_end_death, a_copied_coroutine) {
  for ([[maybe_unused]] const auto check : {pirn::copy_stack_check::none, pirn::copy_stack_check::protect}) {
    ENDS("pirn: stack overflow in a copy_stack: its stack has 32768 bytes", {
      pirn::copy_stack on(upper_half(), {.check = check});
      pirn::copied_coroutine<void()> c(on, [](auto& yield) {
        go_down(40000, [] {});
        yield();
      });
      c.resume();
      std::_Exit(0);
    });
    ENDS("pirn: stack overflow in a copy_stack", {
      pirn::copy_stack on(upper_half(), {.check = check});
      pirn::copied_coroutine<void()> c(on, [](auto&) { go_down(40000, [] {}); });
      c.resume();
      std::_Exit(0);
    });
  }
}

TEST(stack_end_death, a_coroutine_of_the_c_api) {
  [[maybe_unused]] alignas(16) static char memory[131072 + 16];
  for ([[maybe_unused]] const bool yields : {false, true}) {
    ENDS("pirn: stack overflow in a pirn_coroutine: its stack has [0-9]+ bytes", {
      pirn_stack* stack = nullptr;
      pirn_coroutine* c = nullptr;
      static bool yields_then = yields;
      EXPECT_EQ(pirn_stack_create_in(&stack, memory + 65536 + 3, 65536), 0);
      EXPECT_EQ(pirn_create(
                    &c, stack,
                    [](pirn_coroutine* self, void*) -> void* {
                      go_down(80000, [] {});
                      return yields_then ? reinterpret_cast<void*>(pirn_yield(self, nullptr, nullptr)) : nullptr;
                    },
                    nullptr),
                0);
      pirn_resume(c, nullptr, nullptr);
      std::_Exit(0);
    });
  }
}

TEST(stack_end, a_stack_that_is_used_again) {
  alignas(16) static char memory[32768];
  const pirn::stack all(memory, memory + sizeof memory);
  std::memset(memory, 1, sizeof memory);
  int turns = 0;
  const auto twice = [&](auto& yield) {
    ++turns;
    yield();
    ++turns;
  };
  {
    pirn::coroutine<void()> c(all, twice);
    c.resume();
    c.reset(twice);
    c.resume();
    c.resume();
    pirn::coroutine<void()> moved = std::move(c);
    moved.reset(twice);
    moved.resume();
  }
  {
    pirn::copy_stack on(all);
    pirn::copied_coroutine<void()> a(on, twice);
    pirn::copied_coroutine<void()> b(on, twice);
    for (int i = 0; i < 2; ++i) {
      a.resume();
      b.resume();
    }
  }
  EXPECT_EQ(turns, 8);
}

TEST(stack_end, a_stack_that_was_trimmed) {
  pirn::guarded_pool pool;
  const pirn::stack memory = pool.allocate(pirn::default_stack_size).value;
  const void* lowest = nullptr;
  bool ended = false;
  pirn::coroutine<void()> one(memory, [&](auto& yield) {
    lowest = __builtin_frame_address(0);
    yield();
    yield();
    ended = true;
  });
  one.resume();
  EXPECT_TRUE(pirn::trim(memory, static_cast<const char*>(lowest) - 4096));
  one.resume();
  one.resume();
  EXPECT_TRUE(ended);
  pool.deallocate(memory);
}

TEST(stack_end, what_cannot_be_begun) {
  struct refuses {
    refuses() = default;
    refuses(const refuses&) { throw 1; }
    void operator()(pirn::coroutine<void()>::yield&) const {}
  };
  alignas(16) char memory[1024];
  std::memset(memory, 1, sizeof memory);
  const refuses body;
  EXPECT_THROW(pirn::coroutine<void()>(pirn::stack(memory, memory + sizeof memory), body), int);
  EXPECT_THROW(pirn::coroutine<void()>(pirn::stack(memory, memory), [](auto&) {}), std::length_error);
  pirn::frame_buffer<1024> buffer;
  std::memset(buffer.limit(), 1, 1024);
  EXPECT_THROW(pirn::coroutine<void()>(buffer, body), int);
  EXPECT_TRUE(buffer.allocate(1024));  // it was given back
}

TEST(stack_end, nothing_is_said_of_what_fits) {
  int sum = 0;
  pirn::generator<int, pirn::frame<16384>> g = [](auto& yield) {
    for (int i = 0; i < 3; ++i) {
      yield(i);
    }
  };
  for (const int each : g) {
    sum += each;
  }
  EXPECT_EQ(sum, 3);
  pirn::generator<int, pirn::frame<16384>> delegating = [](pirn::generator<int>::yield& yield) {
    yield(pirn::elements_of(pirn::generator<int>([](auto& deeper) { deeper(4); })));
  };
  for (const int each : delegating) {
    sum += each;
  }
  EXPECT_EQ(sum, 7);
}

}  // namespace
