// RUN: erase-dead-functions

func.func private @a(%x: f32) -> f32 {
  %r = xla_gpu.pure_call @b(%x) : (f32) -> f32
  return %r : f32
}
func.func private @b(%x: f32) -> f32 {
  return %x : f32
}
func.func private @dead(%x: f32) -> f32 {
  %r = xla_gpu.pure_call @dead_too(%x) : (f32) -> f32
  return %r : f32
}
func.func private @dead_too(%x: f32) -> f32 {
  %r = xla_gpu.pure_call @dead(%x) : (f32) -> f32
  %s = xla_gpu.pure_call @b(%r) : (f32) -> f32
  return %s : f32
}
func.func @main(%x: f32) -> f32 {
  %r = xla_gpu.pure_call @a(%x) : (f32) -> f32
  return %r : f32
}
// CHECK-NOT: @dead
// CHECK: func.func private @a
// CHECK: func.func private @b
// CHECK-NOT: @dead
// CHECK: func.func @main
