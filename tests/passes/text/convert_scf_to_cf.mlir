// RUN: convert-scf-to-cf

// CHECK-LABEL: func.func @for
// CHECK: cf.br ^bb1(%c0, %x : index, f32)
// CHECK-NEXT: ^bb1(%i: index, %a: f32):
// CHECK-NEXT: [[MORE:%\w+]] = arith.cmpi slt, %i, %n : index
// CHECK-NEXT: cf.cond_br [[MORE]], ^bb2, ^bb3
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: %b = arith.addf %a, %x : f32
// CHECK-NEXT: [[NEXT:%\w+]] = arith.addi %i, %c2 : index
// CHECK-NEXT: cf.br ^bb1([[NEXT]], %b : index, f32)
// CHECK-NEXT: ^bb3:
// CHECK-NEXT: return %a : f32
func.func @for(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %c0 to %n step %c2 iter_args(%a = %x) -> (f32) {
    %b = arith.addf %a, %x : f32
    scf.yield %b : f32
  }
  return %r : f32
}

// -----

// CHECK-LABEL: func.func @if
// CHECK-NEXT: cf.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: %b = arith.negf %x : f32
// CHECK-NEXT: cf.br ^bb3(%b : f32)
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: cf.br ^bb3(%x : f32)
// CHECK-NEXT: ^bb3(%r: f32):
// CHECK-NEXT: return %r : f32
func.func @if(%c: i1, %x: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    %b = arith.negf %x : f32
    scf.yield %b : f32
  } else {
    scf.yield %x : f32
  }
  return %r : f32
}

// -----

// CHECK-LABEL: func.func @if_without_else
// CHECK: cf.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: memref.store
// CHECK-NEXT: cf.br ^bb2
// CHECK-NEXT: ^bb2:
// CHECK-NEXT: return
func.func @if_without_else(%c: i1, %m: memref<4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  scf.if %c {
    memref.store %x, %m[%c0] : memref<4xf32>
  }
  return
}

// -----

// A branch in a loop joins before the loop goes on.
// CHECK-LABEL: func.func @nest
// CHECK: ^bb1(%i: index, %a: f32):
// CHECK: cf.cond_br {{%\w+}}, ^bb2, ^bb6
// CHECK: cf.cond_br %c, ^bb3, ^bb4
// CHECK: cf.br ^bb5(%d : f32)
// CHECK: cf.br ^bb5(%a : f32)
// CHECK: ^bb5(%b: f32):
// CHECK: cf.br ^bb1({{%\w+}}, %b : index, f32)
// CHECK: ^bb6:
// CHECK-NEXT: return %a : f32
func.func @nest(%n: index, %c: i1, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %b = scf.if %c -> (f32) {
      %d = arith.addf %a, %x : f32
      scf.yield %d : f32
    } else {
      scf.yield %a : f32
    }
    scf.yield %b : f32
  }
  return %r : f32
}

// -----

// CHECK-LABEL: func.func @while
// CHECK: cf.br ^bb1(%x : i32)
// CHECK-NEXT: ^bb1(%a: i32):
// CHECK-NEXT: arith.cmpi slt, %a, %c100 : i32
// CHECK-NEXT: cf.cond_br {{%\w+}}, ^bb2(%a : i32), ^bb3(%a : i32)
// CHECK: cf.br ^bb1(%d : i32)
// CHECK-NEXT: ^bb3(%r: i32):
// CHECK-NEXT: return %r : i32
func.func @while(%x: i32) -> i32 {
  %c100 = arith.constant 100 : i32
  %r = scf.while (%a = %x) : (i32) -> i32 {
    %c = arith.cmpi slt, %a, %c100 : i32
    scf.condition(%c) %a : i32
  } do {
  ^bb0(%b: i32):
    %d = arith.addi %b, %b : i32
    scf.yield %d : i32
  }
  return %r : i32
}
