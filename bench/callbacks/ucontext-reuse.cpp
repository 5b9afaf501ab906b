// swapcontext between coroutines that are used again.
#include "ucontext.hpp"

namespace {

bench::ucoroutine* idle = nullptr;

}  // namespace

void bench::keep_or_destroy(ucoroutine* served) { served->next = std::exchange(idle, served); }

int main() {
  const auto server = std::make_unique<bench::server<bench::ucoroutine>>();
  bench::callbacks_rows("ucontext-reuse", *server, [&](std::string_view line) {
    if (idle == nullptr) {
      idle = new bench::ucoroutine(*server);
    }
    bench::ucoroutine* const one = std::exchange(idle, idle->next);
    one->begin(line);
  });
}
