// Calls with arguments on the stack behind each kind of switch of this layer: a body that ends, a body that is
// destroyed early, and an exception that is thrown through frames which suspend.
#include <cstddef>
#include <exception>

#include "conformance.hpp"
#include "context/pushed.hpp"
#include "pirn/context/continuation.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/coro/generator.hpp"

namespace conformance {
namespace {

constexpr long rounds = 3;
constexpr int suspensions = 3 * rounds;

bool nothing_in_flight() { return std::uncaught_exceptions() == 0 && std::current_exception() == nullptr; }

/// The stack's bounds, under the names that continuations expect.
struct place {
  pirn::stack stack;
  [[nodiscard]] void* limit() const noexcept { return stack.limit(); }
  [[nodiscard]] void* top() const noexcept { return stack.top(); }
};

// Each kind has a `run`: takes up to `most` of the totals that a body shows, then destroys the suspended object. A body
// with `fails` throws 7 after its last round, which `run` lets through. The consumer pushes arguments too.

PUSHED_KEEP void throw_seven(bool fails) {
  pushed::fail(fails, 0, 0, 0, 0, 0, 0, 0, 0, pushed::structure{{0, 0, 0, 0, 0, 0, 0, 0, 7}});
}

PIRN_ALWAYS_INLINE void consume(long& all, long total) {
  all = pushed::sum(0, 0, 0, 0, 0, 0, 0, 0, 0, pushed::structure{{all * 7 % 1000003 + total}});
  try {
    pushed::fail(1, 2, 3, 4, 5, 6, 7, 8, 9, pushed::structure{{0, 0, 0, 0, 0, 0, 0, 0, 1}});
    all = 0;
  } catch (long) {
  }
}

struct generators {
  static constexpr const char* name = "generator";
  CONFORMANCE_KEEP static long run(memory& room, int most, int& ended, bool fails) {
    long all = 0;
    int taken = 0;
    const auto show = [&ended, fails](auto& yield) {
      pushed::body(rounds, ended, [&yield](long total) { yield(total); });
      throw_seven(fails);
    };
    pirn::generator<long> totals(room.stack(), show);
    for (const long total : totals) {
      consume(all, total);
      if (++taken == most) {
        break;
      }
    }
    return all;
  }
};

struct frame_generators {
  static constexpr const char* name = "generator in a frame";
  CONFORMANCE_KEEP static long run(memory&, int most, int& ended, bool fails) {
    long all = 0;
    int taken = 0;
    pirn::frame_generator<long, 32768> totals([&ended, fails](auto& yield) {
      pushed::body(rounds, ended, [&yield](long total) { yield(total); });
      throw_seven(fails);
    });
    for (const long total : totals) {
      consume(all, total);
      if (++taken == most) {
        break;
      }
    }
    return all;
  }
};

/// One generator yields the elements of another.
struct delegating_generators {
  static constexpr const char* name = "generator that delegates";
  CONFORMANCE_KEEP static long run(memory& room, int most, int& ended, bool fails) {
    static memory inner_room;
    long all = 0;
    int taken = 0;
    pirn::generator<long> totals(room.stack(), [&ended, fails](auto& yield) {
      pirn::generator<long> inner(inner_room.stack(), [&ended](auto& give) {
        pushed::body(rounds, ended, [&give](long total) { give(total); });
      });
      throw_seven(false);
      yield(pirn::elements_of<pirn::generator<long>&>{inner});
      throw_seven(fails);
    });
    for (const long total : totals) {
      consume(all, total);
      if (++taken == most) {
        break;
      }
    }
    return all;
  }
};

template <class Coroutine>
PIRN_ALWAYS_INLINE long resumed(Coroutine& one, int most) {
  long all = 0;
  for (int taken = 0; taken != most; ++taken) {
    const long total = one.resume();
    if (one.done()) {
      break;
    }
    consume(all, total);
  }
  return all;
}

struct coroutines {
  static constexpr const char* name = "coroutine";
  CONFORMANCE_KEEP static long run(memory& room, int most, int& ended, bool fails) {
    pirn::coroutine<long()> one(room.stack(), [&ended, fails](auto& yield) {
      pushed::body(rounds, ended, [&yield](long total) { yield(total); });
      throw_seven(fails);
      return 0L;
    });
    return resumed(one, most);
  }
};

struct copied_coroutines {
  static constexpr const char* name = "copied_coroutine";
  CONFORMANCE_KEEP static long run(memory& room, int most, int& ended, bool fails) {
    pirn::copy_stack on(room.stack());
    // A second coroutine takes turns with it, so that each resume copies.
    pirn::copied_coroutine<long()> other(on, [](auto& yield) {
      for (;;) {
        yield(pushed::sum(1, 2, 3, 4, 5, 6, 7, 8, 9, pushed::structure{}));
      }
      return 0L;
    });
    pirn::copied_coroutine<long()> one(on, [&ended, fails](auto& yield) {
      pushed::body(rounds, ended, [&yield](long total) { yield(total); });
      throw_seven(fails);
      return 0L;
    });
    long all = 0;
    for (int taken = 0; taken != most; ++taken) {
      const long total = one.resume();
      if (one.done()) {
        break;
      }
      consume(all, total);
      other.resume();
    }
    return all;
  }
};

struct continuations {
  static constexpr const char* name = "continuation";
  using resumes = pirn::continuation<void()>;
  CONFORMANCE_KEEP static long run(memory& room, int most, int& ended, bool fails) {
    long shown = 0, all = 0;
    resumes one(place{room.stack()}, [&shown, &ended, fails](resumes& back) -> resumes::finished {
      pushed::body(rounds, ended, [&shown, &back](long total) {
        shown = total;
        back.exchange();
      });
      throw_seven(fails);
      return std::move(back).finish();
    });
    for (int taken = 0; taken != most; ++taken) {
      one.exchange();
      if (!one) {
        break;
      }
      consume(all, shown);
    }
    return all;
  }
};

template <class Kind>
CONFORMANCE_KEEP void check() {
  static memory room;
  int ended = 0;
  const bool whole = Kind::run(room, -1, ended, false) == pushed::shown_by(rounds) && ended > 0;
  expect(whole && nothing_in_flight(), Kind::name, "shows what it would show without switches");

  bool destroyed = true;
  for (int most = 1; most <= suspensions; ++most) {
    ended = 0;
    Kind::run(room, most, ended, false);
    destroyed = destroyed && ended == (most % 3 == 0 ? 2 : 1) && nothing_in_flight();
  }
  expect(destroyed, Kind::name, "destroyed at any suspension its destructors run");

  long caught = 0;
  try {
    Kind::run(room, -1, ended, true);
  } catch (long code) {
    caught = code;
  }
  expect(caught == 7 && nothing_in_flight(), Kind::name, "an exception leaves it");
}

}  // namespace

void check_pushed() {
  check<generators>();
  check<frame_generators>();
  check<delegating_generators>();
  check<coroutines>();
  check<copied_coroutines>();
  check<continuations>();
}

}  // namespace conformance
