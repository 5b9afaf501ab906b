; Callers of a function that switches preserve nothing either, up to those that other files may call.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-propagate -pass-remarks=pirn -pass-remarks-missed=pirn -S %s 2> %t.remarks | FileCheck %s
; RUN: FileCheck --check-prefix=REMARK %s < %t.remarks
target triple = "x86_64-unknown-linux-gnu"

declare preserve_nonecc void @yield()

; REMARK-DAG: 'top(long)' no longer preserves registers; switches per call: 1
; REMARK-DAG: 'middle' no longer preserves registers; switches per call: 2
; REMARK-DAG: 'main' still preserves registers, though it may switch: other files may call it

; CHECK: define internal preserve_nonecc i64 @bottom(
define internal i64 @bottom(i64 %x) noinline {
  call preserve_nonecc void @yield()
  ret i64 %x
}

; CHECK: define internal preserve_nonecc i64 @middle(
; CHECK: call preserve_nonecc i64 @bottom(
; CHECK: tail call preserve_nonecc i64 @bottom(
define internal fastcc i64 @middle(i64 %x) noinline {
  %a = call i64 @bottom(i64 %x)
  %b = tail call i64 @bottom(i64 %a)
  ret i64 %b
}

; CHECK: define internal preserve_nonecc i64 @_Z3topl(
; CHECK: invoke preserve_nonecc i64 @middle(
define internal i64 @_Z3topl(i64 %x) noinline personality ptr @__gxx_personality_v0 {
  %a = invoke fastcc i64 @middle(i64 %x) to label %done unwind label %thrown
done:
  ret i64 %a
thrown:
  %caught = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %caught
}

declare i32 @__gxx_personality_v0(...)

; CHECK: define i32 @main(
; CHECK: call preserve_nonecc i64 @_Z3topl(
define i32 @main() {
  %a = call i64 @_Z3topl(i64 1)
  ret i32 0
}

; A function that does not switch keeps its convention.
; CHECK: define internal i64 @pure(
define internal i64 @pure(i64 %x) noinline {
  ret i64 %x
}
