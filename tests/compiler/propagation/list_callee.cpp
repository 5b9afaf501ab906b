// Functions of a list, together with some that are not in it.
#include "list.hpp"

namespace listed {
shape::shape(long n) : side(n) {}
shape::~shape() { switch_away(); }
long shape::area(long by) {
  const long all = side * side;
  switch_away();
  return all * by;
}
long plain(long a) {
  const long before = a * 3;
  switch_away();
  if (a % 4 == 0) {
    throw a;
  }
  return before;
}
long excluded(long a) { return a + 1; }
long inline_elsewhere() { return inlined(3L); }
}  // namespace listed

long by_c_name(long a) {
  switch_away();
  return a - 1;
}
