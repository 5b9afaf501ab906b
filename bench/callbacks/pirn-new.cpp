// pirn's coroutines, each of which serves one request on a new stack.
#include "session.hpp"

namespace {

/// Stacks from malloc, as in ucontext-new.
struct heap {
  static pirn::stack_result allocate(std::size_t size) noexcept {
    void* const memory = std::malloc(size);
    if (memory == nullptr) {
      return {{}, pirn::stack_error::out_of_memory};
    }
    return {{memory, static_cast<std::byte*>(memory) + size}, pirn::stack_error::none};
  }
  static void deallocate(const pirn::stack& value) noexcept { std::free(value.limit()); }
};

/// A coroutine that has served its request. It cannot be destroyed from inside, so the next coroutine that begins does
/// that.
bench::session* ended = nullptr;

}  // namespace

int main() {
  heap stacks;
  const auto server = std::make_unique<bench::server<bench::session>>();
  const std::size_t size = bench::input("STACK");
  const auto begin = [&](std::string_view line) {
    while (ended != nullptr) {
      const std::unique_ptr<bench::session> last(std::exchange(ended, ended->next));
    }
    auto* const one = new bench::session;
    one->line = line;
    one->body = bench::session::coroutine(stacks, size, [one, &of = *server](auto& yield, int) {
      one->serve_one(of, yield);
      one->next = std::exchange(ended, one);
    });
    one->body.resume(0);
  };
  bench::callbacks_rows("pirn-new", *server, begin, "coroutine, a new stack from malloc for each request");
}
