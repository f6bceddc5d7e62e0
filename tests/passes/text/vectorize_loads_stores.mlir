// RUN: vectorize-loads-stores,canonicalize,cse

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 63], s0 in [0, 1]">
func.func @simple_read(%arg0: tensor<128xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c63 = arith.constant 63 : index
  %cst = arith.constant 0.0 : f32
  %outer = scf.for %i = %c0 to %c63 step %c1 iter_args(%iter = %cst) -> f32 {
    %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %iter) -> f32 {
      %idx = xla_gpu.apply_indexing #map(%i)[%j]
      %extracted = tensor.extract %arg0[%idx] : tensor<128xf32>
      %added = arith.addf %iter1, %extracted : f32
      scf.yield %added : f32
    }
    scf.yield %inner : f32
  }
  return %outer : f32
}
// CHECK: (d0) -> (d0 * 2)
// CHECK-LABEL: @simple_read
// CHECK: scf.for %[[I:\w+]] =
// CHECK-NEXT: %[[BASE:\w+]] = xla_gpu.apply_indexing #{{.*}}(%[[I]])
// CHECK-NEXT: %[[V:\w+]] = vector.transfer_read %arg0[%[[BASE]]], %{{.*}} {in_bounds = [true]} : tensor<128xf32>, vector<2xf32>
// CHECK-NEXT: scf.for %[[J:\w+]] =
// CHECK-NEXT: vector.extract %[[V]][%[[J]]] : f32 from vector<2xf32>

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 15], s0 in [0, 7]">
func.func @simple_read_i8(%arg0: tensor<128xi8>, %d: index) -> i8 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %cst = arith.constant 0 : i8
  %inner = scf.for %j = %c0 to %c8 step %c1 iter_args(%iter1 = %cst) -> i8 {
    %idx = xla_gpu.apply_indexing #map(%d)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<128xi8>
    %added = arith.addi %iter1, %extracted : i8
    scf.yield %added : i8
  }
  return %inner : i8
}
// CHECK: vector.transfer_read {{.*}}vector<8xi8>

// -----

// The induction variable under a division: lanes aren't neighbours.
#map = #xla_gpu.indexing_map<"(d0)[s0] -> ((d0 * 2 + s0) floordiv 2 + (s0 mod 2) * 8), domain: d0 in [0, 63], s0 in [0, 1]">
func.func @read_with_division(%arg0: tensor<128xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %cst) -> f32 {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<128xf32>
    %added = arith.addf %iter1, %extracted : f32
    scf.yield %added : f32
  }
  return %inner : f32
}
// CHECK-NOT: vector.transfer_read

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0 + 1), domain: d0 in [0, 62], s0 in [0, 1]">
func.func @misaligned_map(%arg0: tensor<128xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %cst) -> f32 {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<128xf32>
    %added = arith.addf %iter1, %extracted : f32
    scf.yield %added : f32
  }
  return %inner : f32
}
// CHECK-NOT: vector.transfer_read

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 + d0 * 3), domain: d0 in [0, 41], s0 in [0, 1]">
func.func @misaligned_rows(%arg0: tensor<126xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %cst) -> f32 {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<126xf32>
    %added = arith.addf %iter1, %extracted : f32
    scf.yield %added : f32
  }
  return %inner : f32
}
// CHECK-NOT: vector.transfer_read

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 * 2 + d0 * 4), domain: d0 in [0, 31], s0 in [0, 1]">
func.func @wrong_stride(%arg0: tensor<128xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %cst) -> f32 {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<128xf32>
    %added = arith.addf %iter1, %extracted : f32
    scf.yield %added : f32
  }
  return %inner : f32
}
// CHECK-NOT: vector.transfer_read

// -----

// Two dims and a size that isn't a multiple of the vector.
#map = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 + d0 * 2), domain: d0 in [0, 63], s0 in [0, 1]">
func.func @odd_size(%arg0: tensor<129xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %cst) -> f32 {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<129xf32>
    %added = arith.addf %iter1, %extracted : f32
    scf.yield %added : f32
  }
  return %inner : f32
}
// CHECK-NOT: vector.transfer_read

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 31], s0 in [0, 1]">
func.func @simple_write(%arg0: tensor<64xf32>, %i: index, %cst: f32) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %loop = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter = %arg0) -> tensor<64xf32> {
    %x = "test.value"(%j) : (index) -> f32
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %inserted = tensor.insert %x into %iter[%idx] : tensor<64xf32>
    scf.yield %inserted : tensor<64xf32>
  }
  return %loop : tensor<64xf32>
}
// CHECK-LABEL: @simple_write
// CHECK: %[[ZERO:\w+]] = arith.constant dense<0.000000e+00> : vector<2xf32>
// CHECK: %[[BASE:\w+]] = xla_gpu.apply_indexing
// CHECK-NEXT: %[[L:\w+]] = scf.for %[[J:\w+]] = {{.*}} iter_args(%[[V:\w+]] = %[[ZERO]]) -> (vector<2xf32>) {
// CHECK-NEXT: %[[X:\w+]] = "test.value"
// CHECK-NEXT: %[[W:\w+]] = vector.insert %[[X]], %[[V]] [%[[J]]] : f32 into vector<2xf32>
// CHECK-NEXT: scf.yield %[[W]]
// CHECK: %[[R:\w+]] = vector.transfer_write %[[L]], %arg0[%[[BASE]]] {in_bounds = [true]} : vector<2xf32>, tensor<64xf32>
// CHECK-NEXT: return %[[R]]

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 31], s0 in [0, 1]">
func.func @write_with_use(%arg0: tensor<64xf32>, %i: index, %cst: f32) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %loop = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter = %arg0) -> tensor<64xf32> {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %inserted = tensor.insert %cst into %iter[%idx] : tensor<64xf32>
    "test.use"(%inserted) : (tensor<64xf32>) -> ()
    scf.yield %inserted : tensor<64xf32>
  }
  return %loop : tensor<64xf32>
}
// CHECK-NOT: vector.transfer_write

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 31], s0 in [0, 1]">
func.func @write_not_to_iter_arg(%arg0: tensor<64xf32>, %i: index, %cst: f32) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %loop = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter = %arg0) -> tensor<64xf32> {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %inserted = tensor.insert %cst into %arg0[%idx] : tensor<64xf32>
    scf.yield %inserted : tensor<64xf32>
  }
  return %loop : tensor<64xf32>
}
// CHECK-NOT: vector.transfer_write

// -----

#map = #xla_gpu.indexing_map<"(d0) -> ((d0 * 4) mod 64), domain: d0 in [0, 63]">
#map1 = #xla_gpu.indexing_map<"(d0)[s0] -> ((d0 * 4) mod 64 + s0), domain: d0 in [0, 63], s0 in [0, 1]">
func.func @remainder_with_modulo(%arg0: tensor<128xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %cst) -> f32 {
    %idx = xla_gpu.apply_indexing #map1(%i)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<128xf32>
    %added = arith.addf %iter1, %extracted : f32
    scf.yield %added : f32
  }
  return %inner : f32
}
// CHECK: (d0) -> ((d0 mod 16) * 4)
// CHECK: vector.transfer_read

// -----

#map1 = #xla_gpu.indexing_map<"(d0)[s0] -> ((d0 * 4) mod 65 + s0), domain: d0 in [0, 63], s0 in [0, 1]">
func.func @remainder_with_modulo_misaligned(%arg0: tensor<128xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %inner = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter1 = %cst) -> f32 {
    %idx = xla_gpu.apply_indexing #map1(%i)[%j]
    %extracted = tensor.extract %arg0[%idx] : tensor<128xf32>
    %added = arith.addf %iter1, %extracted : f32
    scf.yield %added : f32
  }
  return %inner : f32
}
// CHECK-NOT: vector.transfer_read

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 63], s0 in [0, 1]">
func.func @multiple(%arg0: tensor<128xf32>, %arg1: tensor<128xf32>, %o: tensor<128xf32>, %i: index) -> (f32, tensor<128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.0 : f32
  %r:2 = scf.for %j = %c0 to %c2 step %c1 iter_args(%s = %cst, %t = %o) -> (f32, tensor<128xf32>) {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %a = tensor.extract %arg0[%idx] : tensor<128xf32>
    %b = tensor.extract %arg1[%idx] : tensor<128xf32>
    %sum = arith.addf %a, %b : f32
    %u = tensor.insert %sum into %t[%idx] : tensor<128xf32>
    %n = arith.addf %s, %a : f32
    scf.yield %n, %u : f32, tensor<128xf32>
  }
  return %r#0, %r#1 : f32, tensor<128xf32>
}
// CHECK-LABEL: @multiple
// CHECK-COUNT-2: vector.transfer_read
// CHECK-NEXT: scf.for {{.*}} -> (f32, vector<2xf32>)
// CHECK-COUNT-1: vector.transfer_write
// CHECK-NEXT: return

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 31], s0 in [0, 3]">
func.func @copy(%arg0: tensor<128xf32>, %arg1: tensor<128xf32>, %i: index) -> tensor<128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %loop = scf.for %j = %c0 to %c4 step %c1 iter_args(%iter = %arg1) -> tensor<128xf32> {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %e = tensor.extract %arg0[%idx] : tensor<128xf32>
    %inserted = tensor.insert %e into %iter[%idx] : tensor<128xf32>
    scf.yield %inserted : tensor<128xf32>
  }
  return %loop : tensor<128xf32>
}
// CHECK-LABEL: @copy
// CHECK-NOT: scf.for
// CHECK: %[[V:\w+]] = vector.transfer_read %arg0
// CHECK-NEXT: vector.transfer_write %[[V]], %arg1

// -----

// A whole tensor is not folded away: the copy would be lost.
func.func @avoid_folding_small_tensors(%arg0: tensor<2xi4>, %arg1: tensor<2xi4>) -> tensor<2xi4> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %loop = scf.for %j = %c0 to %c2 step %c1 iter_args(%iter = %arg1) -> tensor<2xi4> {
    %e = tensor.extract %arg0[%j] : tensor<2xi4>
    %inserted = tensor.insert %e into %iter[%j] : tensor<2xi4>
    scf.yield %inserted : tensor<2xi4>
  }
  return %loop : tensor<2xi4>
}
// CHECK-LABEL: @avoid_folding_small_tensors
// CHECK: vector.transfer_read
// CHECK: scf.for
// CHECK: vector.transfer_write

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 16 + s0), domain: d0 in [0, 7], s0 in [0, 15]">
func.func @too_many_bits(%arg0: tensor<128xf32>, %arg1: tensor<128xf32>, %i: index) -> tensor<128xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %loop = scf.for %j = %c0 to %c16 step %c1 iter_args(%iter = %arg1) -> tensor<128xf32> {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %e = tensor.extract %arg0[%idx] : tensor<128xf32>
    %inserted = tensor.insert %e into %iter[%idx] : tensor<128xf32>
    scf.yield %inserted : tensor<128xf32>
  }
  return %loop : tensor<128xf32>
}
// CHECK-NOT: vector.

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 32 + s0), domain: d0 in [0, 3], s0 in [0, 31]">
func.func @vectorize_i4_x32(%arg0: tensor<128xi4>, %arg1: tensor<128xi4>, %i: index) -> tensor<128xi4> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %loop = scf.for %j = %c0 to %c32 step %c1 iter_args(%iter = %arg1) -> tensor<128xi4> {
    %idx = xla_gpu.apply_indexing #map(%i)[%j]
    %e = tensor.extract %arg0[%idx] : tensor<128xi4>
    %inserted = tensor.insert %e into %iter[%idx] : tensor<128xi4>
    scf.yield %inserted : tensor<128xi4>
  }
  return %loop : tensor<128xi4>
}
// CHECK: vector.transfer_read {{.*}}vector<32xi4>
// CHECK-NEXT: vector.transfer_write
