// Destroying suspended coroutines.
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "conformance.hpp"
#include "pirn/coro/coroutine.hpp"

namespace conformance {
namespace {

using pirn::coroutine;
using yields = coroutine<int(int)>::yield;

std::string log;
int reports = 0;

struct note {
  char letter;
  ~note() { log += letter; }
};

CONFORMANCE_KEEP int deep(yields& yield, int depth) {
  const note here{static_cast<char>('a' + depth)};
  const int below = depth == 0 ? yield(1) : deep(yield, depth - 1);
  asm volatile("");  // not a tail call
  return below + 1;
}

template <class Body>
CONFORMANCE_KEEP void drop(const char* expected, int expected_reports, const char* what, Body body) {
  static memory room;
  log.clear();
  reports = 0;
  {
    coroutine<int(int)> one(room.stack(), body);
    one.resume(0);
  }
  expect(log == expected && reports == expected_reports && std::uncaught_exceptions() == 0 &&
             std::current_exception() == nullptr,
         what);
}

}  // namespace

void check_unwinding() {
  pirn::forced_unwind::set_reporter([](const char*) noexcept { ++reports; });
  drop("abcd", 0, "destructors run once and in order", [](yields& yield, int) { return deep(yield, 3); });
  drop("ax", 0, "a rethrow lets it pass", [](yields& yield, int) {
    try {
      return deep(yield, 0);
    } catch (const std::exception&) {
      log += '!';
    } catch (...) {
      log += 'x';
      throw;
    }
    return 0;
  });
  drop("axbyc", 1, "swallowing is overruled", [](yields& yield, int) {
    const note outermost{'c'};
    try {
      const note outer{'b'};
      try {
        deep(yield, 0);
      } catch (...) {
        log += 'x';
      }
      log += '!';
    } catch (...) {
      log += 'y';
    }
    log += '!';
    return 0;
  });
  drop("xb", 1, "swallowing in a loop is overruled", [](yields& yield, int) {
    const note outer{'b'};
    for (;;) {
      try {
        yield(1);
      } catch (...) {
        log += 'x';
      }
    }
    return 0;
  });
  drop("axb", 1, "from inside catch blocks", [](yields& yield, int) {
    const note outer{'b'};
    try {
      throw std::runtime_error("own");
    } catch (const std::exception&) {
      try {
        throw 1;
      } catch (int) {
        try {
          deep(yield, 0);
        } catch (...) {
          log += 'x';
        }
        log += '!';
      } catch (...) {
        log += '!';
      }
      log += '!';
    } catch (...) {
      log += '!';
    }
    return 0;
  });
  drop("b", 1, "another exception ends it as well", [](yields& yield, int) -> int {
    const note outer{'b'};
    try {
      return yield(1);
    } catch (...) {
      throw std::runtime_error("instead");
    }
  });
  drop("xb", 1, "suspending again is overruled", [](yields& yield, int) {
    const note outer{'b'};
    try {
      yield(1);
    } catch (...) {
      log += 'x';
      yield(2);
      log += '!';
    }
    return 0;
  });
  drop("", 0, "one that suspended once and has nothing to destroy", [](yields& yield, int) { return yield(1); });
  try {
    throw 1;
  } catch (int) {
    static memory room;
    log.clear();
    {
      coroutine<int(int)> one(room.stack(), [](yields& yield, int) {
        try {
          return deep(yield, 0);
        } catch (...) {
          log += 'x';
          throw;
        }
      });
      one.resume(0);
    }
    expect(log == "ax" && std::current_exception() != nullptr, "by one who has exceptions in flight");
  }
  pirn::forced_unwind::set_reporter(nullptr);
}

}  // namespace conformance
