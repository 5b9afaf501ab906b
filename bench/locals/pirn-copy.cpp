// A coroutine_local of a copied coroutine, found without the yield object.
#include "found.hpp"
#include "pirn/coro/coroutine_local.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"

int main() {
  const bench::found_variables<pirn::coroutine_local<std::uint64_t>> variables;
  pirn::copy_stack shared(std::size_t{1} << 18);
  pirn::copied_coroutine<void()>(shared, [&variables](auto&) {
    variables.measure("pirn-copy", "by the stack of a copied coroutine");
  }).resume();
}
