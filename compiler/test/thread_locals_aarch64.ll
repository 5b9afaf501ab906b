; On AArch64 a function reads the thread pointer once where one place dominates the others, for whichever variables.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-report-thread-locals -disable-output %s 2>&1 | FileCheck %s
; RUN: llc %s -o - | FileCheck --check-prefix=CODE %s
; RUN: sed s/aarch64-/x86_64-/ %s | opt -load-pass-plugin=%plugin -passes=pirn-report-thread-locals -disable-output 2>&1 | FileCheck --allow-empty --check-prefix=NONE %s
; NONE-NOT: warning

target triple = "aarch64-unknown-linux-gnu"

@first = internal thread_local(localexec) global i32 0
@second = internal thread_local(localexec) global i32 0
declare ptr @llvm.threadlocal.address.p0(ptr)
declare preserve_nonecc void @yield()

; CHECK: warning: {{.*}}thread-local 'second': its address, computed from that of 'first', taken earlier, is used here after 'yield' may have moved the fiber to another thread
; CODE-LABEL: across_blocks:
; CODE: mrs {{x[0-9]+}}, TPIDR_EL0
; CODE: bl yield
; CODE-NOT: TPIDR_EL0
; CODE: .size across_blocks
define dso_local void @across_blocks(i1 %more) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @first)
  store volatile i32 1, ptr %a
  call preserve_nonecc void @yield()
  br i1 %more, label %again, label %done
again:
  %b = call ptr @llvm.threadlocal.address.p0(ptr @second)
  store volatile i32 2, ptr %b
  br label %done
done:
  ret void
}
