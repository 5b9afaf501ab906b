// The cost of the loop around a switch: gross costs minus this are net.
#pragma once

#include <cstdint>

#include "harness.hpp"
#include "pirn/context/arch.hpp"

namespace bench {

/// Takes `n` turns, in each of which all registers are lost, as in a switch.
inline void empty_loop(std::uint64_t n) {
  std::uint64_t turns = 0;
  for (; turns < n; ++turns) {
    asm volatile(""
                 :
                 :
                 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                   PIRN_CLOBBER_FLOAT, "memory", "cc");
  }
  check(turns == n, "every turn is counted");
}

}  // namespace bench
