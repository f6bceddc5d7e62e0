// RUN: clamp-indices

// What a thread reads of shared memory, another may still be writing; what ids and a buffer that is only read give is
// checked before native code runs.
// CHECK-LABEL: func.func @what_others_write
// CHECK: [[I:%\w+]] = memref.load %shared[%t] : memref<64xindex, 3>
// CHECK: [[LAST:%\w+]] = arith.constant 31 : index
// CHECK: [[J:%\w+]] = arith.minui [[I]], [[LAST]] : index
// CHECK: memref.store %x, %out[[[J]]] : memref<32xf32>
// CHECK: [[K:%\w+]] = memref.load %table[%t] : memref<64xindex>
// CHECK-NEXT: memref.store %x, %out[[[K]]] : memref<32xf32>
memref.global "private" @s : memref<64xindex, 3> = uninitialized
func.func @what_others_write(%table: memref<64xindex> {xla.invariant}, %out: memref<32xf32>, %x: f32) attributes {xla.entry} {
  %t = gpu.thread_id x
  %shared = memref.get_global @s : memref<64xindex, 3>
  %i = memref.load %shared[%t] : memref<64xindex, 3>
  memref.store %x, %out[%i] : memref<32xf32>
  %k = memref.load %table[%t] : memref<64xindex>
  memref.store %x, %out[%k] : memref<32xf32>
  return
}

// -----

// Control flow that memory decides: the access may be one that was never checked.  A vector ends inside, too.
// CHECK-LABEL: func.func @control_flow
// CHECK: scf.for %i = %c0 to %n step %c1 {
// CHECK: [[LAST:%\w+]] = arith.constant 28 : index
// CHECK: [[J:%\w+]] = arith.minui %i, [[LAST]] : index
// CHECK: vector.store %v, %out[[[J]]]
// CHECK: scf.for %k = %c0 to %c1 step %c1 {
// CHECK-NEXT: vector.store %v, %out[%k]
// CHECK: scf.if %some {
// CHECK: [[AT:%\w+]] = arith.minui %t,
// CHECK: memref.store %x, %out[[[AT]]]
func.func @control_flow(%in: memref<1xindex>, %out: memref<32xf32>, %x: f32, %v: vector<4xf32>) attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.load %in[%c0] : memref<1xindex>
  scf.for %i = %c0 to %n step %c1 {
    vector.store %v, %out[%i] : memref<32xf32>, vector<4xf32>
  }
  scf.for %k = %c0 to %c1 step %c1 {
    vector.store %v, %out[%k] : memref<32xf32>, vector<4xf32>
  }
  %t = gpu.thread_id x
  %some = arith.cmpi ult, %n, %c1 : index
  scf.if %some {
    %low = arith.cmpi ult, %t, %c1 : index
    scf.if %low {
      memref.store %x, %out[%t] : memref<32xf32>
    }
  }
  return
}

// -----

// A variable that is set first counts as what is stored in it, also a turn later; an array of registers may hold anything.
// CHECK-LABEL: func.func @variables
// CHECK: [[I:%\w+]] = memref.load %checked[%c0]
// CHECK-NEXT: memref.store %x, %out[[[I]]]
// CHECK: [[J:%\w+]] = memref.load %from_memory[%c0]
// CHECK: arith.minui [[J]]
// CHECK: [[K:%\w+]] = memref.load %registers[%c1]
// CHECK: arith.minui [[K]]
// CHECK: [[L:%\w+]] = memref.load %late[%c0]
// CHECK: arith.minui [[L]]
// CHECK: [[C:%\w+]] = memref.load %chosen[%c0]
// CHECK: arith.minui [[C]]
func.func @variables(%in: memref<4xindex>, %out: memref<32xf32>, %x: f32) attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %checked = memref.alloca() : memref<1xindex, 5>
  %from_memory = memref.alloca() : memref<1xindex, 5>
  %registers = memref.alloca() : memref<2xindex, 5>
  memref.store %c0, %checked[%c0] : memref<1xindex, 5>
  memref.store %c0, %from_memory[%c0] : memref<1xindex, 5>
  memref.store %c0, %registers[%c0] : memref<2xindex, 5>
  %chosen = memref.alloca() : memref<1xindex, 5>
  memref.store %c0, %chosen[%c0] : memref<1xindex, 5>
  scf.for %n = %c0 to %c4 step %c1 {
    %i = memref.load %checked[%c0] : memref<1xindex, 5>
    memref.store %x, %out[%i] : memref<32xf32>
    memref.store %n, %checked[%c0] : memref<1xindex, 5>
    %j = memref.load %from_memory[%c0] : memref<1xindex, 5>
    memref.store %x, %out[%j] : memref<32xf32>
    %m = memref.load %in[%n] : memref<4xindex>
    memref.store %m, %from_memory[%c0] : memref<1xindex, 5>
  }
  %k = memref.load %registers[%c1] : memref<2xindex, 5>
  memref.store %x, %out[%k] : memref<32xf32>
  %late = memref.alloca() : memref<1xindex, 5>
  %l = memref.load %late[%c0] : memref<1xindex, 5>
  memref.store %x, %out[%l] : memref<32xf32>
  memref.store %c0, %late[%c0] : memref<1xindex, 5>
  %some = arith.cmpi ult, %k, %c1 : index
  scf.if %some {
    memref.store %c4, %chosen[%c0] : memref<1xindex, 5>
  }
  %c = memref.load %chosen[%c0] : memref<1xindex, 5>
  memref.store %x, %out[%c] : memref<32xf32>
  return
}

// -----

// What a while and a branch give, and where lanes put and find what they exchange.
// CHECK-LABEL: func.func @while_branch_and_lanes
// CHECK: memref.store %x, %out[%w#0]
// CHECK: arith.minui %w#1
// CHECK: arith.minui %b
// CHECK: arith.minui %d
// CHECK: arith.minui %s#0
// CHECK: arith.minui %u
func.func @while_branch_and_lanes(%in: memref<4xindex>, %out: memref<32xf32>, %x: f32) attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %i1 = arith.constant 1 : i32
  %i32 = arith.constant 32 : i32
  %t = gpu.thread_id x
  %w:2 = scf.while (%i = %c0, %j = %c0) : (index, index) -> (index, index) {
    %more = arith.cmpi ult, %i, %c4 : index
    scf.condition(%more) %i, %j : index, index
  } do {
  ^bb0(%k: index, %l: index):
    %next = arith.addi %k, %c1 : index
    %found = memref.load %in[%k] : memref<4xindex>
    scf.yield %next, %found : index, index
  }
  memref.store %x, %out[%w#0] : memref<32xf32>
  memref.store %x, %out[%w#1] : memref<32xf32>
  %low = arith.cmpi ult, %t, %c4 : index
  %b = scf.if %low -> (index) {
    %found = memref.load %in[%t] : memref<4xindex>
    scf.yield %found : index
  } else {
    scf.yield %c0 : index
  }
  memref.store %x, %out[%b] : memref<32xf32>
  %other = arith.cmpi ult, %w#1, %c4 : index
  %d = scf.if %other -> (index) {
    scf.yield %c4 : index
  } else {
    scf.yield %c0 : index
  }
  memref.store %x, %out[%d] : memref<32xf32>
  %s:2 = gpu.shuffle xor %t, %i1, %i32 : index
  memref.store %x, %out[%s#0] : memref<32xf32>
  %u = scf.while (%i = %c0) : (index) -> (index) {
    %found = memref.load %in[%c0] : memref<4xindex>
    %more = arith.cmpi ult, %i, %found : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%k: index):
    %next = arith.addi %k, %c1 : index
    scf.yield %next : index
  }
  memref.store %x, %out[%u] : memref<32xf32>
  return
}

// -----

// Copies in flight and matrices: each side of a copy, and a whole row.
// CHECK-LABEL: func.func @copies_and_matrices
// CHECK: [[I:%\w+]] = memref.load %in[%c0]
// CHECK: [[TO:%\w+]] = arith.minui [[I]]
// CHECK: [[LAST:%\w+]] = arith.constant 120 : index
// CHECK: [[FROM:%\w+]] = arith.minui [[I]], [[LAST]]
// CHECK: "nvgpu.device_async_copy"(%shared, [[TO]], %half, [[FROM]])
// CHECK: [[ROW:%\w+]] = arith.minui [[I]], %{{\w+}} : index
// CHECK-NEXT: "nvgpu.ldmatrix"(%shared, [[ROW]])
// CHECK: memref.atomic_rmw addf %x, %out[%c0]
// CHECK: [[PLACE:%\w+]] = arith.minui [[I]], %{{\w+}} : index
// CHECK-NEXT: memref.atomic_rmw addf %x, %out[[[PLACE]]]
memref.global "private" @h : memref<64xf16, 3> = uninitialized
func.func @copies_and_matrices(%in: memref<4xindex>, %half: memref<128xf16>, %out: memref<32xf32>, %x: f32) attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %shared = memref.get_global @h : memref<64xf16, 3>
  %i = memref.load %in[%c0] : memref<4xindex>
  "nvgpu.device_async_copy"(%shared, %i, %half, %i) {bytes = 16 : i64} : (memref<64xf16, 3>, index, memref<128xf16>, index) -> ()
  %m = "nvgpu.ldmatrix"(%shared, %i) {num_tiles = 1 : i64, transpose = false} : (memref<64xf16, 3>, index) -> vector<2xf16>
  %old = memref.atomic_rmw addf %x, %out[%c0] : (f32, memref<32xf32>) -> f32
  %other = memref.atomic_rmw addf %x, %out[%i] : (f32, memref<32xf32>) -> f32
  return
}
