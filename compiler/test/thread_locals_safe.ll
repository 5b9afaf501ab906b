; Accessors hold against what optimizers do, and go again where nothing suspends.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-insert-thread-local-barriers -S %s | FileCheck --check-prefix=INSERT %s
; RUN: opt -load-pass-plugin=%plugin -passes='pirn-insert-thread-local-barriers,default<O3>' -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes='pirn-insert-thread-local-barriers,default<O3>,pirn-lower-thread-local-barriers' -S %s | FileCheck --check-prefix=LOWER %s
; RUN: opt -load-pass-plugin=%plugin -passes='pirn-insert-thread-local-barriers,default<O3>,pirn-report-thread-locals' -disable-output %s 2>&1 | FileCheck --allow-empty --check-prefix=REPORT %s
; REPORT-NOT: warning

target triple = "x86_64-pc-linux-gnu"

@x = thread_local global i32 0, align 4
@own = internal thread_local global i32 0
@also = internal thread_local alias i32, ptr @own

declare ptr @llvm.threadlocal.address.p0(ptr)
declare preserve_nonecc void @suspend()
declare void @use(ptr) nocallback
declare ptr @__errno_location() nounwind willreturn memory(none)
declare double @cos(double) nounwind memory(none)

; INSERT-LABEL: define void @inlined(
; INSERT: call ptr @pirn.thread_local.x()
define void @inlined() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void @use(ptr %a)
  ret void
}
; CHECK-LABEL: define void @after_inlining(
; CHECK: call {{.*}}ptr @pirn.thread_local.x()
; CHECK: call preserve_nonecc void @suspend()
; CHECK: call {{.*}}ptr @pirn.thread_local.x()
; CHECK: ret void
define void @after_inlining() {
  call void @inlined()
  call preserve_nonecc void @suspend()
  call void @inlined()
  ret void
}

; Nor is anything concluded from the accessor of a variable of this module, of which the body is known for sure.
; CHECK-LABEL: define void @own_twice(
; CHECK: @pirn.thread_local.own()
; CHECK: call preserve_nonecc void @suspend()
; CHECK: @pirn.thread_local.own()
; CHECK: ret void
define void @own_twice() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @own)
  call void @use(ptr %a)
  call preserve_nonecc void @suspend()
  %b = call ptr @llvm.threadlocal.address.p0(ptr @own)
  call void @use(ptr %b)
  ret void
}

; CHECK-LABEL: define void @loop(
; CHECK: call preserve_nonecc void @suspend()
; CHECK: call {{.*}}ptr @pirn.thread_local.own()
; CHECK: br label
define void @loop(i1 %more) {
entry:
  br label %loop
loop:
  call preserve_nonecc void @suspend()
  %a = call ptr @llvm.threadlocal.address.p0(ptr @own)
  call void @use(ptr %a)
  br i1 %more, label %loop, label %end
end:
  ret void
}

; A function that is known to leave memory alone does not suspend: one question for both.
; CHECK-LABEL: define double @asked_once(
; CHECK: @pirn.thread_local.x()
; CHECK-NOT: @pirn.thread_local.x()
; CHECK: ret double
define double @asked_once(double %d) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  %v = load volatile i32, ptr %a
  %e = call double @cos(double %d)
  %b = call ptr @llvm.threadlocal.address.p0(ptr @x)
  %w = load volatile i32, ptr %b
  ret double %e
}

; CHECK-LABEL: define void @of_library(
; CHECK: call ptr @__errno_location()
; CHECK: call preserve_nonecc void @suspend()
; CHECK: call ptr @__errno_location()
define void @of_library() {
  %a = call ptr @__errno_location() nounwind memory(none)
  call void @use(ptr %a)
  call preserve_nonecc void @suspend()
  %b = call ptr @__errno_location() nounwind memory(none)
  call void @use(ptr %b)
  ret void
}

; Declared constant, and constant within one thread.
; CHECK-LABEL: define void @through_function(
; CHECK: call {{.*}}ptr @somebodys()
; CHECK: call preserve_nonecc void @suspend()
; CHECK: call {{.*}}ptr @somebodys()
define ptr @somebodys() noinline nounwind memory(none) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  ret ptr %a
}
define void @through_function() {
  %a = call ptr @somebodys() memory(none)
  call void @use(ptr %a)
  call preserve_nonecc void @suspend()
  %b = call ptr @somebodys() memory(none)
  call void @use(ptr %b)
  ret void
}

; INSERT-LABEL: define ptr @by_another_name(
; INSERT: call ptr @pirn.thread_local.also()
define ptr @by_another_name() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @also)
  ret ptr %a
}

; A use without the intrinsic, on an edge.
; INSERT-LABEL: define ptr @on_an_edge(
; INSERT: right:
; INSERT: [[OWN:%.*]] = call ptr @pirn.thread_local.own()
; INSERT: phi ptr [ null, %left ], [ [[OWN]], %right ]
define ptr @on_an_edge(i1 %way) {
  br i1 %way, label %left, label %right
left:
  br label %end
right:
  br label %end
end:
  %p = phi ptr [ null, %left ], [ @own, %right ]
  ret ptr %p
}

; LOWER-LABEL: define void @inlined(
; LOWER: call {{.*}}ptr @llvm.threadlocal.address.p0(ptr {{.*}}@x)
; LOWER-LABEL: define void @after_inlining(
; LOWER: call {{.*}}ptr @pirn.thread_local.x()
; LOWER-LABEL: define {{.*}}ptr @somebodys(
; LOWER: call {{.*}}ptr @llvm.threadlocal.address.p0(ptr {{.*}}@x)

; INSERT-LABEL: define linkonce_odr hidden nonnull align 4 ptr @pirn.thread_local.x()
; INSERT-SAME: [[ATTRIBUTES:#[0-9]+]] comdat
; INSERT: define internal nonnull align 4 ptr @pirn.thread_local.own()
; INSERT: attributes [[ATTRIBUTES]] = { {{.*}}noinline {{.*}}memory(inaccessiblemem: read)
