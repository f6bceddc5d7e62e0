// RUN: guard-divisions

// CHECK-LABEL: func.func @signed
// CHECK: [[ZERO:%\w+]] = arith.cmpi eq, %b, {{%\w+}} : i32
// CHECK: arith.constant -2147483648 : i32
// CHECK: [[LEAST:%\w+]] = arith.cmpi eq, %a, {{%\w+}} : i32
// CHECK: [[OVER:%\w+]] = arith.cmpi eq, %b, {{%\w+}} : i32
// CHECK: [[BOTH:%\w+]] = arith.andi [[LEAST]], [[OVER]] : i1
// CHECK: [[TRAP:%\w+]] = arith.ori [[ZERO]], [[BOTH]] : i1
// CHECK: [[ONE:%\w+]] = arith.constant 1 : i32
// CHECK: [[D:%\w+]] = arith.select [[TRAP]], [[ONE]], %b : i32
// CHECK: arith.divsi %a, [[D]] : i32
// CHECK: arith.remsi %a, %{{.*}} : i32
func.func @signed(%a: i32, %b: i32) -> (i32, i32) {
  %q = arith.divsi %a, %b : i32
  %r = arith.remsi %a, %b : i32
  return %q, %r : i32, i32
}

// -----

// CHECK-LABEL: func.func @unsigned
// CHECK-NOT: arith.andi
// CHECK: [[ZERO:%\w+]] = arith.cmpi eq, %b, {{%\w+}} : index
// CHECK: [[D:%\w+]] = arith.select [[ZERO]], {{%\w+}}, %b : index
// CHECK: arith.remui %a, [[D]] : index
func.func @unsigned(%a: index, %b: index) -> index {
  %r = arith.remui %a, %b : index
  return %r : index
}

// -----

// By a number that can't trap; -1 can, for the least integer.
// CHECK-LABEL: func.func @constants
// CHECK: arith.divsi %a, %c7 : i32
// CHECK: arith.divui %a, %minus : i32
// CHECK: [[D:%\w+]] = arith.select
// CHECK: arith.divsi %a, [[D]] : i32
// CHECK: [[E:%\w+]] = arith.select
// CHECK: arith.remui %a, [[E]] : i32
func.func @constants(%a: i32) -> (i32, i32, i32, i32) {
  %c7 = arith.constant 7 : i32
  %minus = arith.constant -1 : i32
  %p = arith.divsi %a, %c7 : i32
  %q = arith.divui %a, %minus : i32
  %r = arith.divsi %a, %minus : i32
  %zero = arith.constant 0 : i32
  %s = arith.remui %a, %zero : i32
  return %p, %q, %r, %s : i32, i32, i32, i32
}
