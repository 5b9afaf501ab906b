// swapcontext between coroutines that are reused.
#include "ucontext.hpp"

namespace {

bench::ucoroutine* idle = nullptr;

void serve_all(bench::ucoroutine& self) {
  for (; !self.line.empty(); self.line = self.of.next()) {
    self.serve_one();
  }
}

}  // namespace

void bench::keep_or_destroy(ucoroutine* ended) { ended->next = std::exchange(idle, ended); }

int main() {
  const auto server = std::make_unique<bench::server<bench::ucoroutine>>();
  const auto begin = [&](std::string_view line) {
    if (idle == nullptr) {
      idle = new bench::ucoroutine(*server, serve_all);
    }
    bench::ucoroutine* const one = std::exchange(idle, idle->next);
    one->begin(line);
  };
  bench::callbacks_rows("ucontext-reuse", *server, begin, "swapcontext, coroutines continue with the next request");
}
