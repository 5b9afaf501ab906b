// pirn's coroutines, each on a separate stack: nothing is copied.
#include "coroutines.hpp"
#include "pirn/coro/coroutine.hpp"

namespace {

struct kind : bench::aco::coroutines<pirn::coroutine<void()>, pirn::guarded_pool, kind> {
  using coroutines::coroutines;
};

}  // namespace

int main() {
  const bench::aco::setting what;
  bench::need_memory(what.coroutines * (4700 + what.image));
  bench::aco::rows<kind>("pirn", "each on a guarded stack of 64 KiB");
}
