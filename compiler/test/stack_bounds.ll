; The deepest path counts: frames, return addresses, what a leaf keeps below its sp, tail calls, what is said of others.
; RUN: printf 'bytes 100 outside\nnoreturn abort\ncalls by_pointer : leaf, shallow\n' > %t
; RUN: export PIRN_STACK_ASSUMPTIONS=%t PIRN_STACK_REPORT=%t.json; rm -f %t.json; opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -pass-remarks=pirn -S %s -o %t.ll 2> %t.remarks
; RUN: FileCheck %s < %t.ll
; RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
; RUN: FileCheck %s --check-prefix=JSON < %t.json
; RUN: llc -filetype=obj -stack-size-section -relocation-model=pic %s -o %t.o; llvm-readelf --stack-sizes %t.o | FileCheck %s --check-prefix=EMITTED

target triple = "x86_64-pc-linux-gnu"

declare i64 @pirn_spawn_bounded_needs_the_compiler_plugin(ptr)
declare void @outside(ptr)
declare void @abort()

define dso_local i64 @ask() {
; CHECK-LABEL: @ask(
; CHECK-NEXT: ret i64 296
  %bytes = call i64 @pirn_spawn_bounded_needs_the_compiler_plugin(ptr @entry)
  ret i64 %bytes
}
; REMARK: at most 296 bytes of stack for entry, on the path entry (16) > middle (176) > leaf (104)

; EMITTED: 8 entry
define dso_local void @entry(i64 %by, i64 %pending) {
  call void @shallow()
  call void @middle()
  ret void
}
; JSON-DAG: {"bound":296,"entry":true,{{.*}}"frame":16,"function":"entry"

; EMITTED: 168 middle
define dso_local void @middle() {
  %room = alloca [160 x i8]
  call void @shallow2(ptr %room)
  %got = call i32 @leaf(i32 1)
  ret void
}

; It has no frame by what is emitted: all is in the red zone.
; EMITTED: 0 leaf
define dso_local i32 @leaf(i32 %at) {
  %room = alloca [24 x i32]
  %place = getelementptr [24 x i32], ptr %room, i32 0, i32 %at
  store volatile i32 1, ptr %place
  %got = load volatile i32, ptr %room
  ret i32 %got
}
; JSON-DAG: {"bound":104,"entry":false,{{.*}}"frame":104,"function":"leaf"

; A tail call takes the place of its caller.
define dso_local void @shallow() {
  tail call void @shallow2(ptr null)
  ret void
}
; JSON-DAG: {"bound":100,"entry":false,{{.*}}"frame":8,"function":"shallow"

define dso_local void @shallow2(ptr %p) {
  tail call void @outside(ptr %p)
  ret void
}

define dso_local void @ends(ptr %p) {
  call void @abort()
  unreachable
}
; JSON-DAG: {"bound":16,"entry":false,{{.*}}"frame":16,"function":"ends"

; The frame is aligned at run time, which costs up to as much again.
define dso_local void @aligned() {
  %room = alloca [64 x i8], align 64
  call void @outside(ptr %room)
  ret void
}
; JSON-DAG: {"bound":292,"entry":false,{{.*}}"frame":192,"function":"aligned"

; Arguments that are pushed for one call are part of the frame.
declare void @many(i64, i64, i64, i64, i64, i64, i64, i64)
define dso_local void @pushes() {
  call void @many(i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8)
  ret void
}
; JSON-DAG: {"entry":false,{{.*}}"frame":48,"function":"pushes"

; Somebody says where its pointers go to.
define dso_local void @by_pointer(ptr %f) {
  call void %f()
  ret void
}
; JSON-DAG: {"bound":120,"entry":false,{{.*}}"frame":16,"function":"by_pointer"

; So does the optimizer.
define dso_local void @by_known_pointer(ptr %f) {
  call void %f(), !callees !0
  ret void
}
; JSON-DAG: {"bound":116,"entry":false,{{.*}}"frame":16,"function":"by_known_pointer"
!0 = !{ptr @shallow}

; The shortest way to load a constant, and the only one to read the flags, is by the stack.
define dso_local i32 @brief() minsize optsize noredzone {
  ret i32 9
}
; JSON-DAG: {"bound":16,"entry":false,{{.*}}"function":"brief"
declare i64 @llvm.x86.flags.read.u64()
define dso_local i64 @flags() {
  %flags = call i64 @llvm.x86.flags.read.u64()
  ret i64 %flags
}
; JSON-DAG: {"bound":{{16|24}},"entry":false,{{.*}}"function":"flags"

; A switch uses nothing of the stack that it leaves.
define dso_local void @switches(ptr %from, ptr %to) {
  call void asm sideeffect "leaq 1f(%rip), %rax\0A\09movq %rsp, 8(%rdx)\0A\09movq 8(%rcx), %rsp\0A\09movq 16(%rcx), %rbp\0A\09jmpq *(%rcx)\0A\09nop\0A1:\0A\09", "{rdx},{rcx},~{rax},~{memory}"(ptr %from, ptr %to)
  ret void
}
; JSON-DAG: {"bound":8,"entry":false,{{.*}}"function":"switches"

; Inline asm may say what it uses.
define dso_local void @says_so() {
  call void asm sideeffect "# pirn-stack: 24\0A\09callq elsewhere", ""()
  ret void
}
; JSON-DAG: {"bound":{{32|40}},"entry":false,{{.*}}"function":"says_so"

; And so may functions.
@said = private constant [15 x i8] c"pirn-stack: 64\00"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @annotated, ptr @said, ptr @said, i32 1, ptr null }], section "llvm.metadata"
define dso_local void @annotated(ptr %f) {
  call void %f()
  ret void
}
; JSON-DAG: {"bound":64,"entry":false,{{.*}}"function":"annotated"
