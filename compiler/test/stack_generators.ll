; A generator with frame<> gets a stack in the frame of the function that makes it: what its body needs at most, and what
; it asks for beside that.
; RUN: printf 'bytes 100 outside\n' > %t.facts
; RUN: export PIRN_STACK_ASSUMPTIONS=%t.facts PIRN_STACK_REPORT=%t.json; rm -f %t.json; opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -pass-remarks=pirn -S %s -o %t.ll 2> %t.remarks
; RUN: FileCheck %s < %t.ll
; RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
; RUN: FileCheck %s --check-prefix=JSON < %t.json
; RUN: export PIRN_STACK_ASSUMPTIONS=%t.facts; for each in foreign recursive delegating unknown; do sed "s/; $each: //" %s > %t.ll; ! opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -S %t.ll -o /dev/null 2>> %t.errors || exit 1; done
; RUN: FileCheck %s --check-prefix=ERROR < %t.errors

target triple = "x86_64-pc-linux-gnu"

declare ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr, i64, ptr) nounwind
declare void @outside(ptr)
declare void @_Unwind_Resume(ptr)
declare void @uses(ptr)

; The bound is 16 + 100 bytes, and with the 300 that are asked for a multiple of 16: 416. The header has 16 more.
define dso_local void @makes() {
; CHECK-LABEL: define dso_local void @makes(
; CHECK-NEXT: [[STACK:%[0-9]+]] = alloca [432 x i8], align 16
; CHECK-NEXT: store i64 0, ptr [[STACK]]
; CHECK-NEXT: %object = alloca [2 x ptr]
; CHECK-NEXT: [[SIZE:%[0-9]+]] = getelementptr inbounds i8, ptr [[STACK]], i64 8
; CHECK-NEXT: store i64 416, ptr [[SIZE]]
; CHECK-NEXT: call void @uses(ptr [[STACK]])
  %object = alloca [2 x ptr]
  %stack = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @entry, i64 300, ptr %object)
  call void @uses(ptr %stack)
  ret void
}
; REMARK: at most 116 bytes of stack for entry, on the path entry (16) > outside (100)

define dso_local void @entry() {
  call void @outside(ptr null)
  call void asm sideeffect "", ""()
  ret void
}

; The inner generator's stack is part of the frame of the body that makes it, and so of the outer one's stack: 432 and
; 16 for its object, 8 for the return address, and the call of `uses` below that, of which nothing is known.
define dso_local void @nests() {
; CHECK-LABEL: define dso_local void @nests(
; CHECK-NEXT: alloca [784 x i8], align 16
  %object = alloca ptr
  %stack = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @outer, i64 200, ptr %object)
  ret void
}
; CHECK-LABEL: define dso_local void @outer(
; CHECK-NEXT: alloca [432 x i8], align 16
define dso_local void @outer() {
  %object = alloca [2 x ptr]
  %stack = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @entry, i64 300, ptr %object)
  call void @outside(ptr %stack)
  ret void
}
; The frame that the inner one's stack makes larger is what others count.
; JSON: {"bound":{{5[0-9][0-9]}},"entry":false,{{.*}}"frame":{{4[0-9][0-9]}},"function":"outer"

; The unwinder counts as 6144 bytes here.
define dso_local void @unwound() {
; CHECK-LABEL: define dso_local void @unwound(
; CHECK-NEXT: alloca [6176 x i8], align 16
  %object = alloca ptr
  %stack = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @resumes, i64 0, ptr %object)
  ret void
}
define dso_local void @resumes() {
  call void @_Unwind_Resume(ptr null)
  unreachable
}

define dso_local void @refused(ptr %elsewhere) {
  %object = alloca ptr
; foreign:   %foreign = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @entry, i64 0, ptr %elsewhere)
; recursive:   %recursive = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @calls_itself, i64 0, ptr %object)
; delegating:   %holding = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @makes_itself, i64 0, ptr %object)
; unknown:   %unknown = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr %elsewhere, i64 0, ptr %object)
  ret void
}
; ERROR: a generator with frame<> cannot have a stack: it is not a variable of the function that makes it
; ERROR: a generator with frame<> cannot have a stack: calls_itself: it is recursive: calls_itself > calls_itself
; ERROR: a generator with frame<> cannot have a stack: its body makes a generator whose body makes such a generator again
; ERROR: a generator with frame<> cannot have a stack: its body is not known here
define dso_local void @calls_itself() {
  call void @calls_itself()
  call void asm sideeffect "", ""()
  ret void
}
define dso_local void @makes_itself() {
; delegating:   %object = alloca ptr
; delegating:   %stack = call ptr @pirn_generator_frame_needs_the_compiler_plugin(ptr @makes_itself, i64 0, ptr %object)
  ret void
}
