; Reports of thread-local addresses that live across a suspension, and cases without a report.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-report-thread-locals -disable-output %s 2>&1 | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -pirn-thread-locals-calls=all -passes=pirn-report-thread-locals -disable-output %s 2>&1 | FileCheck --check-prefix=ALL %s

target triple = "x86_64-pc-linux-gnu"

@x = thread_local global i32 0
@y = thread_local global i32 0
@.str = private unnamed_addr constant [15 x i8] c"pirn::suspends\00", section "llvm.metadata"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @annotated, ptr @.str, ptr @.str, i32 1, ptr null }], section "llvm.metadata"

declare ptr @llvm.threadlocal.address.p0(ptr)
declare void @annotated()
declare void @unknown()
declare i32 @printf(ptr, ...)
declare void @use(ptr) nocallback
declare ptr @__errno_location() nounwind memory(none)
declare i64 @pthread_self() nounwind memory(none)
declare void @_ZN4pirn8v1_build5fiber4joinEv()
declare void @_ZN4pirn8v1_build8platform3nowEv()
declare void @_ZN4pirn8v1_build7misusedEv() noreturn
declare preserve_nonecc void @bare()

; With line numbers: those of the use, of where the address was taken and of the call between.
; CHECK: warning: fiber.cpp:13:3: thread-local 'x': its address, taken in line 11, is used here after 'annotated' in line 12 may have moved the fiber to another thread
define void @lines() !dbg !4 {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x), !dbg !5
  call void @annotated(), !dbg !6
  store i32 1, ptr %a, !dbg !7
  ret void, !dbg !7
}

; All inlined, into a function of another file and from a third: seen from the innermost one that they share.
; CHECK: warning: fiber.cpp:23:3: thread-local 'x': its address, taken in line 21, is used here after 'waits' in line 22 may have moved the fiber to another thread
; CHECK: warning: header.hpp:31:7: thread-local 'y': its address, taken in line 21 of fiber.cpp, is used here after 'waits' in line 22 of fiber.cpp may
define void @execute() !dbg !22 {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x), !dbg !26
  %b = call ptr @llvm.threadlocal.address.p0(ptr @y), !dbg !26
  call void @annotated(), !dbg !27
  store i32 1, ptr %a, !dbg !28
  store i32 1, ptr %b, !dbg !29
  ret void, !dbg !25
}

; CHECK: its address, taken earlier, is used here after the switch may have moved the fiber to another thread (in 'inlined_switch', compiled without line numbers)
define void @inlined_switch() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void asm sideeffect "", "~{rbx},~{r12},~{r13},~{r14},~{r15},~{memory}"()
  store i32 1, ptr %a
  ret void
}

; CHECK: 'errno': its address, taken earlier, is used here after 'pirn::fiber::join' {{.*}}(in 'of_library'
; CHECK: 'pthread_self()': its result, taken earlier, is used here after 'pirn::fiber::join' {{.*}}(in 'of_library'
define i64 @of_library() {
  %a = call ptr @__errno_location()
  %self = call i64 @pthread_self()
  call void @_ZN4pirn8v1_build5fiber4joinEv()
  store i32 0, ptr %a
  ret i64 %self
}

; CHECK: used here after 'bare' {{.*}}(in 'convention'
define void @convention() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call preserve_nonecc void @bare()
  store i32 1, ptr %a
  ret void
}

; CHECK: used here after 'annotated' {{.*}}(in 'at_a_distance'
define void @at_a_distance(i64 %n) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  %number = ptrtoint ptr %a to i64
  %further = add i64 %n, %number
  %aligned = and i64 %further, -4
  %p = inttoptr i64 %aligned to ptr
  call void @annotated()
  store i32 1, ptr %p
  ret void
}

; CHECK: used here after 'annotated' {{.*}}(in 'returned_again'
declare ptr @same(ptr returned) nocallback
define void @returned_again() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  %p = call ptr @same(ptr %a)
  call void @annotated()
  store i32 1, ptr %p
  ret void
}

; No address: a difference, and what is not aligned of one.
; CHECK-NOT: (in 'offset'
define i64 @offset(ptr %begin) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  %number = ptrtoint ptr %a to i64
  %other = ptrtoint ptr %begin to i64
  %between = sub i64 %number, %other
  %low = and i64 %number, 63
  call void @annotated()
  %sum = add i64 %between, %low
  ret i64 %sum
}

; CHECK: 'w': its address, taken earlier, is used here after 'annotated' {{.*}}(in 'invoked'
declare ptr @_ZTW1w() nocallback
declare i32 @__gxx_personality_v0(...)
define void @invoked(i1 %which, ptr %otherwise) personality ptr @__gxx_personality_v0 {
  br i1 %which, label %ask, label %join
ask:
  %w = invoke ptr @_ZTW1w() to label %join unwind label %failed
join:
  %p = phi ptr [ %w, %ask ], [ %otherwise, %0 ]
  call void @annotated()
  store i32 1, ptr %p
  ret void
failed:
  %e = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %e
}

; CHECK: used here after the call through a pointer {{.*}}(in 'through_pointer'
define void @through_pointer(ptr %f) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void %f()
  store i32 1, ptr %a
  ret void
}

; A function of the module suspends if one that it calls does; what is computed from the address counts, and what a
; local variable has kept.
; CHECK: used here after 'twice_removed' {{.*}}(in 'derived'
; CHECK: used here after 'twice_removed' {{.*}}(in 'kept'
define internal void @removed() {
  call void @annotated()
  ret void
}
define internal void @twice_removed() {
  call void @removed()
  ret void
}
define void @derived() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  %b = getelementptr i8, ptr %a, i64 4
  call void @twice_removed()
  store i32 1, ptr %b
  ret void
}
define void @kept() {
  %slot = alloca ptr
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  store ptr %a, ptr %slot
  call void @twice_removed()
  %b = load ptr, ptr %slot
  store i32 1, ptr %b
  ret void
}

; CHECK: passed to 'keeps', which uses it after it may have moved the fiber to another thread (in 'passes_to_keeper'
define void @keeps(ptr %p) {
  call void @annotated()
  store i32 1, ptr %p
  ret void
}
define void @passes_to_keeper() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void @keeps(ptr %a)
  ret void
}

; CHECK: used here after 'annotated' {{.*}}(in 'hoisted_out_of_loop'
define void @hoisted_out_of_loop(i1 %more) {
entry:
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  br label %loop
loop:
  store i32 1, ptr %a
  call void @annotated()
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Code generation reads the thread pointer once in a block.
; CHECK: thread-local 'y': its address, computed from that of 'x', taken earlier, is used here after 'annotated' {{.*}}(in 'one_thread_pointer'
define void @one_thread_pointer() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void @use(ptr %a)
  call void @annotated()
  %b = call ptr @llvm.threadlocal.address.p0(ptr @y)
  call void @use(ptr %b)
  ret void
}

; Nothing from here on, except for the assumption about an unknown function.
; CHECK-NOT: warning
; ALL: 'unknown' {{.*}}(in 'past_unknown'
; ALL-NOT: warning
define void @past_unknown() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void @unknown()
  store i32 1, ptr %a
  ret void
}
define void @past_known(ptr %text) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void @use(ptr %text)
  call i32 (ptr, ...) @printf(ptr %text)
  call void @_ZN4pirn8v1_build8platform3nowEv()
  store i32 1, ptr %a
  ret void
}
define void @never_after(i1 %wrong) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  br i1 %wrong, label %misused, label %fine
misused:
  call void @_ZN4pirn8v1_build7misusedEv()
  unreachable
fine:
  store i32 1, ptr %a
  call void @annotated()
  ret void
}
; Each turn of the loop uses what it has asked for itself.
define void @asked_again(i1 %more) {
entry:
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  br label %loop
loop:
  %p = phi ptr [ %a, %entry ], [ %b, %loop ]
  store i32 1, ptr %p
  call void @annotated()
  %b = call ptr @llvm.threadlocal.address.p0(ptr @x)
  br i1 %more, label %loop, label %end
end:
  ret void
}
; The processor adds the thread pointer itself.
define i32 @read_in_place() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  %v = load i32, ptr %a
  call void @annotated()
  %b = call ptr @llvm.threadlocal.address.p0(ptr @y)
  store i32 %v, ptr %b
  ret i32 %v
}
define void @passes_on(ptr %p) {
  store i32 1, ptr %p
  call void @annotated()
  ret void
}
define void @passes_to_user() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @x)
  call void @passes_on(ptr %a)
  ret void
}

!llvm.module.flags = !{!0, !1}
!llvm.dbg.cu = !{!2}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = !{i32 7, !"Dwarf Version", i32 5}
!2 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !3, emissionKind: LineTablesOnly)
!3 = !DIFile(filename: "fiber.cpp", directory: "")
!4 = distinct !DISubprogram(name: "lines", file: !3, line: 10, unit: !2, type: !8, spFlags: DISPFlagDefinition)
!5 = !DILocation(line: 11, column: 3, scope: !4)
!6 = !DILocation(line: 12, column: 3, scope: !4)
!7 = !DILocation(line: 13, column: 3, scope: !4)
!8 = !DISubroutineType(types: !9)
!9 = !{}
!20 = !DIFile(filename: "header.hpp", directory: "/")
!21 = distinct !DISubprogram(name: "body", scope: !3, file: !3, line: 20, type: !8, unit: !2, spFlags: DISPFlagDefinition)
!22 = distinct !DISubprogram(name: "execute", scope: !20, file: !20, line: 186, type: !8, unit: !2, spFlags: DISPFlagDefinition)
!23 = distinct !DISubprogram(name: "waits", scope: !20, file: !20, line: 60, type: !8, unit: !2, spFlags: DISPFlagDefinition)
!24 = distinct !DISubprogram(name: "uses", scope: !20, file: !20, line: 30, type: !8, unit: !2, spFlags: DISPFlagDefinition)
!25 = distinct !DILocation(line: 187, column: 5, scope: !22)
!26 = !DILocation(line: 21, column: 3, scope: !21, inlinedAt: !25)
!27 = !DILocation(line: 61, column: 5, scope: !23, inlinedAt: !30)
!28 = !DILocation(line: 23, column: 3, scope: !21, inlinedAt: !25)
!29 = !DILocation(line: 31, column: 7, scope: !24, inlinedAt: !31)
!30 = distinct !DILocation(line: 22, column: 3, scope: !21, inlinedAt: !25)
!31 = distinct !DILocation(line: 24, column: 3, scope: !21, inlinedAt: !25)
