// A variable of the C API.
#include "locals.hpp"
#include "pirn/pirn.h"

namespace {

[[gnu::noinline]] void add(std::uint64_t which) {
  const auto variable = static_cast<pirn_local>(which);
  const auto value = reinterpret_cast<std::uintptr_t>(pirn_local_get(variable));
  pirn_local_set(variable, reinterpret_cast<void*>(value + 1));
}

void* body(pirn_coroutine* /*self*/, void* first) {
  bench::locals_row(
      "pirn-c", add,
      [](std::uint64_t which) {
        return reinterpret_cast<std::uintptr_t>(pirn_local_get(static_cast<pirn_local>(which)));
      },
      "in a coroutine of the C API: one get and one set");
  return first;
}

}  // namespace

int main() {
  for (std::uint64_t i = 0; i < bench::input("VARIABLES"); ++i) {
    pirn_local made = 0;
    bench::check(pirn_local_create(&made, nullptr) == 0 && made == static_cast<pirn_local>(i), "a variable");
  }
  pirn_coroutine* one = nullptr;
  bench::check(pirn_create(&one, nullptr, body, nullptr) == 0, "a coroutine");
  pirn_resume(one, nullptr, nullptr);
  pirn_destroy(one);
}
