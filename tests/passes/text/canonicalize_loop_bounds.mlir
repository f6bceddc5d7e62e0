// RUN: canonicalize

// A dim that the map doesn't use stays when it says which blocks run...
#one = #xla_gpu.indexing_map<"(d0)[s] -> (s), domain: d0 in [0, 0], s in [0, 3]">
#all = #xla_gpu.indexing_map<"(d0)[s] -> (s), domain: d0 in [0, 1], s in [0, 3]">
// CHECK-LABEL: func.func @first_block_alone
// CHECK: xla_gpu.loop (%b)[%s]
func.func @first_block_alone(%b: index {xla.range = [0 : index, 1 : index]}, %out: tensor<4xf32>, %x: f32) -> tensor<4xf32> {
  %r = xla_gpu.loop (%b)[%s] -> (%i) in #one iter_args(%o = %out) -> (tensor<4xf32>) {
    %u = tensor.insert %x into %o[%i] : tensor<4xf32>
    xla_gpu.yield %u : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// ... and goes when all do.
// CHECK-LABEL: func.func @every_block
// CHECK: xla_gpu.loop ()[%s]
func.func @every_block(%b: index {xla.range = [0 : index, 1 : index]}, %out: tensor<4xf32>, %x: f32) -> tensor<4xf32> {
  %r = xla_gpu.loop (%b)[%s] -> (%i) in #all iter_args(%o = %out) -> (tensor<4xf32>) {
    %u = tensor.insert %x into %o[%i] : tensor<4xf32>
    xla_gpu.yield %u : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
