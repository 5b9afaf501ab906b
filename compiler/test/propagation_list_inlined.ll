; After inlining, a call of a listed function may stand in a frame that it would break.
; RUN: ! opt -load-pass-plugin=%plugin -passes=pirn-propagate -S %s 2> %t.errors
; RUN: FileCheck %s < %t.errors
; RUN: sed 's/align 64/align 16/' %s | opt -load-pass-plugin=%plugin -passes=pirn-propagate -S | FileCheck --check-prefix=GOOD %s
target triple = "x86_64-unknown-linux-gnu"

declare preserve_nonecc void @_Z6listedv.preserve_none()
declare void @use(ptr, ptr)

; CHECK: error: pirn: 'listed() (.preserve_none)' is listed and cannot have the convention: 'main' calls it, but cannot: its frame has a variable size
; GOOD: define i32 @main(
define i32 @main(i32 %n) {
  %aligned = alloca [64 x i8], align 64
  %sized = alloca i8, i32 %n
  call void @use(ptr %aligned, ptr %sized)
  call preserve_nonecc void @_Z6listedv.preserve_none()
  ret i32 0
}
