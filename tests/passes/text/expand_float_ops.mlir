// RUN: expand-float-ops

// sm_80 has no bf16 addition: f32, rounded after every op.
// CHECK-LABEL: func.func @main
// CHECK: [[S:%\w+]] = arith.addf {{%\w+}}, {{%\w+}} : f32
// CHECK-NEXT: [[N:%\w+]] = arith.truncf [[S]] : f32 to bf16
// CHECK-NEXT: [[W:%\w+]] = arith.extf [[N]] : bf16 to f32
// CHECK: [[P:%\w+]] = arith.mulf [[W]], {{%\w+}} : f32
// CHECK-NEXT: arith.truncf [[P]] : f32 to bf16
func.func @main(%a: bf16, %b: bf16) -> bf16 attributes {xla.entry, warpsmith.target = "sm_80"} {
  %s = arith.addf %a, %b : bf16
  %p = arith.mulf %s, %a : bf16
  return %p : bf16
}

// -----

// sm_90 adds by itself, and doesn't divide.
// CHECK-LABEL: func.func @main
// CHECK: %s = arith.addf %a, %b : bf16
// CHECK: [[Q:%\w+]] = arith.divf {{%\w+}}, {{%\w+}} : f32
// CHECK-NEXT: arith.truncf [[Q]] : f32 to bf16
func.func @main(%a: bf16, %b: bf16) -> bf16 attributes {xla.entry, warpsmith.target = "sm_90"} {
  %s = arith.addf %a, %b : bf16
  %d = arith.divf %s, %a : bf16
  return %d : bf16
}

// -----

// A CPU rounds to bf16 by integers: half of the last kept bit, and one when that bit is odd.
// CHECK-LABEL: func.func @main
// CHECK-NOT: truncf
// CHECK: [[S:%\w+]] = arith.addf {{%\w+}}, {{%\w+}} : f32
// CHECK-NEXT: [[B:%\w+]] = arith.bitcast [[S]] : f32 to i32
// CHECK: [[HIGH:%\w+]] = arith.shrui [[B]], {{%\w+}} : i32
// CHECK: [[ODD:%\w+]] = arith.andi [[HIGH]], {{%\w+}} : i32
// CHECK: arith.constant 32767 : i32
// CHECK-NEXT: [[HALF:%\w+]] = arith.addi [[B]], {{%\w+}} : i32
// CHECK-NEXT: arith.addi [[HALF]], [[ODD]] : i32
// CHECK-NOT: arith.select
// CHECK: return
func.func @main(%a: bf16, %b: bf16) -> bf16 attributes {xla.entry, warpsmith.target = "cpu"} {
  %s = arith.addf %a, %b : bf16
  return %s : bf16
}

// -----

// A NaN of any payload stays one.
// CHECK-LABEL: func.func @main
// CHECK: [[QUIET:%\w+]] = arith.ori {{%\w+}}, {{%\w+}} : i32
// CHECK: [[NAN:%\w+]] = arith.cmpf uno, %a, %a : f32
// CHECK-NEXT: arith.select [[NAN]], [[QUIET]], {{%\w+}} : i32
func.func @main(%a: f32) -> bf16 attributes {xla.entry, warpsmith.target = "cpu"} {
  %s = arith.truncf %a : f32 to bf16
  return %s : bf16
}

// -----

// A function may take its shorter program; what is exact isn't rounded.
// CHECK-LABEL: func.func @main
// CHECK: math.tanh {{%\w+}} {warpsmith.accuracy = "f16"} : f32
// CHECK: [[U:%\w+]] = math.absf {{%\w+}} : f32
// CHECK-NEXT: [[N:%\w+]] = arith.truncf [[U]] : f32 to f16
// CHECK-NEXT: return [[N]] : f16
func.func @main(%a: f16) -> f16 attributes {xla.entry, warpsmith.target = "cpu"} {
  %t = math.tanh %a : f16
  %u = math.absf %t : f16
  return %u : f16
}

// -----

// f64 rounds once, by way of an f32 rounded to odd; 64-bit integers first gather their low bits.
// CHECK-LABEL: func.func @main
// CHECK: arith.truncf %a : f64 to f32
// CHECK: arith.cmpf one, {{%\w+}}, %a : f64
// CHECK: arith.constant 2047 : i64
// CHECK: arith.sitofp {{%\w+}} : i64 to f64
func.func @main(%a: f64, %b: i64) -> (bf16, bf16) attributes {xla.entry, warpsmith.target = "cpu"} {
  %s = arith.truncf %a : f64 to bf16
  %t = arith.sitofp %b : i64 to bf16
  return %s, %t : bf16, bf16
}
