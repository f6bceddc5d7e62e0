// RUN: canonicalize

func.func @zero_and_one_trip(%x: f32, %y: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = scf.for %i = %c1 to %c1 step %c1 iter_args(%a = %x) -> (f32) {
    %b = "test.use"(%a, %i) : (f32, index) -> f32
    scf.yield %b : f32
  }
  %once = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %y) -> (f32) {
    %b = "test.once"(%a, %i) : (f32, index) -> f32
    scf.yield %b : f32
  }
  return %none, %once : f32, f32
}
// CHECK-LABEL: @zero_and_one_trip
// CHECK-NOT: test.use
// CHECK: %[[B:.*]] = "test.once"(%y, %c0)
// CHECK-NEXT: return %x, %[[B]]

// -----

func.func @unchanged_and_unused_iter_args(%n: index, %x: f32, %y: f32, %z: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %z) -> (f32, f32, f32) {
    %n1 = "test.use"(%a, %b) : (f32, f32) -> f32
    %n2 = "test.other"(%i) : (index) -> f32
    scf.yield %n1, %b, %n2 : f32, f32, f32
  }
  return %r#0, %r#1 : f32, f32
}
// CHECK-LABEL: @unchanged_and_unused_iter_args
// CHECK: %[[R:.*]] = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[A:.*]] = %x) -> (f32) {
// CHECK-NEXT: %[[N:.*]] = "test.use"(%[[A]], %y)
// CHECK-NEXT: "test.other"
// CHECK-NEXT: scf.yield %[[N]] : f32
// CHECK: return %[[R]], %y

// -----

// Another iter arg takes the place of the one that no iteration changes: from the second turn on it is %x.
func.func @unchanged_and_yielded_twice(%n: index, %x: f32, %y: f32, %z: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %z, %d = %y) -> (f32, f32, f32, f32) {
    %n1 = "test.use"(%b, %d) : (f32, f32) -> f32
    scf.yield %a, %a, %y, %n1 : f32, f32, f32, f32
  }
  return %r#0, %r#1 : f32, f32
}
// CHECK-LABEL: @unchanged_and_yielded_twice
// CHECK: %[[R:.*]]:2 = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[B:.*]] = %y, %[[D:.*]] = %y) -> (f32, f32) {
// CHECK-NEXT: %[[N:.*]] = "test.use"(%[[B]], %[[D]])
// CHECK-NEXT: scf.yield %x, %[[N]] : f32, f32
// CHECK: return %x, %[[R]]#0

// -----

func.func @yields_outer_value(%x: f32, %y: f32, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %runs = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x) -> (f32) {
    scf.yield %y : f32
  }
  %may = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    scf.yield %y : f32
  }
  return %runs, %may : f32, f32
}
// CHECK-LABEL: @yields_outer_value
// CHECK-COUNT-1: scf.for %{{.*}} to %n
// CHECK: return %y, %

// -----

func.func @decided_if(%x: f32, %y: f32) -> f32 {
  %true = arith.constant true
  %r = scf.if %true -> (f32) {
    %a = "test.then"(%x) : (f32) -> f32
    scf.yield %a : f32
  } else {
    %b = "test.else"(%y) : (f32) -> f32
    scf.yield %b : f32
  }
  return %r : f32
}
// CHECK-LABEL: @decided_if
// CHECK-NEXT: %[[A:.*]] = "test.then"
// CHECK-NEXT: return %[[A]]

// -----

// Scalars become a select; a tensor stands for a buffer and can't be selected.
func.func @if_of_outer_values(%c: i1, %x: f32, %y: f32, %s: tensor<4xf32>, %t: tensor<4xf32>) -> (f32, tensor<4xf32>) {
  %r:2 = scf.if %c -> (f32, tensor<4xf32>) {
    scf.yield %x, %s : f32, tensor<4xf32>
  } else {
    scf.yield %y, %t : f32, tensor<4xf32>
  }
  return %r#0, %r#1 : f32, tensor<4xf32>
}
// CHECK-LABEL: @if_of_outer_values
// CHECK-NEXT: %[[S:.*]] = arith.select %c, %x, %y : f32
// CHECK-NEXT: %[[T:.*]] = scf.if %c -> (tensor<4xf32>) {
// CHECK: return %[[S]], %[[T]]

// -----

func.func @unused_result(%c: i1, %x: f32) -> f32 {
  %r:2 = scf.if %c -> (f32, f32) {
    %a = "test.a"(%x) : (f32) -> f32
    %b = arith.negf %a : f32
    scf.yield %a, %b : f32, f32
  } else {
    scf.yield %x, %x : f32, f32
  }
  return %r#0 : f32
}
// CHECK-LABEL: @unused_result
// CHECK: scf.if %c -> (f32) {
// CHECK-NOT: arith.negf
// CHECK: return

// -----

func.func @condition_is_known_inside(%c: i1) {
  scf.if %c {
    "test.use"(%c) : (i1) -> ()
  } else {
    "test.other"(%c) : (i1) -> ()
  }
  return
}
// CHECK-LABEL: @condition_is_known_inside
// CHECK-DAG: %[[T:.*]] = arith.constant true
// CHECK-DAG: %[[F:.*]] = arith.constant false
// CHECK: "test.use"(%[[T]])
// CHECK: "test.other"(%[[F]])

// -----

func.func @nested_ifs(%c: i1, %d: i1) {
  scf.if %c {
    scf.if %d {
      "test.use"() : () -> ()
    }
  } else {
  }
  return
}
// CHECK-LABEL: @nested_ifs
// CHECK-NEXT: %[[B:.*]] = arith.andi %c, %d
// CHECK-NEXT: scf.if %[[B]] {
// CHECK-NEXT: "test.use"
// CHECK-NOT: else
// CHECK: return

// -----

func.func @ifs_in_a_row(%c: i1, %x: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    %a = "test.a"(%x) : (f32) -> f32
    scf.yield %a : f32
  } else {
    scf.yield %x : f32
  }
  scf.if %c {
    "test.use"(%r) : (f32) -> ()
  }
  return %r : f32
}
// CHECK-LABEL: @ifs_in_a_row
// CHECK: %[[R:.*]] = scf.if %c -> (f32) {
// CHECK-NEXT: %[[A:.*]] = "test.a"
// CHECK-NEXT: "test.use"(%[[A]])
// CHECK-NEXT: scf.yield %[[A]]
// CHECK-NOT: scf.if
// CHECK: return %[[R]]

// -----

func.func @index_switch(%x: f32) -> f32 {
  %c2 = arith.constant 2 : index
  %r = scf.index_switch %c2 -> f32
  case 2 {
    %a = "test.two"(%x) : (f32) -> f32
    scf.yield %a : f32
  }
  case 5 {
    %a = "test.five"(%x) : (f32) -> f32
    scf.yield %a : f32
  }
  default {
    scf.yield %x : f32
  }
  return %r : f32
}
// CHECK-LABEL: @index_switch
// CHECK-NEXT: %[[A:.*]] = "test.two"
// CHECK-NEXT: return %[[A]]
