// Functions of many shapes around a switch, each with values that live across it.
#include <array>
#include <cstdarg>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "switch.hpp"

#define APART __attribute__((noinline)) static

struct record {
  std::array<long, 7> words;
};

APART long bottom(long a, long b, long c) {
  const long product = a * b;
  const long other = b * c;
  switch_away();
  return product + other + a + b + c;
}
APART long middle(long a, long b) {
  const long first = bottom(a, b, 3);
  const long second = bottom(b, first, a);
  return (first * second) + (a * b);
}

// Ten words of arguments fill the registers; results are in memory, in two registers, and in floating-point registers.
APART long ten(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
  const long before = a - b + c - d + e;
  switch_away();
  return before + (f - g + h - i + j) * a;
}
APART record by_place(long seed) {
  record made{};
  for (long& each : made.words) {
    each = seed++;
    switch_away();
  }
  return made;
}
APART __int128 wide(__int128 a, double by) {
  const __int128 square = a * a;
  switch_away();
  return square + static_cast<long>(by * 3);
}
APART double floating(double a, float b, long double c) {
  const double before = a * b;
  switch_away();
  return before + static_cast<double>(c) - a;
}
APART bool small(signed char a, unsigned short b, bool c) {
  switch_away();
  return a < b && c;
}

// Exceptions out of, through and into such frames, with destructors in between.
struct guard {
  long value;
  explicit guard(long v) : value(v) {}
  guard(const guard&) = delete;
  ~guard() { count(value); }
};
APART void throws(long a) {
  const guard inner(a + 1);
  switch_away();
  if (a % 3 == 0) {
    throw std::runtime_error("thrown at " + std::to_string(a));
  }
}
APART long through(long a) {
  const guard outer(a + 2);
  const long before = a * 7;
  throws(a);
  switch_away();
  return before;
}
APART long catches(long a, const std::string& text) {
  const long kept = a * 11;
  try {
    return through(a) + kept;
  } catch (const std::exception& error) {
    switch_away();
    count(static_cast<long>((text + error.what()).size()));
    return kept;
  }
}
APART long rethrows(long a) {
  const std::unique_ptr<long> held(new long(a));
  try {
    switch_away();
    return catches(a, "x") + through(a);
  } catch (...) {
    *held += 5;
    switch_away();
    count(*held);
    throw;
  }
}

// Refused by the plugin, and so called with the ordinary convention: a variable number of arguments, a copy on the
// stack, an address.
APART long variable(int n, ...) {
  std::va_list arguments;
  va_start(arguments, n);
  long total = 0;
  for (int i = 0; i != n; ++i) {
    total += va_arg(arguments, long);
    switch_away();
  }
  va_end(arguments);
  return total;
}
APART long by_copy(record whole, long by) {
  whole.words[3] = by;
  switch_away();
  return whole.words[2] + whole.words[3];
}
APART long by_address(long a) {
  switch_away();
  return a + 1;
}
static long (*volatile address)(long) = by_address;

// A mandatory tail call.
APART long counts_down(long n, long total) {
  if (n <= 0) {
    switch_away();
    return total;
  }
  [[clang::musttail]] return counts_down(n - 1, total + n);
}
NONE __attribute__((noinline)) static long yields_last(long n) {
  switch_away();
  return n * 2;
}
NONE __attribute__((noinline)) static long calls_last(long n) { [[clang::musttail]] return yields_last(n + 1); }
APART long above_tail_calls(long n) {
  const long before = n * 3;
  return calls_last(n) + before + counts_down(5, n);
}

// Frames that are realigned, of variable size, and both.
APART long aligned(long n) {
  alignas(64) long words[8] = {n, n + 1};
  address = by_address;
  count(static_cast<long>(reinterpret_cast<unsigned long>(&words[0]) % 64));
  switch_away();
  return words[1];
}
APART long sized(long n) {
  auto* const bytes = static_cast<char*>(__builtin_alloca(static_cast<unsigned long>((n % 7) + 1)));
  bytes[0] = static_cast<char>(n);
  asm volatile("" : : "r"(bytes) : "memory");
  switch_away();
  return bytes[0];
}
APART long below_both(long n) {
  const long before = n * 2;
  switch_away();
  return before;
}
APART long both(long n) {
  alignas(64) char words[64];
  auto* const bytes = static_cast<char*>(__builtin_alloca(static_cast<unsigned long>((n % 7) + 1)));
  bytes[0] = static_cast<char>(n);
  words[5] = 7;
  asm volatile("" : : "r"(bytes), "r"(words) : "memory");
  const long inner = below_both(n);
  asm volatile("" : : "r"(bytes), "r"(words) : "memory");
  return words[5] + bytes[0] + inner;
}
APART long mutual(long n);
APART long recursive(long n) {
  const long here = n * 13;
  if (n <= 0) {
    switch_away();
    return 1;
  }
  return mutual(n - 1) + here;
}
APART long mutual(long n) {
  const long here = n ^ 5;
  switch_away();
  return recursive(n - 2) * 3 + here;
}

struct shape {
  virtual ~shape() = default;
  virtual long area(long by) const = 0;
};
struct square final : shape {
  long side = 3;
  long area(long by) const override {
    const long all = side * side;
    switch_away();
    return all * by;
  }
};

__attribute__((noinline)) void run(long n) {
  long total = middle(n, n + 1);
  total += ten(n, 2, 3, 4, 5, 6, 7, 8, 9, total);
  for (const long each : by_place(n).words) {
    total = (total * 3) + each;
  }
  total += static_cast<long>(wide(n, 1.5) >> 1);
  total += static_cast<long>(floating(static_cast<double>(n), 2.5F, 3.5L)) +
           (small(static_cast<signed char>(n), 9, true) ? 1 : 0);
  try {
    total += rethrows(n);
  } catch (const std::runtime_error& error) {
    total += static_cast<long>(std::string(error.what()).size());
  }
  total += variable(3, n, 2L, 3L) + by_copy(record{{n, 1, 2, 3}}, n) + address(n);
  total += above_tail_calls(n) + aligned(n) + sized(n) + both(n) + recursive(n % 9);
  const std::vector<long> several{1, 2, 3};
  for (const long each : several) {
    total += square().area(each);
  }
  const std::unique_ptr<shape> one(new square);
  count(total + one->area(n));
}
