// Shared by the two files of a program with a list.
#pragma once

#include "switch.hpp"

namespace listed {
struct shape {
  explicit shape(long n);
  shape(const shape&) = delete;
  virtual ~shape();
  virtual long area(long by);
  long side;
};
long plain(long a);
long excluded(long a);
long inline_elsewhere();
template <class T>
__attribute__((noinline)) T inlined(T a) {
  switch_away();
  return a + a;
}
}  // namespace listed

extern "C" long by_c_name(long a);
