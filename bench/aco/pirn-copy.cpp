// pirn's coroutines on one copy_stack.
#include "coroutines.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"

namespace {

struct kind : bench::aco::coroutines<pirn::copied_coroutine<void()>, pirn::copy_stack, kind> {
  explicit kind(const bench::aco::setting& what) : coroutines(what, std::size_t{1} << 16) {}
};

}  // namespace

int main() { bench::aco::rows<kind>("pirn-copy", "images of the size that is needed"); }
