// RUN: lower-xla-shared

func.func @workgroup_id_op() -> (index, index, index) {
  %x = xla_gpu.workgroup_id x {xla.range = [0 : index, 1023 : index]}
  %y = xla_gpu.workgroup_id y
  %z = xla_gpu.workgroup_id z
  return %x, %y, %z : index, index, index
}
// CHECK-LABEL: @workgroup_id_op
// CHECK-NEXT: gpu.block_id x {xla.range = [0 : index, 1023 : index]}
// CHECK-NEXT: gpu.block_id y
// CHECK-NEXT: gpu.block_id z
