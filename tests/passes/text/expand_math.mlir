// RUN: expand-math

// A vector is expanded for all lanes at once; constants stand before everything else.
// CHECK-LABEL: func.func @tanh
// CHECK-DAG: arith.constant dense<8.84{{[0-9e+]*}}> : vector<8xf32>
// CHECK-NOT: math.tanh
// CHECK: arith.mulf {{.*}} : vector<8xf32>
// CHECK: [[Q:%\w+]] = arith.divf {{.*}} : vector<8xf32>
// CHECK-NEXT: return [[Q]]
func.func @tanh(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.tanh %x : vector<8xf32>
  return %y : vector<8xf32>
}

// Constants of an op in a loop are made outside it.
// CHECK-LABEL: func.func @loop
// CHECK: arith.constant 1.000000e+00 : f32
// CHECK: scf.for
// CHECK-NOT: arith.constant
// CHECK: return
func.func @loop(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %y = math.exp %a : f32
    scf.yield %y : f32
  }
  return %r : f32
}

// Huge arguments branch for a scalar; for a vector they branch once, if any lane needs it, and then select.
// CHECK-LABEL: func.func @scalar_sin
// CHECK: [[BIG:%\w+]] = arith.cmpf ogt, {{.*}} : f32
// CHECK: scf.if [[BIG]] -> (f32, i32)
// CHECK-NOT: math.sin
// CHECK: return
func.func @scalar_sin(%x: f32) -> f32 {
  %y = math.sin %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @vector_sin
// CHECK: [[LANES:%\w+]] = arith.cmpf ogt, {{.*}} : vector<16xf32>
// CHECK: [[BITS:%\w+]] = vector.bitcast [[LANES]] : vector<16xi1> to vector<1xi16>
// CHECK: vector.extract [[BITS]][0]
// CHECK: [[ANY:%\w+]] = arith.cmpi ne, {{.*}} : i16
// CHECK: scf.if [[ANY]] -> (vector<16xf32>, vector<16xi32>)
// CHECK: arith.select [[LANES]]
// CHECK: return
func.func @vector_sin(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.sin %x : vector<16xf32>
  return %y : vector<16xf32>
}

// f16 goes through f32 and is rounded once.
// CHECK-LABEL: func.func @half
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK-NOT: math.log
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @half(%x: f16) -> f16 {
  %y = math.log %x : f16
  return %y : f16
}

// f64, sqrt and other exact ops stay; rsqrt is a division whatever the type.
// CHECK-LABEL: func.func @left
// CHECK: math.exp %{{.*}} : f64
// CHECK: math.sqrt %{{.*}} : f64
// CHECK: arith.divf
// CHECK: math.sqrt %{{.*}} : f32
func.func @left(%x: f64, %z: f32) -> (f64, f32) {
  %a = math.exp %x : f64
  %b = math.rsqrt %a : f64
  %c = math.sqrt %z : f32
  return %b, %c : f64, f32
}
