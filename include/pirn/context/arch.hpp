// THE contract of the context layer. Each ISA file defines the names below, in this order, and nothing else, but for
// `prepare`, `transfer` and `transfer_flagged`, which it includes with arch_alike.hpp. Those for turns stand in
// arch_x86_64_turns.hpp, and for the others in arch_turns.hpp.
//
//   word           an unsigned integer that fits a general register
//   no_word        a word of which nobody will ask what it holds
//   value_words    how many words of values `transfer` carries each way (4)
//   red_zone       bytes below sp that a leaf function may use without moving sp
//   switch_zone    bytes below the sp of a suspended context that hold part of its state
//   root_size      bytes below the top of a stack that are the same for all contexts, but for a fourth value word with
//                  which one was entered
//   context        the state of a suspended computation: pc, sp, fp
//   peer           the same state, but carried in registers by `transfer`
//   flagged, is_flagged, ended_peer, unflagged   a mark in a peer, in the low bit of its sp (`peer_flag`)
//   root_frame     the frame under every entry function: it ends a backtrace
//   prepare        builds a context on a fresh stack
//   switch_to      symmetric switch, state in memory, two words of message in registers
//   transfer       symmetric switch, state and four words of values in registers
//   transfer_flagged      the same, and the resumed side finds the caller flagged
//   transfer_into  suspends the caller and enters a constant function on a fresh stack, without `prepare`
//   transfer_last  the last switch of a context, which says whom the resumed side finds as its peer
//   switch_last    the last switch of a context to one whose state is in memory
//   enter_last     the same to a function on a stack that was prepared before and is free again, without `prepare`
//   shadow_stack_active   whether the kernel checks returns against a shadow stack, which no switch here moves
//
// Turns: `transfer` between two sides that are never alike, a producer and its consumer. One word goes to the producer,
// two to the consumer.
//   prepare_producer    builds a producer that begins with Run::run(consumer, word), which must not return
//   switch_to_producer  suspends a consumer, flagged if that is wanted, and resumes its producer
//   switch_to_consumer  suspends a producer and resumes its consumer
//   switch_to_delegate  suspends a producer, flagged, and resumes another producer as its consumer would
//   end_to_consumer     the last switch of a producer: its consumer finds it flagged
//   end_to_delegator    the same to a producer that waits in switch_to_delegate
//
// On x86-64 only, as fibers are, a call on another stack whose continuation others may resume: arch_x86_64_fork.hpp,
// and a switch_to that carries a third word: arch_x86_64_carry.hpp.
//
// Terms that hold for all switches:
//   * They are inlined (by clang before 19 not, see the ISA file). The asm clobbers every register but sp and fp, so
//     the compiler spills what is live at the call site and nothing else, and each site has its own entry in the
//     indirect branch predictor.
//   * There is no call, no ret and no push in them: a ret elsewhere than to its own call mispredicts, a push lands
//     in the red zone of a leaf function.
//   * sp is a valid stack at every instruction, and unwind tables are right at every instruction: while sp and fp
//     are exchanged, the tables describe the context that is being resumed.
//   * An asm is presumed not to throw. An exception must be thrown by code after the switch, not by the switch.
//   * A flag means that something is out of the ordinary, so that code after a transfer tests one bit and all value
//     words stay free for values: a suspended side that finds its resumer flagged is to end, a resumer that finds its
//     peer flagged has outlived it. A flagged peer is never resumed: `unflagged` comes first.
//   * The direction flag is clear before and after, as the calling convention has it. Floating-point control words
//     (mxcsr, x87) are shared by all contexts; built with PIRN_KEEP_FP_WORDS each context keeps its own, and a new
//     context begins with those of whoever resumes it first.
//
// A stack in its three states (addresses grow upwards):
//
//      suspended                      running                        fresh (after prepare)
//      +----------------+ top         +----------------+ top         +----------------+ top
//      | root frame     |             | root frame     |             | 0 (outermost)  |
//      | entry's frame  |             | entry's frame  |             | slot for a 7th argument
//      | ...            |             | ...            |             | root_frame + 8 | <- sp when entry begins
//      | frame of the   |             | frame of the   |             | entry          | <- context.sp
//      | switching func.|             | running func.  |             +----------------+
//      +----------------+ context.sp  +----------------+ sp           context.pc = start_frame + 8
//      | red zone       |             | red zone       |             context.fp = 0
//      +----------------+             +----------------+
//      context.pc = its resume label
//
// transfer_into leaves out `entry` and the start frame: entry's code begins with sp at `root_frame + 8`.
#pragma once

#if defined(__x86_64__) && !defined(__ILP32__)
#include "pirn/context/arch_x86_64.hpp"        // IWYU pragma: export
#include "pirn/context/arch_x86_64_turns.hpp"  // IWYU pragma: export
#elif defined(__aarch64__) && !defined(__ILP32__) && defined(__linux__)
#include "pirn/context/arch_aarch64.hpp"  // IWYU pragma: export
#include "pirn/context/arch_turns.hpp"    // IWYU pragma: export
#elif defined(__i386__)
#include "pirn/context/arch_i386.hpp"   // IWYU pragma: export
#include "pirn/context/arch_turns.hpp"  // IWYU pragma: export
#elif defined(__riscv) && __riscv_xlen == 64
#include "pirn/context/arch_riscv64.hpp"  // IWYU pragma: export
#include "pirn/context/arch_turns.hpp"    // IWYU pragma: export
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__) && _CALL_ELF == 2
#include "pirn/context/arch_ppc64le.hpp"  // IWYU pragma: export
#include "pirn/context/arch_turns.hpp"    // IWYU pragma: export
#else
#error "pirn: no context switch for this instruction set; there are x86-64, i386, AArch64, RISC-V 64 and PowerPC64 LE"
#endif
