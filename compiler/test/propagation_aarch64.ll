; On AArch64 any frame of variable size may be addressed through x19; elsewhere there is no such convention.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-propagate -pass-remarks-missed=pirn -S %s 2> %t.remarks | FileCheck %s
; RUN: FileCheck --check-prefix=REMARK %s < %t.remarks
; RUN: sed s/aarch64-/riscv64-/ %s | opt -load-pass-plugin=%plugin -passes=pirn-propagate -S | FileCheck --check-prefix=NONE %s
; RUN: sed s/aarch64-unknown-linux-gnu/x86_64-pc-windows-msvc/ %s | opt -load-pass-plugin=%plugin -passes=pirn-propagate -S | FileCheck --check-prefix=NONE %s
; NONE: define internal void @plain(
target triple = "aarch64-unknown-linux-gnu"

declare preserve_nonecc void @yield()
declare void @use(ptr)

; CHECK: define internal preserve_nonecc void @plain(
define internal void @plain() {
  call preserve_nonecc void @yield()
  ret void
}

; The switch's own asm is one that clobbers all but the base pointer.
; CHECK: define internal preserve_nonecc void @switches(
define internal void @switches() {
  call void asm sideeffect "", "~{x20},~{x21},~{x22},~{x23},~{x24},~{x25},~{x26},~{x27},~{x28},~{memory}"()
  ret void
}

; REMARK-DAG: 'by_base' {{.*}}: its frame has a variable size and may be addressed through a register that such a call overwrites
; CHECK: define internal void @by_base(
define internal void @by_base(i64 %n) {
  %sized = alloca i8, i64 %n
  call void @use(ptr %sized)
  call preserve_nonecc void @yield()
  ret void
}

; An argument would be passed in the register that the program keeps to itself.
; REMARK-DAG: 'reserved' {{.*}}: registers are reserved for the program (-ffixed-...)
; CHECK: define internal void @reserved(
define internal void @reserved(i64 %n) #0 {
  call preserve_nonecc void @yield()
  ret void
}
attributes #0 = { "target-features"="+neon,+reserve-x20" }
