// C++20 coroutines, nested: frames are from a pool where the compiler cannot omit them, and control passes directly
// from one to the next.
#include "task.hpp"

int main() {
  bench::write_fully_rows("cpp20", bench::ready, bench::send_all<bench::start::lazily>,
                          "pooled or elided frames, symmetric transfer");
}
