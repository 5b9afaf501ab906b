// Calls the functions of a list by name, through a table of virtual functions and through a pointer.
#include "list.hpp"

namespace {
listed::shape* volatile seen = nullptr;
long (*volatile pointer)(long) = listed::plain;
}  // namespace

void run(long n) {
  long total = listed::excluded(n) + listed::inlined(n) + listed::inline_elsewhere() + by_c_name(n);
  {
    listed::shape one(n);
    seen = &one;
    total += seen->area(2);
  }
  for (long i = n; i != n + 4; ++i) {
    try {
      total += listed::plain(i) * pointer(i + 1);
    } catch (long thrown) {
      total += thrown;
    }
  }
  count(total);
}
