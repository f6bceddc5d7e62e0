// RUN: lower-xla-to-scf

func.func private @add(%a: f32, %b: i32, %c: f32, %d: i32) -> (f32, i32) {
  %e = arith.addf %a, %c : f32
  %f = arith.addi %b, %d : i32
  return %e, %f : f32, i32
}

func.func @combiner(%a: f32, %b: i32) -> (f32, i32) {
  %r:2 = xla_gpu.shuffle_reduce(%a, %b) to 4 combiner=@add : f32, i32
  return %r#0, %r#1 : f32, i32
}
// CHECK-LABEL: @combiner
// CHECK: %[[W:\w+]] = arith.constant 32 : i32
// CHECK: %[[C4:\w+]] = arith.constant 4 : i32
// CHECK-NEXT: %[[A4:\w+]]:2 = gpu.shuffle down %a, %[[C4]], %[[W]] : f32
// CHECK-NEXT: %[[B4:\w+]]:2 = gpu.shuffle down %b, %[[C4]], %[[W]] : i32
// CHECK-NEXT: %[[R4:\w+]]{{.*}} = xla_gpu.pure_call @add(%a, %b, %[[A4]]#0, %[[B4]]#0)
// CHECK: arith.constant 2 : i32
// CHECK-NEXT: gpu.shuffle down %[[R4]]
// CHECK-NEXT: gpu.shuffle down
// CHECK: xla_gpu.pure_call @add
// CHECK: arith.constant 1 : i32
// CHECK-COUNT-2: gpu.shuffle
// CHECK-NEXT: %[[R1:\w+]]{{.*}} = xla_gpu.pure_call @add
// CHECK-NOT: gpu.shuffle
// CHECK: return %[[R1]]

// -----

func.func private @max(%a: f64, %b: f64) -> f64 {
  %e = arith.maximumf %a, %b : f64
  return %e : f64
}

// 64 bits are two words.
func.func @words(%a: f64) -> f64 {
  %r = xla_gpu.shuffle_reduce(%a) to 1 combiner=@max : f64
  return %r : f64
}
// CHECK-LABEL: @words
// CHECK: arith.bitcast %a : f64 to i64
// CHECK: vector.bitcast %{{.*}} : vector<1xi64> to vector<2xi32>
// CHECK-COUNT-2: gpu.shuffle down
// CHECK: vector.bitcast %{{.*}} : vector<2xi32> to vector<1xi64>
// CHECK: arith.bitcast %{{.*}} : i64 to f64
// CHECK: xla_gpu.pure_call @max

// -----

func.func private @min(%a: i8, %b: i8) -> i8 {
  %e = arith.minsi %a, %b : i8
  return %e : i8
}

func.func @shuffler_i8(%a: i8) -> i8 {
  %r = xla_gpu.shuffle_reduce(%a) to 1 combiner=@min : i8
  return %r : i8
}
// CHECK-LABEL: @shuffler_i8
// CHECK-NOT: vector
// CHECK: arith.extui %a : i8 to i32
// CHECK-NEXT: gpu.shuffle down
// CHECK-NEXT: arith.trunci {{.*}} : i32 to i8
// CHECK-NOT: vector
// CHECK: return

// -----

func.func @predicated_insert(%v: i32, %tensor: tensor<2xi32>, %index: index, %cond: i1) -> tensor<2xi32> {
  %ret = xla_gpu.predicated_insert %v into %tensor[%index] if %cond : tensor<2xi32>
  return %ret : tensor<2xi32>
}
// CHECK-LABEL: @predicated_insert
// CHECK: %[[R:\w+]] = scf.if %cond -> (tensor<2xi32>) {
// CHECK-NEXT: %[[I:\w+]] = tensor.insert %v into %tensor[%index]
// CHECK-NEXT: scf.yield %[[I]]
// CHECK: else
// CHECK-NEXT: scf.yield %tensor
// CHECK: return %[[R]]

// -----

func.func @predicated_extract(%v: i32, %tensor: tensor<2xi32>, %index: index, %cond: i1) -> i32 {
  %ret = xla_gpu.predicated_extract %tensor[%index] if %cond else %v : tensor<2xi32>
  return %ret : i32
}
// CHECK-LABEL: @predicated_extract
// CHECK: %[[R:\w+]] = scf.if %cond -> (i32) {
// CHECK-NEXT: %[[E:\w+]] = tensor.extract %tensor[%index]
// CHECK-NEXT: scf.yield %[[E]]
// CHECK: else
// CHECK-NEXT: scf.yield %v
// CHECK: return %[[R]]
