// swapcontext between coroutines that serve one request each, on a new stack.
#include "ucontext.hpp"

void bench::keep_or_destroy(ucoroutine* ended) { delete ended; }

int main() {
  const auto server = std::make_unique<bench::server<bench::ucoroutine>>();
  const auto begin = [&](std::string_view line) {
    (new bench::ucoroutine(*server, [](bench::ucoroutine& self) { self.serve_one(); }))->begin(line);
  };
  bench::callbacks_rows("ucontext-new", *server, begin, "swapcontext, a new stack from malloc for each request");
}
