; Four or more functions that pass a switch on and keep several values meanwhile keep their convention, with the function
; that switches. Shorter chains and chains that keep few values have the one that preserves nothing. A function that has
; other callers too has both.
; RUN: opt -load-pass-plugin=%plugin -passes=pirn-propagate -pass-remarks-missed=pirn -S %s 2> %t.remarks | FileCheck %s
; RUN: FileCheck --check-prefix=REMARK %s < %t.remarks
target triple = "x86_64-unknown-linux-gnu"

declare preserve_nonecc void @yield()

; REMARK-DAG: 'long1' still preserves registers, though it may switch: it is part of a long chain of functions that pass a switch on and keep several values meanwhile
; REMARK-DAG: 'long5' still preserves registers, though it may switch: it is part of a long chain of functions that pass a switch on and keep several values meanwhile
; REMARK-DAG: 'shared3' still preserves registers, though it may switch: it is part of a long chain of functions that pass a switch on and keep several values meanwhile

; CHECK: define internal i64 @long1(
define internal i64 @long1(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  call preserve_nonecc void @yield()
  %r = add i64 0, 1
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal i64 @long2(
define internal i64 @long2(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @long1(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal i64 @long3(
define internal i64 @long3(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @long2(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal i64 @long4(
define internal i64 @long4(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @long3(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal i64 @long5(
define internal i64 @long5(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @long4(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @four1(
define internal i64 @four1(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  call preserve_nonecc void @yield()
  %r = add i64 0, 1
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @four2(
define internal i64 @four2(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @four1(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @four3(
define internal i64 @four3(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @four2(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @four4(
define internal i64 @four4(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @four3(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @few1(
define internal i64 @few1(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  call preserve_nonecc void @yield()
  %r = add i64 0, 1
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  ret i64 %s1
}

; CHECK: define internal preserve_nonecc i64 @few2(
define internal i64 @few2(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %r = call i64 @few1(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  ret i64 %s1
}

; CHECK: define internal preserve_nonecc i64 @few3(
define internal i64 @few3(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %r = call i64 @few2(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  ret i64 %s1
}

; CHECK: define internal preserve_nonecc i64 @few4(
define internal i64 @few4(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %r = call i64 @few3(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  ret i64 %s1
}

; CHECK: define internal preserve_nonecc i64 @few5(
define internal i64 @few5(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %r = call i64 @few4(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  ret i64 %s1
}

; CHECK: define internal preserve_nonecc i64 @few6(
define internal i64 @few6(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %r = call i64 @few5(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  ret i64 %s1
}

; One of these switches twice in a call.
; CHECK: define internal preserve_nonecc i64 @twice1(
define internal i64 @twice1(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  call preserve_nonecc void @yield()
  %r = add i64 0, 1
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @twice2(
define internal i64 @twice2(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @twice1(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @twice3(
define internal i64 @twice3(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @twice2(i64 1)
  %r2 = call i64 @twice2(i64 2)
  %r3 = xor i64 %r, %r2
  %s0 = xor i64 %r3, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @twice4(
define internal i64 @twice4(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @twice3(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @twice5(
define internal i64 @twice5(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @twice4(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; Two functions of this chain have another caller as well.
; CHECK: define internal preserve_nonecc i64 @shared1(
define internal i64 @shared1(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  call preserve_nonecc void @yield()
  %r = add i64 0, 1
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @shared2(
; CHECK: call preserve_nonecc i64 @shared1(
define internal i64 @shared2(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @shared1(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal i64 @shared3(
; CHECK: call i64 @shared2.preserving(
define internal i64 @shared3(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @shared2(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal i64 @shared4(
define internal i64 @shared4(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @shared3(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal i64 @shared5(
define internal i64 @shared5(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %k1 = mul i64 %x, 4
  %k2 = mul i64 %x, 5
  %r = call i64 @shared4(i64 1)
  %s0 = xor i64 %r, %k0
  %s1 = xor i64 %s0, %k1
  %s2 = xor i64 %s1, %k2
  ret i64 %s2
}

; CHECK: define internal preserve_nonecc i64 @short3(
; CHECK: call preserve_nonecc i64 @shared2(
define internal i64 @short3(i64 %x) noinline {
  %k0 = mul i64 %x, 3
  %r = call i64 @shared2(i64 1)
  %s0 = xor i64 %r, %k0
  ret i64 %s0
}

; CHECK: define i64 @main(
define i64 @main() {
  %a0 = call i64 @long5(i64 0)
  %a1 = call i64 @four4(i64 1)
  %a2 = call i64 @few6(i64 2)
  %a3 = call i64 @twice5(i64 3)
  %a4 = call i64 @shared5(i64 4)
  %a5 = call i64 @short3(i64 5)
  %b1 = add i64 %a0, %a1
  %b2 = add i64 %b1, %a2
  %b3 = add i64 %b2, %a3
  %b4 = add i64 %b3, %a4
  %b5 = add i64 %b4, %a5
  ret i64 %b5
}

; CHECK: define internal i64 @shared2.preserving(
; CHECK: call i64 @shared1.preserving(
; CHECK: define internal i64 @shared1.preserving(
; CHECK: call preserve_nonecc void @yield(
