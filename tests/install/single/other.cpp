// The other file: it includes the same header without the sources.
#include "pirn.hpp"

int plus_one(int to);

int plus_one(int to) {
  pirn::coroutine<int(int)> adds([](auto& yield, int got) -> int {
    for (;;) {
      got = yield(got + 1);
    }
  });
  return adds.resume(to);
}
