// Exceptions around switches. The exceptions in flight are per OS thread (__cxa_get_globals): a list of the caught ones
// and a count of those that are thrown and not yet caught. Two contexts that leave catch blocks in the reverse order of
// entering them share that safely. In any other order each context needs its own, which the fiber layer provides, and
// `own_exceptions` here.
#include <exception>

#include "conformance.hpp"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the Itanium ABI's
extern "C" void* conformance_exception_globals() noexcept asm("__cxa_get_globals");

namespace conformance {
namespace {

struct failure {
  int code;
};

// __cxa_eh_globals of the Itanium C++ ABI, section 2.2.2.
struct exception_globals {
  void* caught = nullptr;
  unsigned uncaught = 0;
};
static_assert(sizeof(exception_globals) == 2 * sizeof(void*));

// Exchanges the thread's exceptions in flight for those of the party that is about to run.
struct own_exceptions {
  exception_globals kept;
  void exchange() noexcept {
    auto& current = *static_cast<exception_globals*>(conformance_exception_globals());
    const exception_globals running = current;
    current = kept;
    kept = running;
  }
};

int seen_by_context[8];

// ---- thrown and caught on both sides ------------------------------------------------------------------------------

CONFORMANCE_KEEP void throw_deep(int depth, int code) {
  if (depth == 0) {
    throw failure{code};
  }
  throw_deep(depth - 1, code);
  asm volatile("");  // not a tail call
}

template <class Shape>
void throw_inside(Shape& shape) {
  try {
    shape.yield();
    throw_deep(3, 10);
  } catch (const failure& caught) {
    seen_by_context[0] = caught.code;
  }
  shape.yield();
  try {
    throw_deep(3, 11);
  } catch (const failure& caught) {
    seen_by_context[1] = caught.code;
  }
}

template <class Shape>
void on_both_sides() {
  static Shape shape;
  int caught_by_main = 0;
  shape.start(&throw_inside<Shape>);
  try {
    shape.resume();
    throw_deep(3, 20);
  } catch (const failure& caught) {
    caught_by_main = caught.code;
  }
  shape.resume();
  expect(caught_by_main == 20, Shape::name, "an exception thrown and caught by the resumer");
  expect(seen_by_context[0] == 10 && seen_by_context[1] == 11 && shape.ended, Shape::name,
         "an exception thrown and caught by the context");
}

// ---- a switch inside a catch block, left in order -------------------------------------------------------------------

template <class Shape>
void catch_between(Shape& shape) {
  try {
    throw failure{30};
  } catch (const failure& caught) {
    seen_by_context[2] = caught.code;
  }
  shape.yield();
  seen_by_context[3] = std::current_exception() != nullptr;  // the resumer's: they share one list
}

template <class Shape>
void in_catch_block_in_order() {
  static Shape shape;
  int rethrown = 0;
  try {
    try {
      throw failure{31};
    } catch (...) {
      shape.start(&catch_between<Shape>);
      shape.resume();
      throw;
    }
  } catch (const failure& caught) {
    rethrown = caught.code;
  }
  expect(seen_by_context[2] == 30 && rethrown == 31, Shape::name, "a switch inside a catch block, left in order");
  expect(seen_by_context[3] == 1, Shape::name, "exceptions in flight are the thread's, not the context's");
}

// ---- a yield inside a catch block, left in any order ----------------------------------------------------------------

own_exceptions other_party;

template <class Shape>
void yield_in_catch(Shape& shape) {
  try {
    try {
      throw failure{40};
    } catch (...) {
      other_party.exchange();
      shape.yield();  // the resumer enters a catch block meanwhile, and is still in it when this context leaves its own
      seen_by_context[4] = std::uncaught_exceptions();
      throw;
    }
  } catch (const failure& caught) {
    seen_by_context[5] = caught.code;
  }
  other_party.exchange();
}

template <class Shape>
void in_catch_block_in_any_order() {
  static Shape shape;
  int rethrown = 0;
  shape.start(&yield_in_catch<Shape>);
  const bool nothing_in_flight = std::current_exception() == nullptr;
  try {
    try {
      throw failure{41};
    } catch (...) {
      other_party.exchange();
      shape.resume();
      throw;
    }
  } catch (const failure& caught) {
    rethrown = caught.code;
  }
  expect(nothing_in_flight, Shape::name, "with exceptions exchanged, another's catch block is not seen");
  expect(seen_by_context[4] == 0 && seen_by_context[5] == 40 && rethrown == 41 && shape.ended, Shape::name,
         "a yield inside a catch block, left in any order");
}

// ---- a yield inside a destructor during unwinding -------------------------------------------------------------------

template <class Shape>
struct yields_when_destroyed {
  Shape& shape;
  int* uncaught;
  ~yields_when_destroyed() {
    other_party.exchange();
    shape.yield();
    *uncaught = std::uncaught_exceptions();
  }
};

template <class Shape>
void yield_in_destructor(Shape& shape) {
  try {
    const yields_when_destroyed<Shape> guard{shape, &seen_by_context[6]};
    throw failure{50};
  } catch (const failure& caught) {
    seen_by_context[7] = caught.code;
  }
  other_party.exchange();
}

template <class Shape>
void in_destructor() {
  static Shape shape;
  int caught_by_main = 0;
  shape.start(&yield_in_destructor<Shape>);
  const int uncaught_in_main = std::uncaught_exceptions();
  try {
    throw_deep(2, 51);
  } catch (const failure& caught) {
    caught_by_main = caught.code;
    other_party.exchange();
    shape.resume();
  }
  expect(uncaught_in_main == 0 && caught_by_main == 51, Shape::name,
         "exceptions of the resumer while a context unwinds");
  expect(seen_by_context[6] == 1 && seen_by_context[7] == 50 && shape.ended, Shape::name,
         "a yield inside a destructor during unwinding");
}

// As `in_destructor`, but without the exchange: sound as long as the other party catches all that it throws meanwhile.
template <class Shape>
struct shares_when_destroyed {
  Shape& shape;
  ~shares_when_destroyed() { shape.resume(); }
};

template <class Shape>
void in_destructor_in_order() {
  static Shape shape;
  int caught_code = 0;
  seen_by_context[0] = seen_by_context[1] = 0;
  shape.start(&throw_inside<Shape>);
  try {
    const shares_when_destroyed<Shape> guard{shape};
    throw failure{60};
  } catch (const failure& caught) {
    caught_code = caught.code;
  }
  shape.resume();
  expect(caught_code == 60 && seen_by_context[0] == 10 && seen_by_context[1] == 11, Shape::name,
         "a switch inside a destructor during unwinding, left in order");
}

template <class Shape>
void check_exceptions_of() {
  on_both_sides<Shape>();
  in_catch_block_in_order<Shape>();
  in_catch_block_in_any_order<Shape>();
  in_destructor<Shape>();
  in_destructor_in_order<Shape>();
  expect(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr, Shape::name,
         "no exception is left in flight");
}

}  // namespace

void check_exceptions() {
  check_exceptions_of<by_switch_to>();
  check_exceptions_of<by_transfer>();
  check_exceptions_of<by_transfer_into>();
#if defined(CONFORMANCE_HAS_FORK)
  check_exceptions_of<by_fork>();
#endif
}

}  // namespace conformance
