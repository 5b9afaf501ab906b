// The common part of x86-64 and i386.
#pragma once

#include "conformance_isa.hpp"

namespace conformance {

// ---- code -----------------------------------------------------------------------------------------------------------

#if defined(__CET__) && (__CET__ & 1)
inline constexpr bool has_landing_pads = true;
#else
inline constexpr bool has_landing_pads = false;
#endif
inline bool is_landing_pad(const void* code) {
  const auto* bytes = static_cast<const unsigned char*>(code);
  return bytes[0] == 0xf3 && bytes[1] == 0x0f && bytes[2] == 0x1e && bytes[3] == (sizeof(void*) == 8 ? 0xfa : 0xfb);
}
inline bool is_start_frame(word begin) {
  return begin == reinterpret_cast<word>(&arch::start_frame) ||
         begin == reinterpret_cast<word>(&arch::start_frame_plain);
}

// ---- flags ----------------------------------------------------------------------------------------------------------

// Whether all registers of the x87 stack are tagged as empty.
PIRN_ALWAYS_INLINE bool x87_empty() {
  struct {
    unsigned short words[14];
  } environment;
  asm volatile("fnstenv %0\n\tfldenv %0" : "=m"(environment));
  return environment.words[4] == 0xffff;
}

// ---- signals --------------------------------------------------------------------------------------------------------

// In a handler of SIGTRAP: sets whether another SIGTRAP comes after the next instruction.
inline void keep_stepping(void* signal_context, bool on) {
  constexpr greg_t trap_flag = 0x100;
  auto& flags = static_cast<ucontext_t*>(signal_context)->uc_mcontext.gregs[REG_EFL];
  flags = on ? flags | trap_flag : flags & ~trap_flag;
}
PIRN_ALWAYS_INLINE void begin_stepping() { asm volatile("int3" ::: "memory"); }

}  // namespace conformance
