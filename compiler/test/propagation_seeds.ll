; Switches are: a function with the convention, defined here or not, a call through a pointer to one, the switch's asm.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-propagate -S %s | FileCheck %s
; RUN: opt -load=%plugin -load-pass-plugin=%plugin -passes=pirn-propagate -pirn-propagate=false -S %s | FileCheck --check-prefix=OFF %s
target triple = "x86_64-unknown-linux-gnu"

; CHECK: define internal preserve_nonecc void @by_pointer(
; OFF: define internal void @by_pointer(
define internal void @by_pointer(ptr %which) {
  call preserve_nonecc void %which()
  ret void
}
; CHECK: define internal preserve_nonecc void @by_asm(
define internal void @by_asm() {
  call void asm sideeffect "", "~{rbx},~{r12},~{r13},~{r14},~{r15},~{memory},~{dirflag},~{fpsr},~{flags}"()
  ret void
}
; One register is preserved, so this is no switch.
; CHECK: define internal void @by_other_asm(
define internal void @by_other_asm() {
  call void asm sideeffect "", "~{rbx},~{r12},~{r13},~{r14},~{memory},~{dirflag},~{fpsr},~{flags}"()
  ret void
}
define preserve_nonecc void @here() {
  ret void
}
; CHECK: define internal preserve_nonecc void @by_attribute(
define internal void @by_attribute() {
  call preserve_nonecc void @here()
  ret void
}
