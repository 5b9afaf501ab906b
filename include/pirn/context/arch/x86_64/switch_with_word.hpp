// x86-64: a symmetric switch that carries a third word, for fibers. The contract of `switch_to` is in arch.hpp, the
// facts that shape the code are in switch.hpp. Included by arch_fiber.hpp.
#pragma once

#include "pirn/context/arch/x86_64/switch.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// As `switch_to`, with a third word. Each of these functions may resume a context that the other one has suspended.
/// Then the third word says nothing to its receiver, which has to know that from another source.
PIRN_SWITCH_INLINE void switch_to_with_word(context& from, const context& to, word& first, word& second,
                                            word& third) noexcept {
  const detail::fp_words fp;
  const word sent0 = first, sent1 = second, sent2 = third;
  register word message0 asm("rdi") = sent0;
  register word message1 asm("rsi") = sent1;
  register word message2 asm("r8") = sent2;
  register context* out asm("rdx") = &from;
  register const context* in asm("rcx") = &to;
  // At the jump rdi, rsi and r8 hold the words that go, at the resume label those of the resumer.
  asm volatile(PIRN_SWITCH_TEXT PIRN_RESUME_ENTRY
               : "+r"(message0), "+r"(message1), "+r"(message2), "+r"(out), "+r"(in)
               :
               : "rax", "rbx", "r9", "r10", "r11", "r12", "r13", "r14", "r15", PIRN_CLOBBER_FLOAT, "memory", "cc");
  const word received0 = message0, received1 = message1, received2 = message2;
  first = received0;
  second = received1;
  third = received2;
  fp.restore();
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
