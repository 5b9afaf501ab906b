// C++20 coroutines, nested: frames from a pool where the compiler cannot do without, control goes straight from one to
// the next.
#include "task.hpp"

int main() {
  bench::write_fully_rows("cpp20", bench::ready, bench::send_all<bench::start::lazily>,
                          "pooled or elided frames, symmetric transfer");
}
