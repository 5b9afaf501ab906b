; A function without a bound is an error that says why, by name.
; RUN: for each in recursive cycle grows outside by_pointer by_thunk pushes in_capitals behind_prefix intel intel_for_a_while swaps by_operand weak weak_alias jumps unknown; do sed "s/@QUESTION/@$each/" %s > %t.ll; ! opt -load-pass-plugin=%plugin -passes=pirn-stack-bounds -S %t.ll -o /dev/null 2>> %t || exit 1; done
; RUN: FileCheck %s < %t

target triple = "x86_64-pc-linux-gnu"

declare i64 @pirn_spawn_bounded_needs_the_compiler_plugin(ptr)
declare void @somewhere()

define dso_local void @ask() {
  %bytes = call i64 @pirn_spawn_bounded_needs_the_compiler_plugin(ptr @QUESTION)
  ret void
}
@unknown = external global i8

; CHECK: cannot have a bounded stack: recursive: it is recursive: recursive > recursive; on the path recursive (16) > recursive (16)
; CHECK: cannot have a bounded stack: ping: it is recursive: ping > pong > ping; on the path cycle (16) > ping (16) > pong (16) > ping (16)
; CHECK: cannot have a bounded stack: grows: it allocates an amount of stack that is known only at run time (alloca)
; CHECK: cannot have a bounded stack: somewhere: its code is not in this file, and neither a summary nor an assumption says what it uses; on the path outside (16) > somewhere (0)
; CHECK: cannot have a bounded stack: by_pointer: it calls through a pointer, and nothing says what that may point to
; CHECK: cannot have a bounded stack: by_thunk: it calls through a pointer, and nothing says what that may point to
; CHECK: cannot have a bounded stack: pushes: it has inline asm that uses the stack and does not say how much
; CHECK: cannot have a bounded stack: in_capitals: it has inline asm that uses the stack
; CHECK: cannot have a bounded stack: behind_prefix: it has inline asm that uses the stack
; CHECK: cannot have a bounded stack: intel: it has inline asm that uses the stack
; CHECK: cannot have a bounded stack: intel_for_a_while: it has inline asm that uses the stack
; CHECK: cannot have a bounded stack: swaps: it has inline asm that uses the stack
; CHECK: cannot have a bounded stack: by_operand: it has inline asm that uses the stack
; CHECK: cannot have a bounded stack: replaceable: other code may replace it
; CHECK: cannot have a bounded stack: other_name: its code is not in this file
; CHECK: cannot have a bounded stack: table_driven: other code may replace it
; CHECK: no stack bound: the function that will run on the stack is not known here

define dso_local void @recursive() {
  call void @recursive()
  call void asm sideeffect "", ""()
  ret void
}

define dso_local void @cycle() {
  call void @ping()
  call void asm sideeffect "", ""()
  ret void
}
define dso_local void @ping() {
  call void @pong()
  call void asm sideeffect "", ""()
  ret void
}
define dso_local void @pong() {
  call void @ping()
  call void asm sideeffect "", ""()
  ret void
}

define dso_local void @grows(i64 %n) {
  %room = alloca i8, i64 %n
  store volatile i8 0, ptr %room
  ret void
}

define dso_local void @outside() {
  call void @somewhere()
  call void asm sideeffect "", ""()
  ret void
}

define dso_local void @by_pointer(ptr %f) {
  call void %f()
  ret void
}

define dso_local void @pushes() {
  call void asm sideeffect "pushq %rax; popq %rax", ""()
  ret void
}

define dso_local void @by_thunk(ptr %f) "target-features"="+lvi-cfi" {
  call void %f()
  ret void
}

define dso_local void @in_capitals() {
  call void asm sideeffect "PUSHQ %RAX\0A\09POPQ %RAX", ""()
  ret void
}
define dso_local void @behind_prefix() {
  call void asm sideeffect "notrack callq *${0:q}", "r"(ptr @somewhere)
  ret void
}
define dso_local void @intel() {
  call void asm sideeffect inteldialect "sub rsp, 4096\0A\09add rsp, 4096", ""()
  ret void
}
define dso_local void @intel_for_a_while() {
  call void asm sideeffect ".intel_syntax noprefix; sub rsp, 64; add rsp, 64; .att_syntax", ""()
  ret void
}
define dso_local void @swaps() {
  call void asm sideeffect "xchgq %rsp, %rax", "~{rax}"()
  ret void
}
define dso_local void @by_operand(i64 %sp) {
  %new = call i64 asm sideeffect "subq $$64, $0; addq $$64, $0", "={rsp},0"(i64 %sp)
  ret void
}

define dso_local void @weak() {
  call void @replaceable()
  call void asm sideeffect "", ""()
  ret void
}
define weak dso_local void @replaceable() {
  ret void
}

define dso_local void @weak_alias() {
  call void @other_name()
  call void asm sideeffect "", ""()
  ret void
}
@other_name = weak dso_local alias void (), ptr @small
define dso_local void @small() {
  ret void
}

; An own copy of it would jump into the other one.
define dso_local void @jumps(i64 %at) {
  call void @table_driven(i64 %at)
  call void asm sideeffect "", ""()
  ret void
}
@labels = internal constant [2 x ptr] [ptr blockaddress(@table_driven, %one), ptr blockaddress(@table_driven, %two)]
define linkonce_odr void @table_driven(i64 %at) noinline {
  %place = getelementptr [2 x ptr], ptr @labels, i64 0, i64 %at
  %label = load ptr, ptr %place
  indirectbr ptr %label, [label %one, label %two]
one:
  call void asm sideeffect "# one", ""()
  ret void
two:
  ret void
}
