// Generators under every compiler and level, run by generator_robustness_test.py. Everything is compared with the same
// loops without generators.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>

#include "coro/generator_support.hpp"
#include "pirn/coro/generator.hpp"
#include "pirn/stack/expert/frame_buffer.hpp"

namespace {

using generator_test::many;
using pirn::frame;
using pirn::generator;
using buffered = generator<long, frame<24576>>;

int failures = 0;

void expect(const char* what, long got, long expected) {
  if (got != expected) {
    std::printf("FAILED %s: %ld instead of %ld\n", what, got, expected);
    ++failures;
  }
}

struct down_from {
  long from;
  template <class Yield>
  void operator()(Yield& yield) const {
    for (long i = from; i != 0; --i) {
      yield(i);
    }
  }
};

struct noted {
  long& sum;
  ~noted() { sum += 100; }
};

/// A generator with a separate stack, from the heap.
class own {
 public:
  template <class Body>
  explicit own(Body body)
      : memory_(std::make_unique<char[]>(size)), elements_(pirn::stack(memory_.get(), memory_.get() + size), body) {}
  auto begin() { return elements_.begin(); }
  auto end() { return elements_.end(); }

 private:
  static constexpr std::size_t size = 65536;
  std::unique_ptr<char[]> memory_;
  generator<long> elements_;
};

template <class G>
long with_calls(long n) {
  long sum = 0;
  G elements{down_from{n}};
  for (const long i : elements) {
    sum += i + many(1, 2, 3, 4, 5, 6, 7, 8, 9);
  }
  return sum;
}

template <class G>
long nested(long n) {
  long sum = 0;
  G outer{down_from{n}};
  for (const long i : outer) {
    G inner{down_from{i % 5}};
    for (const long k : inner) {
      sum += i * k;
    }
  }
  return sum;
}

template <class G>
long interleaved(long n) {
  long sum = 0;
  G a{down_from{n}};
  G b{down_from{n}};
  auto at_b = b.begin();
  for (const long i : a) {
    sum += i * *at_b;
    ++at_b;
  }
  return sum;
}

template <class G>
long with_alloca(long n) {
  long sum = 0;
  G elements{[n](auto& yield) {
    for (long i = n; i != 0; --i) {
      alignas(64) volatile long aligned[4] = {i, i, i, i};
      auto* const block = static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(i % 16 + 1)));
      block[0] = static_cast<char>(i % 100);
      yield(aligned[2]);
      yield(block[0] + (aligned[3] - i));
    }
  }};
  for (const long i : elements) {
    alignas(64) volatile long aligned[2] = {i, sum};
    auto* const block = static_cast<volatile char*>(__builtin_alloca(16));
    block[3] = 1;
    sum = aligned[0] + aligned[1] + block[3] - 1;
  }
  return sum;
}

template <class G>
double with_floats(long n) {
  double sum = 0;
  long double more = 0.5L;
  G elements{[n](auto& yield) {
    double half = 0;
    long double third = 0;
    for (long i = n; i != 0; --i) {
      half += 0.5;
      third += 0.25L;
      yield(static_cast<long>(half + static_cast<double>(third) * 2));
    }
  }};
  for (const long i : elements) {
    sum += static_cast<double>(i);
    more += 1.0L;
  }
  return sum + static_cast<double>(more);
}

PIRN_NONE void recurse(generator<long>::yield& yield, int depth) {
  if (depth != 0) {
    recurse(yield, depth - 1);
    yield(depth);
    recurse(yield, depth - 1);
  }
}

template <class G>
long recursive(int depth) {
  long sum = 0;
  G elements{[depth](auto& yield) { recurse(yield, depth); }};
  for (const long i : elements) {
    sum = sum * 3 % 1000003 + i;
  }
  return sum;
}
long recursive_plain(int depth, long sum) {
  if (depth != 0) {
    sum = recursive_plain(depth - 1, sum);
    sum = sum * 3 % 1000003 + depth;
    sum = recursive_plain(depth - 1, sum);
  }
  return sum;
}

template <class G>
long with_exceptions(long n) {
  long caught = 0;
  for (long i = 0; i < n; ++i) {
    try {
      G elements{[i](auto& yield) {
        try {
          down_from{i % 3}(yield);
        } catch (const std::exception&) {
          std::abort();  // no exception of the consumer arrives here
        }
        throw i;
      }};
      for (const long k : elements) {
        if (k == 2 && i % 2 == 0) {
          throw std::runtime_error("consumer");
        }
      }
    } catch (long what) {
      caught += what == i;
    } catch (const std::runtime_error&) {
      caught += 1000;
    }
  }
  return caught;
}

/// Ends each generator while it delegates to another one.
template <class G>
long delegation_broken_off(long n) {
  long sum = 0;
  for (long i = 0; i < n; ++i) {
    G outer{[&sum](auto& yield) {
      const noted ended{sum};
      static pirn::frame_buffer<65536> place;
      generator<long> inner(place, 65536, [&sum](auto& give) {
        const noted ended{sum};
        down_from{9}(give);
      });
      yield(pirn::elements_of(inner));
      yield(1);
    }};
    for (const long each : outer) {
      sum += each;
      if (each == 9 - i % 3) {
        break;
      }
    }
  }
  return sum;
}

template <class G>
void all(const char* name) {
  std::printf("%s\n", name);
  const long n = 1000;
  long nested_expected = 0, squares = 0, allocas = 0, floats = 0, exceptions = 0;
  for (long i = 1; i <= n; ++i) {
    squares += i * i;
    allocas += i <= 100 ? i + i % 100 : 0;  // an alloca in a loop lasts until its function returns
    floats += i;
    for (long k = 1; k <= i % 5; ++k) {
      nested_expected += i * k;
    }
  }
  for (long i = 0; i < 50; ++i) {
    exceptions += i % 3 == 2 && i % 2 == 0 ? 1000 : 1;
  }
  expect("calls with arguments on the stack", with_calls<G>(n), n * (n + 1) / 2 + 45 * n);
  expect("nested", nested<G>(n), nested_expected);
  expect("interleaved", interleaved<G>(n), squares);
  expect("alloca and over-aligned locals", with_alloca<G>(100), allocas);
  expect("floating point on both sides", static_cast<long>(with_floats<G>(n) * 2), floats * 2 + 2 * n + 1);
  expect("recursive", recursive<G>(10), recursive_plain(10, 0));
  expect("exceptions", with_exceptions<G>(50), exceptions);
  expect("delegation broken off", delegation_broken_off<G>(3), 9 + 17 + 24 + 600);
}

/// Measures how far below its buffer an early end overwrites memory: the first of a process takes most.
void early_end() {
  struct guarded {
    char below[32768] = {};
    pirn::frame_generator<long> elements;
    explicit guarded(long from) : elements(down_from{from}) {}
  };
  const auto memory = std::make_unique<char[]>(sizeof(guarded) + alignof(guarded));
  auto* const at = reinterpret_cast<guarded*>((reinterpret_cast<std::uintptr_t>(memory.get()) + alignof(guarded) - 1) &
                                              ~(alignof(guarded) - 1));
  new (at) guarded(9);
  expect("the first element", *at->elements.begin(), 9);
  std::destroy_at(&at->elements);
  long overwritten = 0;
  for (const char* each = at->below; each != at->below + sizeof(at->below); ++each) {
    overwritten += *static_cast<const volatile char*>(each) != 0;
  }
  expect("bytes overwritten by an early end", overwritten, 0);
}

}  // namespace

int main() {
  early_end();
  all<own>("own stack");
  all<buffered>("in a frame");
  return failures == 0 ? 0 : 1;
}
