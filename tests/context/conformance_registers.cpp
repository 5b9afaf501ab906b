// Registers and control words across a switch.
#include "conformance_isa.hpp"

namespace conformance {
namespace {

template <class Shape>
void spoil_and_yield(Shape& shape) {
  for (;;) {
    spoil_all_registers();
    shape.yield();
  }
}

template <class Shape>
CONFORMANCE_KEEP void resume_once(void* shape) {
  static_cast<Shape*>(shape)->resume();
}

// Values in as many registers as an asm may name: the compiler may leave one of them in any register that the switch
// does not clobber.
template <class Shape>
CONFORMANCE_KEEP bool general_registers_live(Shape& shape) {
  word a = opaque<word>(1), b = opaque<word>(2), c = opaque<word>(3), d = opaque<word>(4), e = opaque<word>(5),
       f = opaque<word>(6), g = opaque<word>(7), h = opaque<word>(8), i = opaque<word>(9), j = opaque<word>(10),
       k = opaque<word>(11), l = opaque<word>(12);
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
  asm volatile("" : "+r"(e), "+r"(f), "+r"(g), "+r"(h));
  asm volatile("" : "+r"(i), "+r"(j), "+r"(k), "+r"(l));
  shape.resume();
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
  asm volatile("" : "+r"(e), "+r"(f), "+r"(g), "+r"(h));
  asm volatile("" : "+r"(i), "+r"(j), "+r"(k), "+r"(l));
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && i == 9 && j == 10 && k == 11 &&
         l == 12;
}

struct vector_group {
  vector a, b, c, d, e, f, g, h;
  PIRN_ALWAYS_INLINE void into_registers() {
    into_register(a), into_register(b), into_register(c), into_register(d);
    into_register(e), into_register(f), into_register(g), into_register(h);
  }
  PIRN_ALWAYS_INLINE void set(double from) {
    a = all(from), b = all(from + 1), c = all(from + 2), d = all(from + 3);
    e = all(from + 4), f = all(from + 5), g = all(from + 6), h = all(from + 7);
  }
  PIRN_ALWAYS_INLINE bool is(double from) const {
    return same(a, from) && same(b, from + 1) && same(c, from + 2) && same(d, from + 3) && same(e, from + 4) &&
           same(f, from + 5) && same(g, from + 6) && same(h, from + 7);
  }

 private:
  static PIRN_ALWAYS_INLINE void into_register(vector& values) { asm volatile("" : ANY_VECTOR(values)); }
  static PIRN_ALWAYS_INLINE vector all(double value) { return vector{} + value; }
  static PIRN_ALWAYS_INLINE bool same(const vector& values, double value) {
    bool equal = true;
    for (std::size_t i = 0; i < sizeof(vector) / sizeof(double); ++i) {
      equal = equal && values[i] == value;
    }
    return equal;
  }
};

template <class Shape>
CONFORMANCE_KEEP bool vector_registers_live(Shape& shape) {
  vector_group groups[vector_groups];
  for (int i = 0; i < vector_groups; ++i) {
    groups[i].set(opaque(i * 8 + 0.5));
  }
  for (int i = 0; i < vector_groups; ++i) {
    groups[i].into_registers();
  }
  shape.resume();
  for (int i = 0; i < vector_groups; ++i) {
    groups[i].into_registers();
  }
  bool equal = true;
  for (int i = 0; i < vector_groups; ++i) {
    equal = groups[i].is(i * 8 + 0.5) && equal;
  }
  return equal;
}

// One value alone, in a register of the compiler's choice: the first that it would take.
template <class Shape>
CONFORMANCE_KEEP bool one_vector_live(Shape& shape) {
  double value = opaque(1.25);
  shape.resume();
  return value == 1.25;
}

template <class Shape>
CONFORMANCE_KEEP bool long_doubles_live(Shape& shape) {
  long double a = opaque(1.5L), b = opaque(2.5L), c = opaque(3.5L), d = opaque(4.5L);
  const long double sum = a + b, product = c * d;
  shape.resume();
  return sum == 4.0L && product == 15.75L && a == 1.5L && b == 2.5L && c == 3.5L && d == 4.5L;
}

template <class Shape>
CONFORMANCE_KEEP bool one_long_double_live(Shape& shape) {
  const long double root = opaque(9.25L) * opaque(2.0L);
  shape.resume();
  return root == 18.5L;
}

// ---- memory -----------------------------------------------------------------------------------------------------

long shared_number;

template <class Shape>
void change_number(Shape& shape) {
  shared_number += 10;
  shape.yield();
  shared_number *= 2;
  shape.yield();
}

// Ordinary variables, which a compiler may keep in registers as long as no other code can touch them.
template <class Shape>
CONFORMANCE_KEEP void memory() {
  static Shape shape;
  shape.make(&change_number<Shape>);
  shared_number = 1;
  shape.resume();
  const long added = shared_number;
  shared_number = 7;
  shape.resume();
  expect(added == 11 && shared_number == 14, Shape::name, "each side sees what the other wrote to memory");
}

// ---- flags and control words ------------------------------------------------------------------------------------

struct seen_inside {
  bool direction_at_entry, direction_after_resume;
  bool x87_empty_at_entry, x87_empty_after_resume;
  control_words at_entry, after_resume;
};
seen_inside inside;

template <class Shape>
void watch_flags(Shape& shape) {
  inside.direction_at_entry = direction_flag();
  inside.x87_empty_at_entry = x87_empty();
  inside.at_entry = control_words::now();
  words_down.set();
  shape.yield();
  inside.direction_after_resume = direction_flag();
  inside.x87_empty_after_resume = x87_empty();
  inside.after_resume = control_words::now();
  words_down.set();
}

template <class Shape>
CONFORMANCE_KEEP void flags(Shape& shape) {
  words_up.set();
  shape.start(&watch_flags<Shape>);
  const bool direction_after_start = direction_flag();
  const bool x87_empty_after_start = x87_empty();
  const control_words after_start = control_words::now();
  usual_words.set();
  shape.resume();
  const control_words after_end = control_words::now();
  usual_words.set();

  expect(!inside.direction_at_entry, Shape::name, "direction flag clear at entry");
  expect(!direction_after_start && !inside.direction_after_resume, Shape::name, "direction flag clear after a switch");
  expect(inside.x87_empty_at_entry && x87_empty_after_start && inside.x87_empty_after_resume, Shape::name,
         "x87 stack empty at entry and after a switch");
  expect(inside.at_entry == words_up, Shape::name, "a new context begins with its resumer's control words");
#if defined(PIRN_KEEP_FP_WORDS)
  expect(after_start == words_up && after_end == usual_words, Shape::name, "control words of the resumer are kept");
  expect(inside.after_resume == words_down, Shape::name, "control words of the context are kept");
#else
  expect(after_start == words_down && after_end == words_down, Shape::name,
         "control words are shared: the resumer sees them");
  expect(inside.after_resume == usual_words, Shape::name, "control words are shared: the context sees them");
#endif
}

// ---- messages ---------------------------------------------------------------------------------------------------

struct messages {
  arch::context here, there;
  arch::peer outside;
  word received[8] = {};
};

void receive_words(word first, word second) {
  auto& seen = *reinterpret_cast<messages*>(first);
  seen.received[1] = second;
  word one = 11, two = 12;
  arch::switch_to(seen.there, seen.here, one, two);
  seen.received[2] = one;
  seen.received[3] = two;
  one = 15, two = 16;
  arch::switch_to(seen.there, seen.here, one, two);
}

CONFORMANCE_KEEP void words_by_switch_to(stack& own) {
  messages seen;
  seen.there = arch::prepare(own.top(), &receive_words);
  word one = reinterpret_cast<word>(&seen), two = 2;
  arch::switch_to(seen.here, seen.there, one, two);
  expect(seen.received[1] == 2, by_switch_to::name, "both words arrive at entry");
  expect(one == 11 && two == 12, by_switch_to::name, "both words arrive at the resumer");
  one = 13, two = 14;
  arch::switch_to(seen.here, seen.there, one, two);
  expect(seen.received[2] == 13 && seen.received[3] == 14 && one == 15 && two == 16, by_switch_to::name,
         "both words arrive at a resumed context");
}

PIRN_NONE void receive_values(void* pc, void* sp, void* fp, word first, word second, word third, word fourth) {
  auto& seen = *reinterpret_cast<messages*>(first);
  seen.received[1] = second;
  seen.received[2] = third;
  seen.received[3] = fourth;
  arch::peer resumer{pc, sp, fp};
  word values[4] = {21, 22, 23, 24};
  arch::transfer(resumer, values);
  for (int i = 0; i < 4; ++i) {
    seen.received[4 + i] = values[i];
    values[i] += 100;
  }
  arch::transfer(resumer, values);
}

CONFORMANCE_KEEP void words_by_transfer(stack& own) {
  messages seen;
  arch::peer there = arch::prepare(own.top(), &receive_values);
  word values[4] = {reinterpret_cast<word>(&seen), 2, 3, 4};
  arch::transfer(there, values);
  expect(seen.received[1] == 2 && seen.received[2] == 3 && seen.received[3] == 4, by_transfer::name,
         "four values arrive at entry");
  expect(values[0] == 21 && values[1] == 22 && values[2] == 23 && values[3] == 24, by_transfer::name,
         "four values arrive at the resumer");
  expect(own.holds(there.sp), by_transfer::name, "the resumer learns whom to resume next");
  for (word& value : values) {
    value += 30;
  }
  arch::transfer(there, values);
  bool all = true;
  for (word i = 0; i < 4; ++i) {
    all = all && seen.received[4 + i] == 51 + i && values[i] == 151 + i;
  }
  expect(all, by_transfer::name, "four values arrive at a resumed context");
}

// The tag in both directions, and the last switch, after which the resumer finds the peer that the ending context
// names.
PIRN_NONE void receive_flag_and_end(void* pc, void* sp, void* fp, word first, word second, word third, word fourth) {
  auto& seen = *reinterpret_cast<messages*>(first);
  seen.received[1] = second;
  seen.received[2] = third;
  seen.received[3] = fourth;
  arch::peer resumer{pc, sp, fp};
  seen.received[4] = arch::is_tagged(resumer);
  word values[4] = {31, 32, 33, 34};
  arch::transfer(resumer, values);
  seen.received[5] = arch::is_tagged(resumer);
  resumer = arch::untagged(resumer);
  seen.received[6] = values[0] + values[1] + values[2] + values[3];
  if (seen.received[6] == 0) {
    const word last[4] = {41, 42, 43, 44};
    arch::transfer_last(resumer, last);
  }
  const word last[4] = {51, 52, 53, 54};
  arch::transfer_last(resumer, last, seen.outside);
}

CONFORMANCE_KEEP void words_by_transfer_into(stack& own) {
  messages seen;
  seen.received[4] = seen.received[5] = 7;
  arch::peer there;
  word values[4] = {reinterpret_cast<word>(&seen), 2, 3, 4};
  arch::transfer_into<&receive_flag_and_end>(own.top(), there, values);
  expect(seen.received[1] == 2 && seen.received[2] == 3 && seen.received[3] == 4, by_transfer_into::name,
         "four values arrive at entry");
  expect(values[0] == 31 && values[1] == 32 && values[2] == 33 && values[3] == 34, by_transfer_into::name,
         "four values arrive at the resumer");
  expect(own.holds(there.sp) && !arch::is_tagged(there) && seen.received[4] == 0, by_transfer_into::name,
         "the resumer learns whom to resume next");
  values[0] = values[1] = values[2] = values[3] = 0;
  arch::transfer_tagged(there, values);
  expect(seen.received[5] == 1 && seen.received[6] == 0, "transfer_tagged", "the resumed side finds the tag");
  expect(values[0] == 41 && values[1] == 42 && values[2] == 43 && values[3] == 44, "transfer_last",
         "four values arrive at the resumer");
  expect(arch::is_tagged(there) && there.pc == nullptr && arch::untagged(there).sp == nullptr, "transfer_last",
         "the resumer finds that its peer has ended");

  values[0] = reinterpret_cast<word>(&seen);
  arch::transfer_into<&receive_flag_and_end>(own.top(), there, values);
  seen.outside = there;
  values[0] = values[1] = values[2] = values[3] = 1;
  arch::transfer(there, values);
  expect(seen.received[5] == 0 && seen.received[6] == 4, "transfer", "the resumed side finds no tag");
  expect(there.pc == seen.outside.pc && there.sp == seen.outside.sp && there.fp == seen.outside.fp && values[3] == 54,
         "transfer_last", "the resumer finds the peer that it was handed");
}

#if defined(CONFORMANCE_HAS_FORK)
void receive_a_third(word first, word second) {
  auto& seen = *reinterpret_cast<messages*>(first);
  seen.received[1] = second;
  word one = 61, two = 62, three = 63;
  arch::switch_to_with_word(seen.there, seen.here, one, two, three);
  seen.received[2] = one;
  seen.received[3] = two;
  seen.received[4] = three;
  one = 67, two = 68;
  arch::switch_to(seen.there, seen.here, one, two);
}

CONFORMANCE_KEEP void words_with_a_third(stack& own) {
  messages seen;
  seen.there = arch::prepare(own.top(), &receive_a_third);
  word one = reinterpret_cast<word>(&seen), two = 2, three = 3;
  arch::switch_to_with_word(seen.here, seen.there, one, two, three);
  expect(seen.received[1] == 2 && one == 61 && two == 62 && three == 63, "switch_to_with_word",
         "three words arrive at the resumer");
  one = 64, two = 65, three = 66;
  arch::switch_to_with_word(seen.here, seen.there, one, two, three);
  expect(seen.received[2] == 64 && seen.received[3] == 65 && seen.received[4] == 66, "switch_to_with_word",
         "three words arrive at a resumed context");
  expect(one == 67 && two == 68, "switch_to_with_word", "a context that it has suspended is resumed by switch_to");
}

// What the first half of a call does that nothing takes away: it ends with the sp that came in a register.
PIRN_NONE void end_at_once(word first, word second, void* sp) {
  auto& seen = *reinterpret_cast<messages*>(first);
  seen.received[1] = second;
  seen.received[2] = reinterpret_cast<word>(sp);
  const arch::context caller = seen.here;
  seen.here.sp = nullptr;  // only the register counts
  seen.received[3] = reinterpret_cast<word>(caller.sp);
  arch::fork_back(seen.here, sp, 71, 72);
}
// Its caller is resumed by `switch_to` and ends the call later, by a switch to this context.
PIRN_NONE void be_left(word first, word second, void* sp) {
  auto& seen = *reinterpret_cast<messages*>(first);
  seen.received[1] = second;
  seen.received[2] = reinterpret_cast<word>(sp);
  word one = 73, two = 74;
  arch::switch_to(seen.there, seen.here, one, two);
  seen.received[3] = one;
  seen.received[4] = two;
  arch::fork_back(seen.here, seen.here.sp, 75, 76);
}

CONFORMANCE_KEEP void words_by_fork(stack& own) {
  messages seen;
  volatile char* const room = static_cast<char*>(__builtin_alloca(opaque<std::size_t>(64)));  // so it needs its fp
  room[0] = 1;
  void* const root = arch::fork_root(own.top());
  expect(reinterpret_cast<word>(own.top()) - reinterpret_cast<word>(root) == arch::fork_root_size, by_fork::name,
         "the root frame has the size that is known");
  bool words = true, sp = true;
  for (int i = 0; i < 3; ++i) {  // the root frame serves any number of times
    word one = reinterpret_cast<word>(&seen), two = 2;
    arch::fork_into<&end_at_once>(seen.here, root, one, two);
    words = words && seen.received[1] == 2 && one == 71 && two == 72;
    sp = sp && seen.received[2] == seen.received[3];
  }
  expect(words, by_fork::name, "both words arrive at entry and at the caller, each time");
  expect(sp, by_fork::name, "the caller's sp arrives in a register");
  word one = reinterpret_cast<word>(&seen), two = 4;
  arch::fork_into<&be_left>(seen.here, root, one, two);
  expect(seen.received[1] == 4 && one == 73 && two == 74 && seen.received[2] == reinterpret_cast<word>(seen.here.sp),
         by_fork::name, "the caller is resumed by switch_to");
  one = 77, two = 78;
  arch::switch_to(seen.here, seen.there, one, two);
  expect(seen.received[3] == 77 && seen.received[4] == 78 && one == 75 && two == 76, by_fork::name,
         "the function goes on after its caller, and ends");
}

// A context that begins where another ends, on the same stack: the root frame lies above the frame of the function that
// ends, and whatever that has in its own is still read.
struct succession {
  arch::context here;
  void* top;
  word received[2];
};
void succeed(word first, word second) {
  auto& both = *reinterpret_cast<succession*>(first);
  both.received[1] = second;
  arch::switch_last(both.here, first, 82);
}
CONFORMANCE_KEEP void precede(word first, word second) {
  volatile word frame[24];
  for (word i = 0; i < 24; ++i) {
    frame[i] = first + i;
  }
  reinterpret_cast<succession*>(frame[0])->received[0] = second;
  arch::enter_last(reinterpret_cast<succession*>(frame[0])->top, &succeed, frame[23] - 23, frame[1] - first);
}

CONFORMANCE_KEEP void words_by_enter_last(stack& own) {
  succession both = {};
  both.top = own.top();
  for (word i = 0; i < 3; ++i) {
    const arch::context begin = arch::prepare(own.top(), &precede);
    word one = reinterpret_cast<word>(&both), two = 80 + i;
    arch::switch_to(both.here, begin, one, two);
    expect(both.received[0] == 80 + i && both.received[1] == 1 && one == reinterpret_cast<word>(&both) && two == 82,
           "enter_last", "both words arrive on the stack that ends");
  }
}
#endif

template <class Shape>
void check_registers_of() {
  {
    static Shape shape;
    shape.start(&spoil_and_yield<Shape>);
    expect(changed_registers(&shape, &resume_once<Shape>) == 0, Shape::name, "callee-saved registers");
    expect(general_registers_live(shape), Shape::name, "twelve live general registers");
    expect(one_vector_live(shape), Shape::name, "a live vector register");
    expect(vector_registers_live(shape), Shape::name, "live values in all vector registers");
    expect(one_long_double_live(shape), Shape::name, "a live long double");
    expect(long_doubles_live(shape), Shape::name, "live long doubles");
    check_particulars(shape);
  }
  memory<Shape>();
  static Shape shape;
  flags(shape);
}

}  // namespace

void check_registers() {
  check_registers_of<by_switch_to>();
  check_registers_of<by_transfer>();
  check_registers_of<by_transfer_into>();
#if defined(CONFORMANCE_HAS_FORK)
  check_registers_of<by_fork>();
#endif
  static stack own;
  words_by_switch_to(own);
  words_by_transfer(own);
  words_by_transfer_into(own);
#if defined(CONFORMANCE_HAS_FORK)
  words_with_a_third(own);
  words_by_fork(own);
  words_by_enter_last(own);
#endif
}

}  // namespace conformance
