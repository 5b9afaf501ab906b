// A fiber that waits inside bodies gives back what its own stack and theirs do not use, as far as the bodies show their
// callers; and nothing that any frame needs.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "fiber/trim_support.hpp"
#include "pirn/context/arch.hpp"
#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_pool.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using namespace pirn_test;

constexpr std::size_t size = trim_stack_size * slowdown;
// A larger one counts as memory anywhere.
constexpr std::size_t own_size = std::min(size, std::size_t{512} << 10);
// Sanitizers need large frames, and may keep a yield object on no stack at all: then only the contents are tested. So
// they are where code without optimization leaves a word on the fiber's stack that looks like a root frame, and keeps
// its memory: with libc++ it does.
#if defined(_LIBCPP_VERSION) && !defined(__OPTIMIZE__)
constexpr bool exact = false;
#else
constexpr bool exact = std::is_empty_v<pirn::sanitizer_state>;
#endif

/// What a fiber or a body runs another body as.
enum class link : std::uint8_t {
  coroutine,
  generator,
  job,
  silent_coroutine,  // these do not show their callers
  silent_generator,
  silent_job,
  continuation,
  context,          // of the switches themselves, as pirn/inline.h and aco.h have them, on memory of malloc
  users_generator,  // on memory of the program
  users_coroutine,
};

/// Memory that no pool has mapped.
class own_memory {
 public:
  own_memory() : bytes_(static_cast<char*>(std::aligned_alloc(4096, own_size))) {}
  own_memory(const own_memory&) = delete;
  own_memory& operator=(const own_memory&) = delete;
  ~own_memory() { std::free(bytes_); }
  [[nodiscard]] pirn::stack all() const { return {bytes_, bytes_ + own_size}; }

 private:
  char* bytes_;
};

/// A fiber that runs a body that runs a body and so on, and waits in the last one. All have been deep before.
class chain {
 public:
  explicit chain(std::vector<link> links) : links_(std::move(links)), stacks_(links_.size() + 1), r_(1) {
    fiber_ = r_.rt.spawn([this] { level(0); }, {.stack_size = size});
    EXPECT_TRUE(eventually([&] { return waits_.load(); }));
    EXPECT_EQ(held(), std::vector<bool>(stacks_.size(), true));
    r_.rt.trim();
    EXPECT_TRUE(eventually([&] { return trimmed(r_) == 1; }));
  }
  chain(const chain&) = delete;
  chain& operator=(const chain&) = delete;
  ~chain() {
    gate_.signal();
    fiber_.join();
    EXPECT_EQ(intact_, stacks_.size());
  }

  /// Returns for each stack, the fiber's first, whether it still holds what was used once.
  [[nodiscard]] std::vector<bool> held() const {
    std::vector<bool> all;
    for (const pirn::stack& each : stacks_) {
      all.push_back(pirn::resident_bytes(each) > shallow);
    }
    return all;
  }

 private:
  using context = pirn::arch::context;

  PIRN_NOINLINE void level(std::size_t i) {
    std::array<std::size_t, 512> kept;
    kept.fill(i);
    asm volatile("" : : "r"(&kept) : "memory");
    go_deep();
    if (stacks_[i].size() == 0) {
      stacks_[i] = pirn::this_stack::bounds();
    }
    next(i);
    asm volatile("" : : "r"(&kept) : "memory");
    intact_ += std::count(kept.begin(), kept.end(), i) == 512 ? 1 : 0;
  }
  template <class Yield>
  void in_body(Yield& yield, bool shows_caller, std::size_t i) {
    if (shows_caller) {
      yield.trim_callers();
    }
    level(i + 1);
  }
  void next(std::size_t i) {
    if (i == links_.size()) {
      waits_ = true;
      static_cast<void>(gate_.wait());
      return;
    }
    const link what = links_[i];
    switch (what) {
      case link::coroutine:
      case link::silent_coroutine: {
        pirn::coroutine<void()> body(r_.pool, size, [&](auto& yield) { in_body(yield, what == link::coroutine, i); });
        body.resume();
        break;
      }
      case link::generator:
      case link::silent_generator: {
        pirn::generator<int> numbers(r_.pool, size, [&](auto& yield) {
          in_body(yield, what == link::generator, i);
          yield(7);
        });
        EXPECT_EQ(*numbers.begin(), 7);
        break;
      }
      case link::job:
      case link::silent_job: {
        pirn::coroutine_pool jobs(r_.pool, size);
        // The second job finds what the first has left behind.
        EXPECT_TRUE(jobs.start([](auto& yield) { yield.trim_callers(); }).done());
        EXPECT_TRUE(jobs.start([&](auto& yield) { in_body(yield, what == link::job, i); }).done());
        break;
      }
      case link::continuation: {
        using once = pirn::continuation<>;
        once body(
            r_.pool,
            [&](once back) {
              level(i + 1);
              return std::move(back).finish();
            },
            size);
        EXPECT_FALSE(std::move(body).resume());
        break;
      }
      case link::context:
        in_context(i);
        break;
      case link::users_generator: {
        const own_memory mine;
        stacks_[i + 1] = mine.all();
        pirn::generator<int> numbers(mine.all(), [&](auto& yield) {
          in_body(yield, true, i);
          yield(7);
        });
        EXPECT_EQ(*numbers.begin(), 7);
        break;
      }
      case link::users_coroutine: {
        const own_memory mine;
        stacks_[i + 1] = mine.all();
        pirn::coroutine<void()> body(mine.all(), [&](auto& yield) { in_body(yield, true, i); });
        body.resume();
        break;
      }
    }
  }
  /// Runs the next level in a context of which only the two switches know.
  void in_context(std::size_t i) {
    struct arguments {
      chain& self;
      std::size_t i;
      context back{};
    } with{*this, i};
    const own_memory mine;
    stacks_[i + 1] = mine.all();
    const auto entry = [](pirn::arch::word first, pirn::arch::word) {
      auto& to = *reinterpret_cast<arguments*>(first);
      to.self.level(to.i + 1);
      pirn::arch::switch_last(to.back, 0, 0);
    };
    const context body = pirn::arch::prepare(mine.all().top(), entry);
    pirn::arch::word first = reinterpret_cast<pirn::arch::word>(&with);
    pirn::arch::word second = 0;
    pirn::arch::switch_to(with.back, body, first, second);
  }

  std::vector<link> links_;
  std::vector<pirn::stack> stacks_;
  rig r_;
  event gate_;
  std::atomic<bool> waits_ = false;
  std::size_t intact_ = 0;
  pirn::fiber fiber_;
};

/// Expects these stacks of such a chain, the fiber's first, to keep what they no longer use.
void expect_kept(std::vector<link> links, const std::vector<bool>& kept) {
  const chain all(std::move(links));
  if (exact) {
    EXPECT_EQ(all.held(), kept);
  }
}

TEST(trim_callers, gives_back_what_the_callers_of_a_coroutine_a_generator_or_a_job_do_not_use) {
  expect_kept({link::coroutine}, {false, false});
  expect_kept({link::generator}, {false, false});
  expect_kept({link::job}, {false, false});
}

TEST(trim_callers, of_a_body_in_a_body_too) {
  expect_kept({link::coroutine, link::generator}, {false, false, false});
  expect_kept({link::generator, link::coroutine}, {false, false, false});
  expect_kept({link::job, link::coroutine, link::generator, link::job}, {false, false, false, false, false});
}

TEST(trim_callers, only_of_bodies_that_show_them) {
  expect_kept({link::silent_coroutine}, {true, false});
  expect_kept({link::silent_generator}, {true, false});
  expect_kept({link::silent_job}, {true, false});
  expect_kept({link::coroutine, link::silent_generator}, {true, true, false});
}

TEST(trim_callers, up_to_the_first_that_does_not) {
  // The generator knows where the job waits; the job does not say where the coroutine does.
  expect_kept({link::coroutine, link::silent_job, link::generator}, {true, true, false, false});
}

TEST(trim_callers, not_beyond_a_body_of_another_kind) {
  expect_kept({link::continuation, link::coroutine}, {true, false, false});
  expect_kept({link::coroutine, link::continuation, link::generator}, {true, true, false, false});
  if (exact) {  // sanitizers know nothing of the bare switch
    expect_kept({link::context, link::coroutine}, {true, true, false});
    expect_kept({link::coroutine, link::context, link::generator}, {true, true, true, false});
  }
}

TEST(trim_callers, never_of_memory_of_the_program) {
  expect_kept({link::users_generator, link::coroutine}, {true, true, false});
  expect_kept({link::coroutine, link::users_generator, link::generator}, {true, true, true, false});
}

PIRN_NOINLINE int resume_from_below(pirn::coroutine<int()>& body) {
  std::array<unsigned char, 20'000> kept;
  kept.fill(7);
  asm volatile("" : : "r"(&kept) : "memory");
  const int got = body.resume();
  asm volatile("" : : "r"(&kept) : "memory");
  return got + static_cast<int>(std::count(kept.begin(), kept.end(), 7));
}
PIRN_NOINLINE int advance_from_below(pirn::generator<int>::iterator& at) {
  std::array<unsigned char, 20'000> kept;
  kept.fill(7);
  asm volatile("" : : "r"(&kept) : "memory");
  const int got = *++at;
  asm volatile("" : : "r"(&kept) : "memory");
  return got + static_cast<int>(std::count(kept.begin(), kept.end(), 7));
}

/// Runs `body(wait)` in a fiber, where `wait()` is a wait in which it is trimmed. Returns whether it was.
template <class Body>
bool trimmed_in(Body body) {
  rig r(1, {.stack_size = size});
  event gate;
  std::atomic<bool> waits = false;
  pirn::fiber inside = r.rt.spawn([&] {
    body([&] {
      waits = true;
      static_cast<void>(gate.wait());
    });
  });
  EXPECT_TRUE(eventually([&] { return waits.load(); }));
  r.rt.trim();
  const bool was = eventually([&] { return trimmed(r) == 1; });
  gate.signal();
  inside.join();
  return was;
}

TEST(trim_callers, knows_the_caller_of_each_resume) {
  EXPECT_TRUE(trimmed_in([](auto wait) {
    pirn::coroutine<int()> body([&](auto& yield) {
      yield.trim_callers();
      for (int i = 0; i < 3; ++i) {
        yield(i);
      }
      go_deep();
      wait();  // resumed by a frame far below that of the first resumes
      return 5;
    });
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(body.resume(), i);
    }
    EXPECT_EQ(resume_from_below(body), 20'005);
  }));
  EXPECT_TRUE(trimmed_in([](auto wait) {
    pirn::generator<int> numbers([&](auto& yield) {
      yield.trim_callers();
      yield(1);
      yield(2);
      go_deep();
      wait();
      yield(5);
    });
    auto at = numbers.begin();
    EXPECT_EQ(*at, 1);
    EXPECT_EQ(*++at, 2);
    EXPECT_EQ(advance_from_below(at), 20'005);
  }));
}

TEST(trim_callers, knows_the_consumer_that_a_delegating_generator_has_lent) {
  EXPECT_TRUE(trimmed_in([](auto wait) {
    pirn::generator<int> inner([&](auto& yield) {
      yield.trim_callers();
      yield(2);
      go_deep();
      wait();
      yield(5);
    });
    pirn::generator<int> outer([&](auto& yield) {
      yield.trim_callers();
      yield(1);
      yield(pirn::elements_of(inner));
    });
    auto at = outer.begin();
    EXPECT_EQ(*at, 1);
    EXPECT_EQ(*++at, 2);
    EXPECT_EQ(advance_from_below(at), 20'005);
    EXPECT_EQ(++at, std::default_sentinel);
  }));
}

/// The yield object of the inner generator lies far below this frame, where `wait_from_below` leaves it as it is.
PIRN_NOINLINE void delegate_from_below(pirn::generator<int>::yield& yield) {
  char bytes[16'000];
  asm volatile("" : : "r"(bytes) : "memory");
  yield(pirn::elements_of(pirn::generator<int>([](auto& there) {
    there.trim_callers();
    there(1);
  })));
  asm volatile("" : : "r"(bytes) : "memory");
}

template <class Wait>
PIRN_NOINLINE void wait_from_below(Wait& wait) {
  char bytes[32'000];
  asm volatile("" : : "r"(bytes) : "memory");
  wait();
  asm volatile("" : : "r"(bytes) : "memory");
}

TEST(trim_callers, forgets_a_generator_that_has_run_on_the_stack_of_another) {
  for (const bool outer_shows : {false, true}) {
    EXPECT_TRUE(trimmed_in([&](auto wait) {
      pirn::generator<int> outer(pirn::default_stack_pool(), 8 * size, [&](auto& yield) {
        if (outer_shows) {
          yield.trim_callers();
        }
        go_deep();
        delegate_from_below(yield);
        yield(2);
        wait_from_below(wait);
        yield(5);
      });
      auto at = outer.begin();
      EXPECT_EQ(*at, 1);
      EXPECT_EQ(*++at, 2);
      EXPECT_EQ(advance_from_below(at), 20'005);
    }));
  }
}

/// Resumes `body` on the stack of a generator that lies in this frame, with a frame of the fiber below it.
PIRN_NOINLINE int resume_in_frame(pirn::coroutine<int()>& body) {
  pirn::generator<int, pirn::frame<16384>> numbers([&](auto& yield) { yield(body.resume()); });
  std::array<unsigned char, 20'000> kept;
  kept.fill(7);
  const auto sum = [&]() __attribute__((noinline)) {
    std::array<unsigned char, 20'000> below;
    below.fill(7);
    asm volatile("" : : "r"(&below) : "memory");
    int all = 0;
    for (const int n : numbers) {
      all += n;
    }
    asm volatile("" : : "r"(&below) : "memory");
    return all + static_cast<int>(std::count(below.begin(), below.end(), 7));
  };
  asm volatile("" : : "r"(&kept) : "memory");
  const int all = sum();
  asm volatile("" : : "r"(&kept) : "memory");
  return all + static_cast<int>(std::count(kept.begin(), kept.end(), 7));
}

TEST(trim_callers, does_not_take_frames_below_the_stack_of_a_generator_that_lies_in_one) {
  EXPECT_TRUE(trimmed_in([](auto wait) {
    pirn::coroutine<int()> body(pirn::default_stack_pool(), size, [&](auto& yield) {
      yield.trim_callers();
      go_deep();
      wait();
      return 5;
    });
    EXPECT_EQ(resume_in_frame(body), 40'005);
  }));
  EXPECT_TRUE(trimmed_in([](auto wait) {
    pirn::coroutine<int()> outer(pirn::default_stack_pool(), size, [&](auto& yield) {
      yield.trim_callers();
      pirn::coroutine<int()> body(pirn::default_stack_pool(), size, [&](auto& there) {
        there.trim_callers();
        go_deep();
        wait();
        return 5;
      });
      return resume_in_frame(body);
    });
    EXPECT_EQ(outer.resume(), 40'005);
  }));
}

// Last: with such a coroutine in the process, any frame may hold one.
TEST(trim_callers, nor_of_a_coroutine_on_memory_of_the_program) {
  const own_memory mine;
  bool ran = false;
  pirn::coroutine<void()>(mine.all(), [&](auto&) { ran = true; }).resume();
  EXPECT_TRUE(ran);
  rig r(1, {.stack_size = size});
  event gate;
  std::atomic<bool> waits = false;
  pirn::fiber inside = r.rt.spawn([&] {
    pirn::coroutine<int()> body(mine.all(), [&](auto& yield) {
      yield.trim_callers();
      go_deep();
      waits = true;
      static_cast<void>(gate.wait());
      return 5;
    });
    EXPECT_EQ(resume_from_below(body), 20'005);
  });
  EXPECT_TRUE(eventually([&] { return waits.load(); }));
  r.rt.trim();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(trimmed(r), 0u);
  gate.signal();
  inside.join();
}

}  // namespace
