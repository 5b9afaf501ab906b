/* The clauses of the calling convention at a resume and a yield, register by register: callee-saved registers, the
 * stack pointer, the direction flag and the x87 stack, on both sides and at a coroutine's first instruction.
 * docs/abi.md lists them. x86-64; the conformance program of the context layer has them for the other instruction sets.
 */
#include "aco.h"

#include <stdint.h>

#include "check.h"

#if defined(__x86_64__)

#define DIRECTION_FLAG 0x400u
#define REGISTERS 6

/* What is found after a call, in the order in which the assembly below stores it. */
struct found {
  uintptr_t kept[REGISTERS]; /* rbx, rbp, r12 to r15 */
  uintptr_t sp_moved;        /* by how much the stack pointer differs */
  uintptr_t flags;
  uint16_t x87[14]; /* as fnstenv stores it: the control word at 0, the status word at 2, the tags at 4 */
};
struct begun {
  uintptr_t sp, flags;
  uint16_t x87[14];
};
struct begun at_entry __asm__("pirn_test_at_entry");

#ifdef __cplusplus
extern "C" {
#endif
/* Calls `function` with `argument`, with the six registers set to `values`, and stores what it finds afterwards. */
void call_keeping(void (*function)(void*), void* argument, const uintptr_t* values,
                  struct found* found) __asm__("pirn_test_call_keeping");
/* The first instructions of a coroutine: notes the state at entry and continues at `body`. */
void entry(void) __asm__("pirn_test_entry");
void body(void) __asm__("pirn_test_body");
#ifdef __cplusplus
}
#endif

#define FUNCTION(name, text)                                                                                \
  __asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", @function\n" name ":\n\t" text ".size " name \
          ", . - " name "\n")

FUNCTION(
    "pirn_test_call_keeping",
    "pushq %rbx\n\tpushq %rbp\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\tpushq %rcx\n\t"
    "movq %rsp, 48(%rcx)\n\tmovq %rdi, %rax\n\tmovq %rsi, %rdi\n\t"
    "movq (%rdx), %rbx\n\tmovq 8(%rdx), %rbp\n\tmovq 16(%rdx), %r12\n\tmovq 24(%rdx), %r13\n\t"
    "movq 32(%rdx), %r14\n\tmovq 40(%rdx), %r15\n\t"
    "callq *%rax\n\t"
    "movq (%rsp), %rcx\n\tmovq %rbx, (%rcx)\n\tmovq %rbp, 8(%rcx)\n\tmovq %r12, 16(%rcx)\n\t"
    "movq %r13, 24(%rcx)\n\tmovq %r14, 32(%rcx)\n\tmovq %r15, 40(%rcx)\n\tsubq %rsp, 48(%rcx)\n\t"
    "pushfq\n\tpopq 56(%rcx)\n\tfnstenv 64(%rcx)\n\tfldenv 64(%rcx)\n\t"
    "addq $8, %rsp\n\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbp\n\tpopq %rbx\n\tcld\n\tretq\n\t");
FUNCTION("pirn_test_entry",
         "movq pirn_test_at_entry@GOTPCREL(%rip), %rax\n\tmovq %rsp, (%rax)\n\tpushfq\n\tpopq 8(%rax)\n\t"
         "fnstenv 16(%rax)\n\tfldenv 16(%rax)\n\tcld\n\tjmp pirn_test_body@PLT\n\t");

static aco_t* main_co;

static void resume(void* co) { aco_resume((aco_t*)co); }
static void yield(void* unused) {
  (void)unused;
  aco_yield();
}

static void check_found(const struct found* found, const uintptr_t* values) {
  int i;
  for (i = 0; i < REGISTERS; ++i) {
    CHECK(found->kept[i] == values[i]);
  }
  CHECK(found->sp_moved == 0);
  CHECK((found->flags & DIRECTION_FLAG) == 0);
  CHECK(found->x87[4] == 0xffff); /* the tag word, all empty */
}

void body(void) {
  static const uintptr_t values[REGISTERS] = {~(uintptr_t)1, ~(uintptr_t)2, ~(uintptr_t)3,
                                              ~(uintptr_t)4, ~(uintptr_t)5, ~(uintptr_t)6};
  struct found inside;
  int i;
  for (i = 0; i < 3; ++i) {
    call_keeping(yield, NULL, values, &inside);
    check_found(&inside, values);
  }
  aco_exit();
}

static void resume_keeping(aco_share_stack_t* first, aco_share_stack_t* second) {
  static const uintptr_t values[REGISTERS] = {101, 102, 103, 104, 105, 106};
  aco_t* const one = aco_create(main_co, first, 0, entry, NULL);
  aco_t* const other = aco_create(main_co, second, 0, entry, NULL);
  int i;
  for (i = 0; i < 4; ++i) {
    struct found found;
    call_keeping(resume, i % 2 ? other : one, values, &found);
    check_found(&found, values);
    if (i < 2) {
      CHECK(at_entry.sp % 16 == 8); /* as behind a call */
      CHECK((at_entry.flags & DIRECTION_FLAG) == 0);
      CHECK(at_entry.x87[4] == 0xffff);
    }
    call_keeping(resume, i % 2 ? one : other, values, &found);
    check_found(&found, values);
  }
  CHECK(one->is_end && other->is_end);
  aco_destroy(one);
  aco_destroy(other);
}

int main(void) {
  aco_share_stack_t *first, *second;
  aco_thread_init(NULL);
  main_co = aco_create(NULL, NULL, 0, NULL, NULL);
  first = aco_share_stack_new(0);
  second = aco_share_stack_new(0);
  resume_keeping(first, first);  /* through images */
  resume_keeping(first, second); /* each on the stack that it owns */
  aco_share_stack_destroy(first);
  aco_share_stack_destroy(second);
  aco_destroy(main_co);
  return 0;
}

#else
int main(void) { return 0; }
#endif
