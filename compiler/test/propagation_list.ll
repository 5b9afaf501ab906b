; Listed functions have the convention under another name, wherever they are defined.
; RUN: printf '# what switches\napp::*\n!app::pure*  # but this\n_Z8by_namesi\nint app::number[3]*\nplain_?\noperator*(app::number, app::number)\ngrid::table::operator[]\ngrid::row::operator[](int)\n' > %t.list
; RUN: opt -load=%plugin -load-pass-plugin=%plugin -passes=pirn-list -pirn-list=%t.list -S %s | FileCheck %s
; Under AddressSanitizer nothing has it.
; RUN: sed 's/@main()/@main() sanitize_address/' %s | opt -load=%plugin -load-pass-plugin=%plugin -passes=pirn-list -pirn-list=%t.list -S | FileCheck --check-prefix=ASAN --implicit-check-not=.preserve_none %s
; ASAN: define void @_ZN3app4usedEv()
target triple = "x86_64-unknown-linux-gnu"

$_ZN3app6inlineEv = comdat any
$_ZN3app5groupC5Ev = comdat any

; CHECK-DAG: $_ZN3app6inlineEv.preserve_none = comdat any
; CHECK-DAG: $_ZN3app5groupC5Ev = comdat any
; CHECK-DAG: $_ZN3app7virtualEv.ordinary = comdat any

; The table of virtual functions leads to a function with the ordinary convention.
; CHECK-DAG: @table = constant [2 x ptr] [ptr @_ZN3app7virtualEv.ordinary, ptr @_ZN3appL5localEv.ordinary]
@table = constant [2 x ptr] [ptr @_ZN3app7virtualEv, ptr @_ZN3appL5localEv]
; CHECK-DAG: @llvm.used = {{.*}}[ptr @_ZN3app4usedEv.preserve_none]
@llvm.used = appending global [1 x ptr] [ptr @_ZN3app4usedEv], section "llvm.metadata"
; CHECK-DAG: @_ZN3app5groupC1Ev.preserve_none = alias void (), ptr @_ZN3app5groupC2Ev.preserve_none
@_ZN3app5groupC1Ev = alias void (), ptr @_ZN3app5groupC2Ev

; CHECK-DAG: declare preserve_nonecc void @_ZN3app3farEi.preserve_none(i32)
declare void @_ZN3app3farEi(i32)
; CHECK-DAG: declare void @_ZN3app4pureEv()
declare void @_ZN3app4pureEv()
; CHECK-DAG: declare preserve_nonecc void @_Z8by_namesi.preserve_none(i32)
declare void @_Z8by_namesi(i32)
; CHECK-DAG: declare void @_Z8by_namesl(i64)
declare void @_Z8by_namesl(i64)
; CHECK-DAG: declare preserve_nonecc void @plain_1.preserve_none()
declare void @plain_1()
; CHECK-DAG: declare void @plain_12()
declare void @plain_12()
; CHECK-DAG: declare preserve_nonecc void @_ZmlN3app6numberES0_.preserve_none(i64, i64)
declare void @_ZmlN3app6numberES0_(i64, i64)
; CHECK-DAG: declare preserve_nonecc void @_ZN4grid5tableixEi.preserve_none(ptr, i32)
declare void @_ZN4grid5tableixEi(ptr, i32)
; CHECK-DAG: declare preserve_nonecc void @_ZN4grid3rowixEi.preserve_none(ptr, i32)
declare void @_ZN4grid3rowixEi(ptr, i32)
; CHECK-DAG: declare void @_ZN4grid3rowixEl(ptr, i64)
declare void @_ZN4grid3rowixEl(ptr, i64)
; Already so by its attribute: all files say it.
; CHECK-DAG: declare preserve_nonecc void @_ZN3app6markedEv()
declare preserve_nonecc void @_ZN3app6markedEv()

; CHECK-DAG: define linkonce_odr preserve_nonecc void @_ZN3app6inlineEv.preserve_none() comdat
define linkonce_odr void @_ZN3app6inlineEv() comdat {
  ret void
}
; CHECK-DAG: define weak_odr preserve_nonecc void @_ZN3app5groupC2Ev.preserve_none() comdat($_ZN3app5groupC5Ev)
define weak_odr void @_ZN3app5groupC2Ev() comdat($_ZN3app5groupC5Ev) {
  ret void
}
; CHECK-DAG: define preserve_nonecc signext i8 @_ZN3app7virtualEv.preserve_none(i8 signext %this)
define signext i8 @_ZN3app7virtualEv(i8 signext %this) {
  ret i8 1
}
; CHECK-DAG: define internal preserve_nonecc void @_ZN3appL5localEv()
define internal void @_ZN3appL5localEv() {
  ret void
}
define void @_ZN3app4usedEv() {
  ret void
}
define i32 @main() {
; CHECK-DAG: call preserve_nonecc void @_ZN3app5groupC1Ev.preserve_none()
; CHECK-DAG: call preserve_nonecc void @_ZN3app3farEi.preserve_none(i32 1)
; CHECK-DAG: call preserve_nonecc signext i8 @_ZN3app7virtualEv.preserve_none(i8 signext 1)
  call void @_ZN3app5groupC1Ev()
  call void @_ZN3app3farEi(i32 1)
  call signext i8 @_ZN3app7virtualEv(i8 signext 1)
  call void @_ZN3app4pureEv()
  call void @_ZN3app6inlineEv()
  ret i32 0
}
; CHECK: define linkonce_odr hidden signext i8 @_ZN3app7virtualEv.ordinary(i8 signext [[THIS:%[0-9a-z]+]]) comdat
; CHECK-NEXT: [[RESULT:%[0-9]+]] = call preserve_nonecc signext i8 @_ZN3app7virtualEv.preserve_none(i8 signext [[THIS]])
; CHECK-NEXT: ret i8 [[RESULT]]
; CHECK: define internal void @_ZN3appL5localEv.ordinary()
; CHECK-NEXT: call preserve_nonecc void @_ZN3appL5localEv()
; CHECK-NEXT: ret void
