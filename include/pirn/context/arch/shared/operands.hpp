// Copies peers and values between memory and the registers that an asm names. Each macro declares or uses variables of
// the function around it.
//
// A read or write of memory may be a call of a sanitizer's runtime, which takes the argument registers. So a function
// reads all memory before it binds the first register, and after the asm it copies all registers before it writes. A
// function call, even an inlined one, would be a place where a compiler may put other code between them; so these are
// macros. Their arguments are plain names: with UndefinedBehaviorSanitizer, clang checks each use of one in
// parentheses.
//
//   PIRN_READ_PEER(name, peer)      declares name_pc, name_sp and name_fp, the parts of `peer`
//   PIRN_READ_VALUES(values)        declares sent0 to sent3, the words of `values`
//   PIRN_BIND_PEER(name, ...)       declares pc, sp and fp in the three registers, which hold name_pc, name_sp, name_fp
//   PIRN_BIND_VALUES(...)           declares value0 to value3 in the four registers, which hold sent0 to sent3
//   PIRN_WRITE_PEER(peer)           copies pc, sp and fp, as a switch has left them, and writes them to `peer`
//   PIRN_WRITE_PEER_AND_VALUES(peer, values)   also copies value0 to value3 and writes them to `values`
//   PIRN_WRITE_WORDS(first, second)   copies message0 and message1 and writes them to these two
#pragma once

#define PIRN_READ_PEER(name, peer) \
  void *const name##_pc = peer.pc, *const name##_sp = peer.sp, *const name##_fp = peer.fp
#define PIRN_READ_VALUES(values) const word sent0 = values[0], sent1 = values[1], sent2 = values[2], sent3 = values[3]
#define PIRN_BIND_PEER(name, pc_register, sp_register, fp_register) \
  register void* pc asm(pc_register) = name##_pc;                   \
  register void* sp asm(sp_register) = name##_sp;                   \
  register void* fp asm(fp_register) = name##_fp
#define PIRN_BIND_VALUES(register0, register1, register2, register3) \
  register word value0 asm(register0) = sent0;                       \
  register word value1 asm(register1) = sent1;                       \
  register word value2 asm(register2) = sent2;                       \
  register word value3 asm(register3) = sent3
#define PIRN_COPY_PEER void *const resumer_pc = pc, *const resumer_sp = sp, *const resumer_fp = fp
#define PIRN_STORE_PEER(peer) \
  peer.pc = resumer_pc;       \
  peer.sp = resumer_sp;       \
  peer.fp = resumer_fp
#define PIRN_WRITE_PEER(peer) \
  PIRN_COPY_PEER;             \
  PIRN_STORE_PEER(peer)
#define PIRN_WRITE_PEER_AND_VALUES(peer, values)                                             \
  const word received0 = value0, received1 = value1, received2 = value2, received3 = value3; \
  PIRN_COPY_PEER;                                                                            \
  PIRN_STORE_PEER(peer);                                                                     \
  values[0] = received0;                                                                     \
  values[1] = received1;                                                                     \
  values[2] = received2;                                                                     \
  values[3] = received3
#define PIRN_WRITE_WORDS(first, second)                  \
  const word received0 = message0, received1 = message1; \
  first = received0;                                     \
  second = received1
