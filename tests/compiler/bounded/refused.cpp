// Bodies without a bound: each is an error when this is compiled with the plugin. bounded_refused.py looks for the
// texts in the comments.
#include <cstdio>

#include "pirn/fiber/expert/bounded.hpp"
#include "pirn/fiber/this_fiber.hpp"
#include "pirn/sync/event.hpp"

#if !defined(WHAT) || WHAT == 1

int outside(int depth) noexcept;
int hanoi(int disks) noexcept { return disks == 0 ? 0 : hanoi(disks - 1) + outside(hanoi(disks - 1)); }

void spawns(int n, int (*chosen)(int) noexcept) {
  // expect: cannot have a bounded stack: hanoi\(int\): it is recursive: hanoi\(int\) > hanoi\(int\); on the path
  static_cast<void>(pirn::try_spawn_bounded([n]() noexcept { hanoi(n); }));
  // expect: cannot have a bounded stack: outside\(int\): its code is not in this file, and neither a summary nor
  static_cast<void>(pirn::try_spawn_bounded([n]() noexcept { outside(n); }));
  // expect: it calls through a pointer, and nothing says what that may point to
  static_cast<void>(pirn::try_spawn_bounded([n, chosen]() noexcept { chosen(n); }));
  // expect: it allocates an amount of stack that is known only at run time \(alloca\)
  static_cast<void>(pirn::try_spawn_bounded([n]() noexcept {
    auto* const room = static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(n)));
    room[0] = 1;
  }));
  // expect: cannot have a bounded stack: printf: its code is not in this file
  static_cast<void>(pirn::try_spawn_bounded([]() noexcept { std::printf("%d\n", 1); }));
}

#elif WHAT == 2

// expect: the body of a bounded fiber must be noexcept
void spawns() {
  static_cast<void>(pirn::try_spawn_bounded([] {}));
}

#else

// expect: undefined symbol: pirn_spawn_bounded_needs_the_compiler_plugin
int main() {
  static_cast<void>(pirn::try_spawn_bounded([]() noexcept {}));
}

#endif
