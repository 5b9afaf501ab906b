; A path may be longer than a file name: its end names the files that are written for the module.
; RUN: deep=%t.d/$(printf 'x%.0s' {1..120})/$(printf 'y%.0s' {1..120}); mkdir -p $deep; cp %s $deep/end.ll; clang -O2 -fplugin=%plugin -fpass-plugin=%plugin -mllvm -pirn-report=%t.reports -mllvm -pirn-stack-summaries=%t.stacks -c $deep/end.ll -o %t.o
; RUN: ls %t.reports %t.stacks | FileCheck %s

target triple = "x86_64-pc-linux-gnu"

; CHECK: y_end.ll.json
; CHECK: y_end.ll.stack
declare preserve_nonecc void @yield()

define dso_local void @switches() {
  call preserve_nonecc void @yield()
  ret void
}
