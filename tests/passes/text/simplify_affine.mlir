// RUN: simplify-affine

// CHECK-LABEL: func.func @sums
// CHECK-NOT: apply_indexing
// CHECK-DAG: [[T:%\w+]] = arith.muli %t, %c4 : index
// CHECK-DAG: [[B:%\w+]] = arith.muli %b, %c512 : index
// CHECK: [[S:%\w+]] = arith.addi [[T]], [[B]] : index
// CHECK: [[R:%\w+]] = arith.addi [[S]], %c3 : index
// CHECK-NEXT: return [[R]]
func.func @sums(%t: index {xla.range = [0 : index, 127 : index]}, %b: index {xla.range = [0 : index, 9 : index]}) -> index {
  %r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1 * 512 + 3), domain: d0 in [0, 127], d1 in [0, 9]">(%t, %b)
  return %r : index
}

// -----

// What can't be negative is divided unsigned.
// CHECK-LABEL: func.func @unsigned
// CHECK: arith.divui %i, %c10 : index
// CHECK-NEXT: arith.remui %i, %c10 : index
// CHECK-NEXT: return
func.func @unsigned(%i: index {xla.range = [0 : index, 99 : index]}) -> (index, index) {
  %r:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 10, d0 mod 10), domain: d0 in [0, 99]">(%i)
  return %r#0, %r#1 : index, index
}

// -----

// What may be negative is divided toward minus infinity.
// CHECK-LABEL: func.func @floor
// CHECK-DAG: [[Q:%\w+]] = arith.divsi %i, %c10 : index
// CHECK-DAG: [[M:%\w+]] = arith.remsi %i, %c10 : index
// CHECK: [[NEGATIVE:%\w+]] = arith.cmpi slt, [[M]], %c0 : index
// CHECK: [[LESS:%\w+]] = arith.subi [[Q]], %c1 : index
// CHECK-NEXT: %r = arith.select [[NEGATIVE]], [[LESS]], [[Q]] : index
// CHECK: [[MORE:%\w+]] = arith.addi [[N:%\w+]], %c10 : index
// CHECK-NEXT: arith.select {{%\w+}}, [[MORE]], [[N]] : index
func.func @floor(%i: index) -> (index, index) {
  %r:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 10, d0 mod 10), domain: d0 in [-50, 99]">(%i)
  return %r#0, %r#1 : index, index
}

// -----

// Outer summands first, so that licm can hoist them; constants last.
// CHECK-LABEL: func.func @hoist
// CHECK: scf.for %i
// CHECK: [[J:%\w+]] = arith.muli %j, %c7 : index
// CHECK-NEXT: [[S:%\w+]] = arith.addi [[J]], %i : index
// CHECK: arith.addi [[S]], %c1
func.func @hoist(%n: index, %j: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1 * 7 + 1), domain: d0 in [0, 99], d1 in [0, 9]">(%i, %j)
    "test.use"(%r) : (index) -> ()
  }
  return
}
