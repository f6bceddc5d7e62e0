// RUN: expand-remainder

// The exponents' difference is divided by the 40 bits that a 64-bit remainder has room for beside 24.
// CHECK-LABEL: func.func @single
// CHECK-NOT: arith.remf
// CHECK: arith.constant 40 : i32
// CHECK: arith.remui {{.*}} : i64
// CHECK: scf.for
// CHECK: arith.shli {{.*}} : i64
// CHECK: arith.remui {{.*}} : i64
// CHECK: scf.yield
// CHECK: arith.uitofp {{.*}} : i64 to f32
// CHECK: arith.mulf
func.func @single(%x: f32, %y: f32) -> f32 {
  %r = arith.remf %x, %y : f32
  return %r : f32
}

// CHECK-LABEL: func.func @double
// CHECK: arith.constant 11 : i64
// CHECK: arith.uitofp {{.*}} : i64 to f64
func.func @double(%x: f64, %y: f64) -> f64 {
  %r = arith.remf %x, %y : f64
  return %r : f64
}
