// pirn's coroutines, each of which serves one request on a new stack.
#pragma once

#include "session.hpp"
#include "stack_memory.hpp"

namespace bench {

/// Stacks from the heap, as in ucontext_new.hpp.
struct heap {
  static pirn::stack_result allocate(std::size_t size) noexcept {
    void* const memory = stack_memory(size);
    if (memory == nullptr) {
      return {{}, pirn::stack_error::out_of_memory};
    }
    return {{memory, static_cast<std::byte*>(memory) + size}, pirn::stack_error::none};
  }
  static void deallocate(const pirn::stack& value) noexcept { std::free(value.limit()); }
};

/// A coroutine that has served its request. It cannot be destroyed from inside, so the next coroutine that begins does
/// that.
inline session* ended = nullptr;

inline void pirn_new_main(const char* impl, const char* note) {
  heap stacks;
  const auto of = std::make_unique<server<session>>();
  const std::size_t size = input("STACK");
  const auto begin = [&](std::string_view line) {
    while (ended != nullptr) {
      const std::unique_ptr<session> last(std::exchange(ended, ended->next));
    }
    auto* const one = new session;
    one->line = line;
    one->body = session::coroutine(stacks, size, [one, &of = *of](auto& yield, int) {
      one->serve_one(of, yield);
      one->next = std::exchange(ended, one);
    });
    one->body.resume(0);
  };
  callbacks_rows(impl, *of, begin, note);
}

}  // namespace bench
