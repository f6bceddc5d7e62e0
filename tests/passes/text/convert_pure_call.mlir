// RUN: convert-pure-call

func.func private @callee(index) -> f32
func.func @calls(%i: index) -> (f32, f32) {
  %a = xla_gpu.pure_call @callee(%i) {noinline} : (index) -> f32
  %b = xla_gpu.pure_call @callee(%i) : (index) -> f32
  return %a, %b : f32, f32
}
// CHECK-NOT: pure_call
// CHECK: call @callee(%i) {noinline}
// CHECK-NEXT: call @callee(%i) : (index) -> f32
