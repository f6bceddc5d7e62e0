// RUN: unswitch-loops

func.func @unswitchable(%c: i1, %n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %s = scf.if %c -> (f32) {
      %b = "test.then"(%a, %i) : (f32, index) -> f32
      scf.yield %b : f32
    } else {
      %b = "test.else"(%a, %i) : (f32, index) -> f32
      scf.yield %b : f32
    }
    scf.yield %s : f32
  }
  return %r : f32
}
// CHECK-LABEL: @unswitchable
// CHECK: %[[R:\w+]] = scf.if %c -> (f32) {
// CHECK-NEXT: %[[F:\w+]] = scf.for
// CHECK-NEXT: test.then
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[F]]
// CHECK: else
// CHECK-NEXT: scf.for
// CHECK-NEXT: test.else
// CHECK: return %[[R]]

// -----

func.func @nest(%c: i1, %n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %r1 = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (f32) {
      %r2 = scf.for %k = %c0 to %n step %c1 iter_args(%d = %b) -> (f32) {
        %s = scf.if %c -> (f32) {
          %e = "test.then"(%d, %i, %j, %k) : (f32, index, index, index) -> f32
          scf.yield %e : f32
        } else {
          scf.yield %d : f32
        }
        scf.yield %s : f32
      }
      scf.yield %r2 : f32
    }
    scf.yield %r1 : f32
  }
  return %r : f32
}
// CHECK-LABEL: @nest
// CHECK: scf.if %c
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: test.then
// CHECK: else
// CHECK-NEXT: scf.yield %x
// CHECK-NOT: scf.if

// -----

// The condition changes from iteration to iteration: nothing moves.
func.func @carried_condition(%c: i1, %n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %cond = %c) -> (f32, i1) {
    %s:2 = scf.if %cond -> (f32, i1) {
      %b:2 = "test.then"(%a, %i) : (f32, index) -> (f32, i1)
      scf.yield %b#0, %b#1 : f32, i1
    } else {
      scf.yield %a, %cond : f32, i1
    }
    scf.yield %s#0, %s#1 : f32, i1
  }
  return %r#0 : f32
}
// CHECK-LABEL: @carried_condition
// CHECK: scf.for
// CHECK-NEXT: scf.if
