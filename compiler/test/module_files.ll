; The files that are written for a module are named by its path, which may be longer than a file name may be.
; RUN: deep=%t.d/$(printf 'x%.0s' {1..120})/$(printf 'y%.0s' {1..120}); mkdir -p $deep; cp %s $deep/end.ll; clang -O2 -fplugin=%plugin -fpass-plugin=%plugin -mllvm -pirn-report=%t.reports -mllvm -pirn-stack-summaries=%t.stacks -c $deep/end.ll -o %t.o
; RUN: mkdir -p %t.d/a; cp %s %t.d/a/b.ll; cp %s %t.d/a_b.ll; cp %s "%t.d/a b.ll"
; RUN: clang -O2 -fplugin=%plugin -fpass-plugin=%plugin -mllvm -pirn-stack-summaries=%t.stacks -c "%t.d/a/b.ll" -o %t.o
; RUN: clang -O2 -fplugin=%plugin -fpass-plugin=%plugin -mllvm -pirn-stack-summaries=%t.stacks -c "%t.d/a_b.ll" -o %t.o
; RUN: clang -O2 -fplugin=%plugin -fpass-plugin=%plugin -mllvm -pirn-stack-summaries=%t.stacks -c "%t.d/a b.ll" -o %t.o
; RUN: ls %t.reports %t.stacks | FileCheck %s

target triple = "x86_64-pc-linux-gnu"

; CHECK: y+end.ll.json
; CHECK-DAG: y+end.ll.stack
; CHECK-DAG: a+b.ll.stack
; CHECK-DAG: a_b.ll.stack
; CHECK-DAG: a%20b.ll.stack
declare preserve_nonecc void @yield()

define dso_local void @switches() {
  call preserve_nonecc void @yield()
  ret void
}
