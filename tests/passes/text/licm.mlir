// RUN: licm

func.func @nest(%t: tensor<100xf32>, %o: tensor<100xf32>, %x: index, %y: index) -> tensor<100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %o) -> (tensor<100xf32>) {
    %r1 = scf.for %j = %c0 to %c5 step %c1 iter_args(%b = %a) -> (tensor<100xf32>) {
      %c = arith.addi %x, %y : index
      %d = arith.muli %c, %i : index
      %e = arith.addi %d, %j : index
      %f = tensor.extract %t[%c] : tensor<100xf32>
      %g = tensor.insert %f into %b[%e] : tensor<100xf32>
      scf.yield %g : tensor<100xf32>
    }
    scf.yield %r1 : tensor<100xf32>
  }
  return %r : tensor<100xf32>
}
// CHECK-LABEL: @nest
// CHECK: %[[C:.*]] = arith.addi %x, %y
// CHECK-NEXT: %[[F:.*]] = tensor.extract
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.muli %[[C]]
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.addi
// CHECK-NEXT: tensor.insert %[[F]]

// -----

// Nothing is read, and nothing divides, that would not have run.
func.func @zero_trips(%t: tensor<100xf32>, %o: f32, %n: index, %x: index, %y: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %o) -> (f32) {
    %s = arith.addi %x, %y : index
    %d = arith.divui %x, %y : index
    %f = tensor.extract %t[%s] : tensor<100xf32>
    %g = "test.use"(%a, %f, %d) : (f32, f32, index) -> f32
    scf.yield %g : f32
  }
  return %r : f32
}
// CHECK-LABEL: @zero_trips
// CHECK: arith.addi
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.divui
// CHECK-NEXT: tensor.extract

// -----

// Loads from memory stay; so does what an if guards, unless all of it is invariant.
func.func @effects_stay(%m: memref<8xf32>, %c: i1, %x: index, %o: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %o) -> (f32) {
    %l = memref.load %m[%x] : memref<8xf32>
    %q = scf.if %c -> (f32) {
      %e = math.exp %o : f32
      scf.yield %e : f32
    } else {
      scf.yield %o : f32
    }
    %p = scf.if %c -> (f32) {
      %e = math.sin %o : f32
      %s = arith.addf %e, %a : f32
      scf.yield %s : f32
    } else {
      scf.yield %o : f32
    }
    %g = "test.use"(%a, %l, %p, %q) : (f32, f32, f32, f32) -> f32
    scf.yield %g : f32
  }
  return %r : f32
}
// CHECK-LABEL: @effects_stay
// CHECK: scf.if
// CHECK-NEXT: math.exp
// CHECK: scf.for
// CHECK-NEXT: memref.load
// CHECK-NEXT: scf.if
// CHECK-NEXT: math.sin
