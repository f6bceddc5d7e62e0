// RUN: expand-approximate

// A reciprocal stays a division; a function without `afn` stays.
// CHECK-LABEL: func.func @main
// CHECK: llvm.call @llvm.nvvm.div.full(%x, %y)
// CHECK: arith.divf %one, %y fastmath<afn> : f32
// CHECK: llvm.call @llvm.nvvm.sqrt.approx.f(%x)
// CHECK: llvm.call @llvm.nvvm.rsqrt.approx.f(%x)
// CHECK: arith.mulf %x, {{.*}} : f32
// CHECK: llvm.call @llvm.nvvm.ex2.approx.f
// CHECK: math.log %x : f32
// CHECK: llvm.call @llvm.nvvm.lg2.approx.f(%x)
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.divf {{.*}} : f64
// CHECK: llvm.func @llvm.nvvm.div.full(f32, f32) -> f32
module {
  func.func @main(%x: f32, %y: f32, %z: f64) -> (f32, f32, f32, f32, f32, f32, f32, f64) attributes {warpsmith.numerics = "xla", warpsmith.target = "sm_90", xla.entry} {
    %one = arith.constant 1.000000e+00 : f32
    %q = arith.divf %x, %y : f32
    %r = arith.divf %one, %y : f32
    %s = math.sqrt %x : f32
    %t = math.rsqrt %x : f32
    %e = math.exp %x fastmath<afn> : f32
    %l = math.log %x : f32
    %m = math.log %x fastmath<afn> : f32
    %d = arith.divf %z, %z : f64
    return %q, %r, %s, %t, %e, %l, %m, %d : f32, f32, f32, f32, f32, f32, f32, f64
  }
}
