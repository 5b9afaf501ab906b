// Coroutines: the values that they carry, the exceptions that they throw, and nesting.
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "conformance.hpp"
#include "pirn/coro/coroutine.hpp"

namespace conformance {
namespace {

using pirn::coroutine;

struct four_words {
  std::uint64_t a, b, c, d;
};
struct many_words {
  std::uint64_t all[40];
};

CONFORMANCE_KEEP void values() {
  static memory room;
  coroutine<int(int)> sum(room.stack(), [](auto& yield, int first) {
    int total = first;
    while (total < 1000) {
      total += yield(total);
    }
    return -total;
  });
  bool right = sum.resume(1) == 1;
  for (int i = 2; i < 20; ++i) {
    right = right && sum.resume(i) == i * (i + 1) / 2;
  }
  expect(right && sum.resume(5000) == -5190 && sum.done(), "a word each way");

  coroutine<four_words(four_words)> four(room.stack(), [](auto& yield, four_words first) {
    const four_words next = yield({first.d, first.c, first.b, first.a});
    return four_words{next.a + 1, next.b + 1, next.c + 1, next.d + 1};
  });
  const four_words turned = four.resume({1, 2, 3, 4});
  const four_words last = four.resume({5, 6, 7, 8});
  expect(turned.a == 4 && turned.d == 1 && last.a == 6 && last.d == 9, "four words each way");

  coroutine<many_words(many_words, double)> many(room.stack(), [](auto& yield, many_words first, double add) {
    for (;;) {
      for (auto& each : first.all) {
        each += static_cast<std::uint64_t>(add);
      }
      std::tie(first, add) = yield(first);
    }
    return first;
  });
  many_words sent{};
  sent.all[39] = 5;
  expect(many.resume(sent, 2.5).all[39] == 7 && many.resume(sent, 3.5).all[0] == 3, "more than four words");
}

CONFORMANCE_KEEP void objects() {
  static memory room;
  coroutine<std::string(std::unique_ptr<int>, const std::string&)> owns(
      room.stack(), [](auto& yield, std::unique_ptr<int> first, const std::string& text) {
        auto [second, more] = yield(text + std::to_string(*first));
        return std::string(60, 'x') + more + std::to_string(*second);
      });
  const std::string text = "number ";
  expect(owns.resume(std::make_unique<int>(1), text) == "number 1" &&
             owns.resume(std::make_unique<int>(2), text) == std::string(60, 'x') + "number 2",
         "move-only values, references, results that own memory");
  int object = 1;
  coroutine<int&(int&)> same(room.stack(), [](auto& yield, int& first) -> int& { return yield(first); });
  expect(&same.resume(object) == &object && &same.resume(object) == &object, "a reference is the very object");
}

CONFORMANCE_KEEP double live_values(coroutine<double(double)>& other, int rounds) {
  double a = 1, b = 2, c = 3;
  long double d = 4;
  std::uint64_t e = 5, f = 6, g = 7, h = 8, i = 9, j = 10;
  for (int n = 0; n < rounds; ++n) {
    a += other.resume(b);
    b += c;
    d += static_cast<long double>(a);
    e += f;
    f ^= g;
    g += h;
    h += i;
    i += j;
    j += e;
  }
  return a + b + c + static_cast<double>(d) + static_cast<double>(e + f + g + h + i + j);
}

CONFORMANCE_KEEP void registers() {
  static memory room;
  const auto body = [](auto& yield, double first) {
    double a = first, b = 1, c = 2;
    long double d = 3;
    for (;;) {
      a += b;
      b += c * 0.5;
      d += static_cast<long double>(a);
      c += static_cast<double>(d) * 0.125;
      a += yield(a + c);
    }
    return a;
  };
  coroutine<double(double)> one(room.stack(), body);
  const volatile double first = live_values(one, 20);  // the x87 would compare more than a double's bits
  one.reset(body);
  const volatile double second = live_values(one, 20);
  expect(first == second && first > 1e6, "live values of both sides survive, whatever registers they were in");
}

CONFORMANCE_KEEP void exceptions() {
  static memory room;
  coroutine<int()> throws(room.stack(), [](auto& yield) -> int {
    try {
      throw 1;
    } catch (int) {
      yield(std::current_exception() != nullptr);
      try {
        throw;
      } catch (int number) {
        yield(number + 10);
      }
    }
    throw std::runtime_error("out");
  });
  const bool in_catch = throws.resume() == 1 && std::current_exception() == nullptr;
  bool ours_is_kept = false;
  try {
    try {
      throw std::runtime_error("ours");
    } catch (...) {
      ours_is_kept = throws.resume() == 11;
      throw;
    }
  } catch (const std::runtime_error& error) {
    ours_is_kept = ours_is_kept && std::string(error.what()) == "ours";
  }
  std::string message;
  try {
    throws.resume();
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  expect(in_catch && ours_is_kept, "exceptions in flight belong to their side");
  expect(message == "out" && throws.done(), "an exception leaves through resume");
}

CONFORMANCE_KEEP int recursive(int depth) {
  if (depth == 0) {
    return 0;
  }
  alignas(16) char bytes[4096];
  coroutine<int()> inner(pirn::stack(bytes, bytes + sizeof bytes), [](auto& yield) {
    yield(1);
    return 2;
  });
  const int first = inner.resume();
  const int below = recursive(depth - 1);
  return first + below + inner.resume();
}

CONFORMANCE_KEEP void nesting() {
  static memory room;
  coroutine<int()> outer(room.stack(), [](auto& yield) {
    yield(recursive(3));
    return recursive(4);
  });
  expect(outer.resume() == 9 && outer.resume() == 12, "coroutines inside each other's frames");
}

CONFORMANCE_KEEP void misuse() {
  static memory room;
  coroutine<int()>::yield* leaked = nullptr;
  coroutine<int()> one(room.stack(), [&leaked](auto& yield) {
    leaked = &yield;
    yield(1);
    return 2;
  });
  one.resume();
  int caught = 0;
  try {
    (*leaked)(1);
  } catch (const std::logic_error&) {
    ++caught;
  }
  one.resume();
  try {
    one.resume();
  } catch (const std::logic_error&) {
    ++caught;
  }
  expect(caught == 2, "yielding outside and resuming after the end are said");
}

}  // namespace

void check_coroutines() {
  values();
  objects();
  registers();
  exceptions();
  nesting();
  misuse();
  expect(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr, "no exception is left in flight");
}

}  // namespace conformance
