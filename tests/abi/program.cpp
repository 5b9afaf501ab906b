// Calls one function that lives in the compiled library: linked with a library of another build it must not link.
#include <cstdio>

#include "pirn/detail/platform.hpp"

int main() {
  const auto before = pirn::platform::now();
  std::puts(PIRN_ABI_NAME);
  return pirn::platform::now() < before;
}
