// RUN: library-calls

// On a CPU: C's libm, once a lane.
// CHECK-LABEL: func.func @lanes
// CHECK: vector.extract %x[0]
// CHECK: llvm.call @exp({{.*}}) {warpsmith.library = "math.exp"} : (f64) -> f64
// CHECK: vector.extract %x[1]
// CHECK: llvm.call @exp
// CHECK: vector.from_elements {{.*}} : vector<2xf64>
// CHECK: llvm.func @exp(f64) -> f64
func.func @lanes(%x: vector<2xf64>) -> vector<2xf64> attributes {xla.entry, warpsmith.target = "cpu"} {
  %y = math.exp %x : vector<2xf64>
  return %y : vector<2xf64>
}

// -----

// On a GPU: libdevice. What isn't f64, or is exact, stays.
// CHECK-LABEL: func.func @gpu
// CHECK: llvm.call @__nv_pow(%x, %y)
// CHECK: math.sqrt
// CHECK: math.exp {{.*}} : f32
// CHECK: llvm.func @__nv_pow(f64, f64) -> f64
func.func @gpu(%x: f64, %y: f64, %z: f32) -> (f64, f32) attributes {xla.entry, warpsmith.target = "sm_90"} {
  %p = math.powf %x, %y : f64
  %r = math.sqrt %p : f64
  %e = math.exp %z : f32
  return %r, %e : f64, f32
}
