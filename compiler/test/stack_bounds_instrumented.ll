; Code that the compiler inserts at the end of its pipeline counts.
; RUN: export PIRN_STACK_REPORT=%t.json; rm -f %t.json; clang -x ir -O2 -fpass-plugin=%plugin -fsanitize-coverage=trace-pc-guard -c %s -o %t.o
; RUN: FileCheck %s < %t.json

target triple = "x86_64-pc-linux-gnu"

; CHECK: "function":"covered",{{.*}}"refused":"its code is not in this file
; CHECK-SAME: "symbol":"covered"
define dso_local void @covered() {
  ret void
}
