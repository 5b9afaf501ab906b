// pirn's coroutines, reused: a coroutine that has served a request continues with the next, or waits for one.
#include "session.hpp"

namespace {

bench::session* idle = nullptr;

bench::session* make(bench::server<bench::session>& of) {
  auto* const made = new bench::session;
  made->body = bench::session::coroutine([made, &of](auto& yield, int) {
    bench::session& self = *made;  // locals, which take one load after a switch
    bench::server<bench::session>& server = of;
    for (;;) {
      self.serve_one(server, yield);
      self.line = server.next();
      if (self.line.empty()) {
        self.next = std::exchange(idle, &self);
        yield();
      }
    }
  });
  return made;
}

}  // namespace

int main() {
  const auto server = std::make_unique<bench::server<bench::session>>();
  const auto begin = [&](std::string_view line) {
    bench::session* one = idle;
    if (one == nullptr) [[unlikely]] {
      one = make(*server);
    } else {
      idle = one->next;
    }
    one->line = line;
    one->body.resume(0);
  };
  bench::callbacks_rows("pirn", *server, begin, "coroutine, each continues with the next request");
}
