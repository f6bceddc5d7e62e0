// RUN: expand-small-floats

// A code is shifted into place and its exponent re-biased; what is subnormal is a multiple of the least step.
// CHECK-LABEL: func.func @widen
// CHECK: [[CODE:%\w+]] = arith.bitcast %x : f8E4M3FN to i8
// CHECK-NEXT: arith.extui [[CODE]] : i8 to i32
// CHECK: arith.constant 1006632960 : i32
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK: arith.constant 2143289344 : i32
// CHECK-NOT: arith.extf
// CHECK: [[Y:%\w+]] = arith.bitcast {{.*}} : i32 to f32
// CHECK-NEXT: return [[Y]]
func.func @widen(%x: f8E4M3FN) -> f32 {
  %y = arith.extf %x : f8E4M3FN to f32
  return %y : f32
}

// f64 rounds in 64-bit integers, not by way of f32.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.bitcast %x : vector<4xf64> to vector<4xi64>
// CHECK-NOT: f32
// CHECK: arith.trunci {{.*}} : vector<4xi64> to vector<4xi8>
// CHECK-NEXT: arith.bitcast {{.*}} : vector<4xi8> to vector<4xf8E5M2>
func.func @narrow(%x: vector<4xf64>) -> vector<4xf8E5M2> {
  %y = arith.truncf %x : vector<4xf64> to vector<4xf8E5M2>
  return %y : vector<4xf8E5M2>
}

// f16 holds no tie that f32 doesn't: it goes by f32.
// CHECK-LABEL: func.func @from_half
// CHECK: arith.extf %x : f16 to f32
// CHECK-NOT: arith.truncf
// CHECK: arith.trunci {{.*}} : i32 to i4
func.func @from_half(%x: f16) -> f4E2M1FN {
  %y = arith.truncf %x : f16 to f4E2M1FN
  return %y : f4E2M1FN
}

// Other arithmetic is done in f32; an operand that is used twice is widened once.
// CHECK-LABEL: func.func @square
// CHECK-COUNT-1: arith.extui
// CHECK-NOT: arith.extui
// CHECK: arith.mulf [[W:%\w+]], [[W]] : f32
// CHECK: arith.trunci {{.*}} : i32 to i8
func.func @square(%x: f8E3M4) -> f8E3M4 {
  %y = arith.mulf %x, %x : f8E3M4
  return %y : f8E3M4
}

// Moving bits needs no expansion.
// CHECK-LABEL: func.func @moves
// CHECK-NEXT: arith.select %c, %x, %y : f8E5M2
// CHECK-NEXT: arith.bitcast
// CHECK-NEXT: return
func.func @moves(%c: i1, %x: f8E5M2, %y: f8E5M2) -> i8 {
  %z = arith.select %c, %x, %y : f8E5M2
  %b = arith.bitcast %z : f8E5M2 to i8
  return %b : i8
}
