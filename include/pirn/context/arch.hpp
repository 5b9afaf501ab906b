// The contract of the context layer. Each instruction set has a file or a folder in arch/, which defines the names
// below and no others. Parts that are alike in several of them are in arch/shared/.
//
//   word           an unsigned integer that fits a general register
//   undef_word     a word of indeterminate value, which costs no instruction
//   value_words    how many words of values `transfer` carries each way (4)
//   red_zone       bytes below sp that a leaf function may use without moving sp
//   switch_zone    bytes below the sp of a suspended context that hold part of its state
//   root_size      bytes below the top of a stack that are the same for all contexts, except a fourth value word with
//                  which one was entered
//   context        the state of a suspended computation: pc, sp, fp
//   peer           that state, but carried in registers by `transfer`
//   tagged, is_tagged, ended_peer, untagged   a tag in a peer, in the low bit of its sp (`peer_tag`)
//   root_frame     the frame under every entry function: it ends a backtrace
//   prepare        builds a context on a fresh stack
//   switch_to      symmetric switch, state in memory, two words of message in registers
//   transfer       symmetric switch, state and four words of values in registers
//   transfer_tagged       as `transfer`, but the resumed side finds the caller tagged
//   transfer_into  suspends the caller and enters a constant function on a fresh stack, without `prepare`
//   transfer_last  the last switch of a context, which names the peer that the resumed side finds
//   switch_last    the last switch of a context to one whose state is in memory
//   enter_last     as `switch_last`, to a function on a stack that was prepared before and is free again; no `prepare`
//   shadow_stack_active   whether the kernel checks returns against a shadow stack, which no switch here moves
//
// Asymmetric transfer, between a producer and its consumer. One word goes to the producer, two to the consumer.
//   prepare_producer     builds a producer that begins with Run::run(consumer, word), which must not return
//   resume_producer      suspends a consumer, tagged if that is wanted, and resumes its producer
//   yield_to_consumer    suspends a producer and resumes its consumer
//   delegate_to          suspends a producer, tagged, and resumes another producer as its consumer would
//   finish_to_consumer   the last switch of a producer: its consumer finds it tagged
//   finish_to_delegator  as `finish_to_consumer`, but to a producer that waits in delegate_to
//
// The further switches of fibers are in arch_fiber.hpp.
//
// Terms that hold for all switches:
//   * They are inlined (not by clang before 19, see the ISA file). The asm clobbers every register except sp and fp, so
//     the compiler spills the values that are live at the call site and no others, and each site has its own entry in
//     the indirect branch predictor.
//   * There is no call, no ret and no push in them: a ret elsewhere than to its own call mispredicts, a push lands
//     in the red zone of a leaf function.
//   * sp is a valid stack at every instruction, and unwind tables are right at every instruction: while sp and fp
//     are exchanged, the tables describe the context that is being resumed.
//   * An asm is presumed not to throw. An exception must be thrown by code after the switch, not by the switch.
//   * A tag means that something is out of the ordinary, so that code after a transfer tests one bit and all value
//     words stay free for values. A suspended side that finds its resumer tagged must end; a resumer that finds its
//     peer tagged has outlived it. A tagged peer is never resumed: `untagged` comes first.
//   * The direction flag is clear before and after, as the calling convention demands. Floating-point control words
//     (mxcsr, x87) are shared by all contexts; built with PIRN_KEEP_FP_WORDS each context keeps its own, and a new
//     context begins with those of its first resumer.
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
#include "pirn/context/arch/x86_64/asymmetric.hpp"  // IWYU pragma: export
#include "pirn/context/arch/x86_64/switch.hpp"      // IWYU pragma: export
#elif defined(__aarch64__) && !defined(__ILP32__) && defined(__linux__)
#include "pirn/context/arch/aarch64.hpp"           // IWYU pragma: export
#include "pirn/context/arch/shared/fallbacks.hpp"  // IWYU pragma: export
#elif defined(__i386__)
#include "pirn/context/arch/i386.hpp"              // IWYU pragma: export
#include "pirn/context/arch/shared/fallbacks.hpp"  // IWYU pragma: export
#elif defined(__riscv) && __riscv_xlen == 64
#include "pirn/context/arch/riscv64.hpp"           // IWYU pragma: export
#include "pirn/context/arch/shared/fallbacks.hpp"  // IWYU pragma: export
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__) && _CALL_ELF == 2
#include "pirn/context/arch/ppc64le.hpp"           // IWYU pragma: export
#include "pirn/context/arch/shared/fallbacks.hpp"  // IWYU pragma: export
#else
#error "pirn: no context switch for this instruction set, only for x86-64, i386, AArch64, RISC-V 64 and PowerPC64 LE"
#endif
