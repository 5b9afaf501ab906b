// Contexts on one copy_stack: all live values of the function that suspends come back, wherever the compiler kept them.
#include <cfenv>
#include <cstddef>
#include <cstdint>

#include "conformance.hpp"
#include "pirn/stack/expert/copy_stack.hpp"

namespace conformance {
namespace {

using pirn::copied_context;
using pirn::copy_stack;
using pirn::stack_error;
using pirn::arch::word;

using copied_body = void (*)(copy_stack& on, word number);
CONFORMANCE_KEEP void call(copied_body run, copy_stack& on, word number) { run(on, number); }

PIRN_NONE void enter(void* pc, void* sp, void* fp, word first, word second, word third, word) {
  auto& on = *reinterpret_cast<copy_stack*>(first);
  on.entered(pc, sp, fp);
  call(reinterpret_cast<copied_body>(second), on, third);
  on.finish({0, 0, 0, 0});
}

/// Two contexts that run in turn, so that each resume copies one out and the other one in.
class pair {
 public:
  pair(copy_stack& on, copied_body first, copied_body second)
      : on_(on), contexts_{{on, &enter}, {on, &enter}}, run_{first, second} {}
  /// Resumes both contexts and stores the word that each sent back. Returns false once one has ended or cannot be
  /// brought in.
  CONFORMANCE_KEEP bool turn(word (&got)[2]) {
    for (int i = 0; i < 2; ++i) {
      word words[pirn::arch::value_words] = {reinterpret_cast<word>(&on_), reinterpret_cast<word>(run_[i]),
                                             static_cast<word>(i), 0};
      if (contexts_[i].done() || contexts_[i].bring_in() != stack_error::none) {
        return false;
      }
      contexts_[i].run(words);
      contexts_[i].settle();
      got[i] = words[0];
    }
    return true;
  }
  [[nodiscard]] bool copied() const { return contexts_[0].statistics().copies > 1; }

 private:
  copy_stack& on_;
  copied_context contexts_[2];
  copied_body run_[2];
};

PIRN_ALWAYS_INLINE word suspend(copy_stack& on, word sent) {
  word words[pirn::arch::value_words] = {sent, 0, 0, 0};
  on.suspend(words);
  return words[0];
}

/// A function that calls nothing except the suspension: its locals would lie in the red zone, if it had one.
CONFORMANCE_KEEP word leaf(copy_stack& on, word from) {
  volatile word locals[8];
  for (word i = 0; i < 8; ++i) {
    locals[i] = from + i;
  }
  suspend(on, from);
  word sum = 0;
  for (word i = 0; i < 8; ++i) {
    sum += locals[i];
  }
  return sum;
}
CONFORMANCE_KEEP void leaves(copy_stack& on, word number) {
  for (word i = number;; i += 2) {
    const word sum = leaf(on, i);
    suspend(on, sum == 8 * i + 28 ? 1 : 0);
  }
}

/// Overwrites everything that a frame above it may have had below its sp.
CONFORMANCE_KEEP void scribble() {
  volatile unsigned char bytes[600];
  for (auto& each : bytes) {
    each = 0xa5;
  }
}
CONFORMANCE_KEEP void scribbles(copy_stack& on, word) {
  for (;;) {
    scribble();
    suspend(on, 1);
  }
}

CONFORMANCE_KEEP void registers(copy_stack& on, word number) {
  double a = static_cast<double>(number) + 1, b = 2, c = 3;
  long double d = 4;
  std::uint64_t e = 5, f = 6, g = 7, h = 8, i = 9, j = 10;
  for (;;) {
    a += b;
    b += c * 0.5;
    d += static_cast<long double>(a);
    c += static_cast<double>(d) * 0.125;
    e += f;
    f ^= g;
    g += h;
    h += i;
    i += j;
    j += e;
    suspend(on, e + f + g + h + i + j + static_cast<word>(static_cast<std::uint32_t>(a + b + c)));
  }
}

CONFORMANCE_KEEP void over_aligned(copy_stack& on, word number) {
  alignas(64) volatile word locals[8] = {number, number, number, number, number, number, number, number};
  auto* const more = static_cast<volatile unsigned char*>(__builtin_alloca(100 + 50 * number));
  more[99] = 7;
  for (word turn = 0;; ++turn) {
    const bool aligned = (reinterpret_cast<std::uintptr_t>(&locals[0]) & 63) == 0;
    const word got = suspend(on, aligned && locals[turn % 8] == number && more[99] == 7 ? 1 : 0);
    locals[7] = locals[7] + 0 * got;
  }
}

CONFORMANCE_KEEP void rounding(copy_stack& on, word number) {
  std::fesetround(number == 0 ? FE_UPWARD : FE_DOWNWARD);
  for (;;) {
    suspend(on, std::fegetround() == (number == 0 ? FE_UPWARD : FE_DOWNWARD) ? 1 : 0);
  }
}

CONFORMANCE_KEEP bool all_right(copy_stack& on, copied_body first, copied_body second) {
  pair both(on, first, second);
  bool right = true;
  word got[2] = {};
  for (int i = 0; i < 20; ++i) {
    right = both.turn(got) && right;
    right = right && (i % 2 == 0 || got[0] == 1);
  }
  return right && both.copied();
}

}  // namespace

void check_copied() {
  static memory room, other_room;
  copy_stack on(room.stack());
  expect(on.error() == stack_error::none, "a copy_stack on memory of the caller's");
  expect(all_right(on, &leaves, &scribbles), "a leaf function that suspends keeps its locals");
  expect(all_right(on, &over_aligned, &scribbles), "a frame with an over-aligned local and alloca");

  copy_stack second(other_room.stack());
  pair together(on, &registers, &registers), apart(second, &registers, &scribbles);
  bool same = true;
  for (int i = 0; i < 20; ++i) {
    word one[2] = {}, two[2] = {};
    same = together.turn(one) && apart.turn(two) && one[0] == two[0] && same;
  }
  expect(same, "live values survive, whatever registers they were in");
#if defined(PIRN_KEEP_FP_WORDS)
  expect(all_right(on, &rounding, &rounding) && std::fegetround() == FE_TONEAREST, "each has its own rounding mode");
#else
  static_cast<void>(&rounding);
#endif
}

}  // namespace conformance
