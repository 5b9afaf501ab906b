/* The text of pirn's switch between two labels, and beside it a classic switch: a function that stores all registers
 * which a call preserves on the stack, exchanges stacks, loads them and returns. saved.py counts both in machine code.
 */
#include "pirn/inline.h"

void text_of_pirn(void);
void text_of_pirn(void) {
  __asm__ __volatile__("nop\n\t.globl pirn_switch_begin\npirn_switch_begin:\n\t" PIRN_SWITCH_TEXT PIRN_RESUME_ENTRY
                       "\n\t.globl pirn_switch_end\npirn_switch_end:\n\t"
                       :
                       :
                       : "memory");
}

/* The arguments: where the leaving side's stack pointer is stored, and the one to continue with. */
#define CLASSIC(text)                                                                 \
  __asm__(".text\n\tnop\n.globl classic_switch_begin\nclassic_switch_begin:\n\t" text \
          ".globl classic_switch_end\nclassic_switch_end:\n\tnop\n")

/* clang-format off */
#if defined(__x86_64__)
CLASSIC("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
        "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tretq\n\t");
#elif defined(__i386__)
CLASSIC("movl 4(%esp), %eax\n\tmovl 8(%esp), %edx\n\tpushl %ebp\n\tpushl %ebx\n\tpushl %esi\n\tpushl %edi\n\t"
        "movl %esp, (%eax)\n\tmovl %edx, %esp\n\t"
        "popl %edi\n\tpopl %esi\n\tpopl %ebx\n\tpopl %ebp\n\tretl\n\t");
#elif defined(__aarch64__)
CLASSIC("stp x29, x30, [sp, #-160]!\n\tstp x19, x20, [sp, #16]\n\tstp x21, x22, [sp, #32]\n\tstp x23, x24, [sp, #48]\n\t"
        "stp x25, x26, [sp, #64]\n\tstp x27, x28, [sp, #80]\n\tstp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n\t"
        "stp d12, d13, [sp, #128]\n\tstp d14, d15, [sp, #144]\n\tmov x2, sp\n\tstr x2, [x0]\n\tmov sp, x1\n\t"
        "ldp x19, x20, [sp, #16]\n\tldp x21, x22, [sp, #32]\n\tldp x23, x24, [sp, #48]\n\tldp x25, x26, [sp, #64]\n\t"
        "ldp x27, x28, [sp, #80]\n\tldp d8, d9, [sp, #96]\n\tldp d10, d11, [sp, #112]\n\tldp d12, d13, [sp, #128]\n\t"
        "ldp d14, d15, [sp, #144]\n\tldp x29, x30, [sp], #160\n\tret\n\t");
#elif defined(__riscv)
#define S(op, r, n) #op " " #r ", " #n "(sp)\n\t"
#define EACH(i, f)                                                                                                       \
  S(i, ra, 0) S(i, s0, 8) S(i, s1, 16) S(i, s2, 24) S(i, s3, 32) S(i, s4, 40) S(i, s5, 48) S(i, s6, 56) S(i, s7, 64)     \
  S(i, s8, 72) S(i, s9, 80) S(i, s10, 88) S(i, s11, 96) S(f, fs0, 104) S(f, fs1, 112) S(f, fs2, 120) S(f, fs3, 128)      \
  S(f, fs4, 136) S(f, fs5, 144) S(f, fs6, 152) S(f, fs7, 160) S(f, fs8, 168) S(f, fs9, 176) S(f, fs10, 184) S(f, fs11, 192)
CLASSIC("addi sp, sp, -208\n\t" EACH(sd, fsd) "sd sp, 0(a0)\n\tmv sp, a1\n\t" EACH(ld, fld) "addi sp, sp, 208\n\tret\n\t");
#elif defined(__powerpc64__)
#define R(op, r, n) #op " " #r ", " #n "(1)\n\t"
#define GENERAL(op)                                                                                                       \
  R(op, 14, 48) R(op, 15, 56) R(op, 16, 64) R(op, 17, 72) R(op, 18, 80) R(op, 19, 88) R(op, 20, 96) R(op, 21, 104)        \
  R(op, 22, 112) R(op, 23, 120) R(op, 24, 128) R(op, 25, 136) R(op, 26, 144) R(op, 27, 152) R(op, 28, 160)                \
  R(op, 29, 168) R(op, 30, 176) R(op, 31, 184)
#define FLOATS(op)                                                                                                        \
  R(op, 14, 192) R(op, 15, 200) R(op, 16, 208) R(op, 17, 216) R(op, 18, 224) R(op, 19, 232) R(op, 20, 240)                \
  R(op, 21, 248) R(op, 22, 256) R(op, 23, 264) R(op, 24, 272) R(op, 25, 280) R(op, 26, 288) R(op, 27, 296)                \
  R(op, 28, 304) R(op, 29, 312) R(op, 30, 320) R(op, 31, 328)
#define V(op, v, n) "li 0, " #n "\n\t" #op " " #v ", 1, 0\n\t"
#define VECTORS(op)                                                                                                       \
  V(op, 20, 336) V(op, 21, 352) V(op, 22, 368) V(op, 23, 384) V(op, 24, 400) V(op, 25, 416) V(op, 26, 432)                \
  V(op, 27, 448) V(op, 28, 464) V(op, 29, 480) V(op, 30, 496) V(op, 31, 512)
/* r2, lr and cr lie in the frame above, as the convention has it. */
CLASSIC("mflr 0\n\tstd 0, 16(1)\n\tmfcr 0\n\tstw 0, 8(1)\n\tstd 2, 24(1)\n\tstdu 1, -528(1)\n\t"
        GENERAL(std) FLOATS(stfd) VECTORS(stvx) "std 1, 0(3)\n\tmr 1, 4\n\t" VECTORS(lvx) FLOATS(lfd) GENERAL(ld)
        "addi 1, 1, 528\n\tld 2, 24(1)\n\tlwz 0, 8(1)\n\tmtcr 0\n\tld 0, 16(1)\n\tmtlr 0\n\tblr\n\t");
#endif
/* clang-format on */
