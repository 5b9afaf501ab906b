; In a shared library a function asks once where the module's thread-local variables are, and computes from that those of
; variables that are its own; one that is not is asked for once in a block.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-report-thread-locals -disable-output %s 2>&1 | FileCheck %s
; RUN: llc -relocation-model=pic %s -o - | FileCheck --check-prefix=CODE %s

target triple = "x86_64-pc-linux-gnu"

@own = internal thread_local global i32 0
@exported = thread_local global i32 0
@other = thread_local global i32 0

declare ptr @llvm.threadlocal.address.p0(ptr)
declare preserve_nonecc void @suspend()
declare void @use(ptr) nocallback

; CHECK: thread-local 'own': its address, {{.*}}(in 'across_blocks'
; CODE-LABEL: across_blocks:
; CODE: __tls_get_addr
; CODE: callq suspend
; CODE-NOT: __tls_get_addr
; CODE: retq
define void @across_blocks(i1 %way) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @own)
  call void @use(ptr %a)
  br i1 %way, label %left, label %right
left:
  call preserve_nonecc void @suspend()
  br label %right
right:
  %b = call ptr @llvm.threadlocal.address.p0(ptr @own)
  call void @use(ptr %b)
  ret void
}

; CHECK: thread-local 'exported': its address, {{.*}}(in 'in_block'
; CODE-LABEL: in_block:
; CODE: __tls_get_addr
; CODE-NOT: __tls_get_addr
; CODE: retq
define void @in_block() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @exported)
  call void @use(ptr %a)
  call preserve_nonecc void @suspend()
  %b = call ptr @llvm.threadlocal.address.p0(ptr @exported)
  call void @use(ptr %b)
  ret void
}

; CHECK-NOT: warning
; CODE-LABEL: each_asked_for:
; CODE: __tls_get_addr
; CODE: callq suspend
; CODE: __tls_get_addr
; CODE: retq
define void @each_asked_for() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @exported)
  call void @use(ptr %a)
  call preserve_nonecc void @suspend()
  %b = call ptr @llvm.threadlocal.address.p0(ptr @other)
  call void @use(ptr %b)
  ret void
}
; Without optimization each stands for itself.
define void @not_optimized() noinline optnone {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @own)
  call void @use(ptr %a)
  call preserve_nonecc void @suspend()
  %b = call ptr @llvm.threadlocal.address.p0(ptr @own)
  call void @use(ptr %b)
  ret void
}

!llvm.module.flags = !{!0}
!0 = !{i32 8, !"PIC Level", i32 2}
