; Files that are compiled by themselves: one writes what the other reads; inline functions are this file's own copies.
; RUN: mkdir -p %t.d; sed -n '/^;;;/,$p' %s | sed 's/^;;; *//' > %t.other.ll
; RUN: export PIRN_STACK_SUMMARIES=%t.d; opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -S %t.other.ll -o %t.out.ll
; RUN: cat %t.d/*.stack | FileCheck %s --check-prefix=SUMMARY
; RUN: export PIRN_STACK_ASSUMPTIONS=%t.d; opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -S %s -o %t.out.ll
; RUN: FileCheck %s < %t.out.ll
; RUN: export PIRN_STACK_DEFAULT=1000; opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -S %s -o - | FileCheck %s --check-prefix=DEFAULT
; RUN: echo 'bytes many f' > %t.bad; export PIRN_STACK_ASSUMPTIONS=%t.bad; ! opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -S %s -o /dev/null 2> %t.err; FileCheck %s --check-prefix=BAD < %t.err
; RUN: export PIRN_STACK_ASSUMPTIONS=/there/is/none; ! opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -S %s -o /dev/null 2> %t.err; FileCheck %s --check-prefix=NONE < %t.err

; SUMMARY-DAG: frame 80 far : near@
; SUMMARY-DAG: frame {{[0-9]+}} near@
; SUMMARY-DAG: refused by_pointer : it calls through a pointer
; BAD: .bad:1: not a stack fact: bytes many f
; NONE: pirn: cannot read /there/is/none

target triple = "x86_64-pc-linux-gnu"

declare i64 @pirn_spawn_bounded_needs_the_compiler_plugin(ptr)
declare void @far()

define dso_local i64 @ask() {
; CHECK-LABEL: @ask(
; CHECK: call void @use(ptr @entry.own)
; CHECK-NEXT: ret i64 136
; DEFAULT-LABEL: @ask(
; DEFAULT: ret i64 1032
  %bytes = call i64 @pirn_spawn_bounded_needs_the_compiler_plugin(ptr @entry)
  call void @use(ptr @entry)
  ret i64 %bytes
}
declare void @use(ptr)

define linkonce_odr dso_local void @entry(i64 %by, i64 %pending) {
  call void @inline()
  call void asm sideeffect "", ""()
  ret void
}

define linkonce_odr dso_local void @inline() {
  call void @far()
  call void asm sideeffect "", ""()
  ret void
}
; CHECK: define internal void @entry.own(
; CHECK-NEXT: call void @inline.own()
; CHECK: define internal void @inline.own(

;;; source_filename = "other.cpp"
;;; target triple = "x86_64-pc-linux-gnu"
;;; define dso_local void @far() {
;;;   %room = alloca [64 x i8]
;;;   call void @near(ptr %room)
;;;   call void asm sideeffect "", ""()
;;;   ret void
;;; }
;;; define internal void @near(ptr %p) noinline {
;;;   call void asm sideeffect "", "r"(ptr %p)
;;;   call void @leaf()
;;;   ret void
;;; }
;;; define internal void @leaf() noinline {
;;;   ret void
;;; }
;;; define dso_local void @by_pointer(ptr %f) {
;;;   call void %f()
;;;   ret void
;;; }
