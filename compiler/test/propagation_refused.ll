; A function that cannot have the convention keeps its own, and the remark says why.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-propagate -pass-remarks-missed=pirn -S %s 2> %t.remarks | FileCheck %s
; RUN: FileCheck --check-prefix=REMARK %s < %t.remarks
target triple = "x86_64-unknown-linux-gnu"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

declare preserve_nonecc void @yield()
declare i32 @setjmp(ptr) returns_twice
declare i32 @__gxx_personality_v0(...)

@pointer = global ptr @taken
@llvm.used = appending global [1 x ptr] [ptr @marked], section "llvm.metadata"
@other = internal alias void (), ptr @named_twice
@chosen = internal ifunc void (), ptr @resolver

; REMARK-DAG: 'taken' still preserves registers, though it may switch: its address is taken
; CHECK: define internal void @taken(
define internal void @taken() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'marked' {{.*}}: it is marked as used by code that the compiler does not see
; CHECK: define internal void @marked(
define internal void @marked() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'named_twice' {{.*}}: it has an alias ('other')
; CHECK: define internal void @named_twice(
define internal void @named_twice() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'resolver' {{.*}}: the dynamic linker calls it (ifunc 'chosen')
; CHECK: define internal ptr @resolver(
define internal ptr @resolver() {
  call preserve_nonecc void @yield()
  ret ptr null
}
; REMARK-DAG: 'visible' {{.*}}: other files may call it
; CHECK: define hidden void @visible(
define hidden void @visible() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'inline_elsewhere' {{.*}}: other files may call it
; CHECK: define linkonce_odr void @inline_elsewhere(
define linkonce_odr void @inline_elsewhere() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'variable' {{.*}}: it takes a variable number of arguments
; CHECK: define internal void @variable(
define internal void @variable(...) {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'bare' {{.*}}: it is naked
; CHECK: define internal void @bare(
define internal void @bare() naked {
  call preserve_nonecc void @yield()
  unreachable
}
; REMARK-DAG: 'not_optimized' {{.*}}: it is not optimized
; CHECK: define internal void @not_optimized(
define internal void @not_optimized() noinline optnone {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'twice' {{.*}}: it calls a function that returns twice
; CHECK: define internal void @twice(
define internal void @twice(ptr %to) {
  call i32 @setjmp(ptr %to) returns_twice
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'cold_convention' {{.*}}: it already has another convention
; CHECK: define internal coldcc void @cold_convention(
define internal coldcc void @cold_convention() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'by_copy' {{.*}}: an argument is passed in a copy on the stack (byval)
; CHECK: define internal i64 @by_copy(
define internal i64 @by_copy(ptr byval([5 x i64]) %many) {
  call preserve_nonecc void @yield()
  ret i64 0
}
; REMARK-DAG: 'nested' {{.*}}: an argument is passed in a static chain (nest)
; CHECK: define internal void @nested(
define internal void @nested(ptr nest %chain) {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'wide' {{.*}}: the location of an argument depends on target features
; CHECK: define internal void @wide(
define internal void @wide(<8 x float> %eight) {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'eleven' {{.*}}: its arguments take 11 general registers, and there are 10
; CHECK: define internal void @eleven(
define internal void @eleven(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i64 %i, i128 %j) {
  call preserve_nonecc void @yield()
  ret void
}
; CHECK: define internal preserve_nonecc void @ten(
define internal void @ten(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i128 %j) {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'three' {{.*}}: its result takes more than two registers
; CHECK: define internal { i64, i64, i64 } @three(
define internal { i64, i64, i64 } @three() {
  call preserve_nonecc void @yield()
  ret { i64, i64, i64 } zeroinitializer
}
; CHECK: define internal preserve_nonecc void @by_place(
define internal void @by_place(ptr sret([5 x i64]) %result) {
  call preserve_nonecc void @yield()
  ret void
}

; A call that must be a tail call needs one convention on both sides.
; REMARK-DAG: 'called_last' {{.*}}: a call in 'calls_last' must be a tail call (musttail)
; REMARK-DAG: 'calls_last_of_all' {{.*}}: it contains a call that must be a tail call (musttail)
; CHECK: define internal void @called_last(
define internal void @called_last() {
  call preserve_nonecc void @yield()
  ret void
}
declare void @elsewhere()
; CHECK: define internal void @calls_last(
define internal void @calls_last() {
  musttail call void @called_last()
  ret void
}
; CHECK: define internal void @calls_last_of_all(
define internal void @calls_last_of_all() {
  call preserve_nonecc void @yield()
  musttail call void @elsewhere()
  ret void
}
; REMARK-DAG: 'with_bundle' {{.*}}: a call in 'main' carries more than its arguments (deopt)
; CHECK: define internal void @with_bundle(
define internal void @with_bundle() {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'other_types' {{.*}}: its address is taken
; CHECK: define internal void @other_types(
define internal void @other_types(i64 %x) {
  call preserve_nonecc void @yield()
  ret void
}

; Under AddressSanitizer nothing has it, nor may call what has.
; REMARK-DAG: 'under_asan' {{.*}}: it is built with an address sanitizer
; CHECK: define internal void @under_asan(
define internal void @under_asan() sanitize_address {
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'called_under_asan' {{.*}}: its caller 'calls_under_asan' cannot call such a function: it is built with an address sanitizer
; CHECK: define internal void @called_under_asan(
define internal void @called_under_asan() {
  call preserve_nonecc void @yield()
  ret void
}
define void @calls_under_asan() sanitize_address {
  call void @called_under_asan()
  ret void
}

; A frame that is realigned and has a variable size is addressed through rbx.
; REMARK-DAG: 'by_base' {{.*}}: its frame has a variable size and may be addressed through a register that such a call overwrites
; CHECK: define internal void @by_base(
define internal void @by_base(i64 %n) {
  %aligned = alloca [64 x i8], align 64
  %sized = alloca i8, i64 %n
  call void @use(ptr %aligned, ptr %sized)
  call preserve_nonecc void @yield()
  ret void
}
; REMARK-DAG: 'called_by_base' {{.*}}: its caller 'calls_by_base' cannot call such a function: its frame has a variable size
; CHECK: define internal void @called_by_base(
define internal void @called_by_base() {
  call preserve_nonecc void @yield()
  ret void
}
define void @calls_by_base(i64 %n) {
  %aligned = alloca [64 x i8], align 64
  %sized = alloca i8, i64 %n
  call void @use(ptr %aligned, ptr %sized)
  call void @called_by_base()
  ret void
}
; CHECK: define internal preserve_nonecc void @by_frame_pointer(
define internal void @by_frame_pointer(i64 %n) {
  %sized = alloca i8, i64 %n
  call void @use(ptr %sized, ptr null)
  call preserve_nonecc void @yield()
  ret void
}
declare void @use(ptr, ptr)

define i32 @main() {
  call void @with_bundle() [ "deopt"() ]
  call void @other_types(i32 1)
  call void @taken()
  call void (...) @variable(i32 1)
  ret i32 0
}
