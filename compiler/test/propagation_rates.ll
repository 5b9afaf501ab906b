; A function that usually does not switch is left alone, as is one whose callers would save all registers for a rare call.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-propagate -pass-remarks=pirn -pass-remarks-missed=pirn -S %s 2> %t.remarks | FileCheck %s
; RUN: FileCheck --check-prefix=REMARK %s < %t.remarks
target triple = "x86_64-unknown-linux-gnu"

declare preserve_nonecc void @yield()

; REMARK-DAG: 'seldom' still preserves registers, though it may switch: it switches in 0.1 % of its calls
; CHECK: define internal void @seldom(
define internal void @seldom(i1 %x) {
  br i1 %x, label %switch, label %done, !prof !0
switch:
  call preserve_nonecc void @yield()
  br label %done
done:
  ret void
}

; Seldom, but in a loop, and so about once a call.
; CHECK: define internal preserve_nonecc void @in_a_loop(
define internal void @in_a_loop(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %rest ]
  %x = call i1 @often(i64 %i)
  br i1 %x, label %switch, label %rest, !prof !0
switch:
  call preserve_nonecc void @yield()
  br label %rest
rest:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %n
  br i1 %end, label %done, label %loop, !prof !1
done:
  ret void
}
declare i1 @often(i64)

; Recursion counts for nothing unless it switches.
; REMARK-DAG: 'recursive' still preserves registers, though it may switch: it switches in 0.1 % of its calls
; CHECK: define internal void @recursive(
define internal void @recursive(i64 %n, i1 %x) {
  call void @recursive(i64 %n, i1 %x)
  call void @recursive_too(i64 %n, i1 %x)
  br i1 %x, label %switch, label %done, !prof !0
switch:
  call preserve_nonecc void @yield()
  br label %done
done:
  ret void
}
; CHECK: define internal void @recursive_too(
define internal void @recursive_too(i64 %n, i1 %x) {
  call void @recursive(i64 %n, i1 %x)
  ret void
}

; REMARK-DAG: 'slow_path' still preserves registers, though it may switch: 'fast_path' would save all registers for it and switches in 0.1 % of its calls
; CHECK: define internal void @slow_path(
define internal void @slow_path() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'fast_path' still preserves registers, though it may switch: other files may call it
; CHECK: define void @fast_path(
; CHECK: call void @slow_path(
define void @fast_path(i1 %x) {
  br i1 %x, label %slow, label %done, !prof !0
slow:
  call void @slow_path()
  br label %done
done:
  ret void
}

; Here another caller gains more than fast_path_too loses.
; CHECK: define internal preserve_nonecc void @wanted(
define internal void @wanted() {
  call preserve_nonecc void @yield()
  ret void
}
define void @fast_path_too(i1 %x) {
  br i1 %x, label %slow, label %done, !prof !0
slow:
  call void @wanted()
  br label %done
done:
  ret void
}
define void @wants() {
  call void @wanted()
  call void @wanted()
  ret void
}

; A caller that switches directly saves all registers anyway.
; CHECK: define internal preserve_nonecc void @beside_a_switch(
define internal void @beside_a_switch() {
  call preserve_nonecc void @yield()
  ret void
}
define void @switches_anyway(i1 %x) {
  call preserve_nonecc void @yield()
  br i1 %x, label %slow, label %done, !prof !0
slow:
  call void @beside_a_switch()
  br label %done
done:
  ret void
}

!0 = !{!"branch_weights", i32 1, i32 999}
!1 = !{!"branch_weights", i32 1, i32 999}
