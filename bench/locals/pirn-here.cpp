// A coroutine_local, found without the yield object: by the stack of the caller.
#include "found.hpp"
#include "pirn/coro/coroutine.hpp"
#include "pirn/coro/coroutine_local.hpp"

int main() {
  const bench::found_variables<pirn::coroutine_local<std::uint64_t>> variables;
  pirn::coroutine<void()>([&](auto&) { variables.measure("pirn-here", "by the stack of a coroutine"); }).resume();
}
