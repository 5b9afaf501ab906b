; A listed function that cannot have the convention is an error: other files count on it.
; RUN: for name in variable two_names other last called; do printf "app::$name\n" > %t.list; ! opt -load=%plugin -load-pass-plugin=%plugin -passes=pirn-list -pirn-list=%t.list -S %s 2>> %t.errors || exit 1; done
; RUN: FileCheck %s < %t.errors
; RUN: ! opt -load=%plugin -load-pass-plugin=%plugin -passes=pirn-list -pirn-list=%t.none -S %s 2> %t.errors
; RUN: FileCheck --check-prefix=NONE %s < %t.errors
; NONE: pirn: cannot read the list {{.*}}: No such file or directory
; RUN: printf 'good\n[z\n' > %t.broken; ! opt -load=%plugin -load-pass-plugin=%plugin -passes=pirn-list -pirn-list=%t.broken -S %s 2> %t.errors
; RUN: FileCheck --check-prefix=BROKEN %s < %t.errors
; BROKEN: pirn: {{.*}}broken:2: invalid glob pattern
target triple = "x86_64-unknown-linux-gnu"

; CHECK-DAG: 'app::variable(int, ...)' is listed and cannot have the convention: it takes a variable number of arguments
declare void @_ZN3app8variableEiz(i32, ...)

; CHECK-DAG: 'app::two_names()' is listed and cannot have the convention: its alias 'second' is not listed
@second = alias void (), ptr @_ZN3app9two_namesEv
define void @_ZN3app9two_namesEv() {
  ret void
}
; CHECK-DAG: 'app::other()' is listed and cannot have the convention: 'first', of which it is an alias, is not listed
@_ZN3app5otherEv = alias void (), ptr @first
define void @first() {
  ret void
}
; CHECK-DAG: 'app::last()' is listed and cannot have the convention: a call in 'calls_last' must be a tail call (musttail)
declare void @_ZN3app4lastEv()
define void @calls_last() {
  musttail call void @_ZN3app4lastEv()
  ret void
}
; CHECK-DAG: 'app::called()' is listed and cannot have the convention: 'calls_by_base' calls it, but cannot: its frame has a variable size
declare void @_ZN3app6calledEv()
define void @calls_by_base(i64 %n) {
  %aligned = alloca [64 x i8], align 64
  %sized = alloca i8, i64 %n
  call void @_ZN3app6calledEv()
  ret void
}
