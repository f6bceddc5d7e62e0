// RUN: tabulate

// A function of one 16-bit element is looked up; the setup fills the table with the same ops.
// CHECK-LABEL: func.func @main
// CHECK-SAME: [[TABLE:%\w+]]: memref<65536xbf16>
// CHECK-SAME: warpsmith.tables = array<i64: 131072>
// CHECK: %x = memref.load %in[%i]
// CHECK: [[U:%\w+]] = xla_cpu.lookup [[TABLE]][%x] : memref<65536xbf16>, bf16 -> bf16
// CHECK: memref.store [[U]], %out[%i]
// CHECK-LABEL: func.func @main_setup([[TABLE:%\w+]]: memref<65536xbf16>) attributes {warpsmith.setup
// CHECK: scf.for [[BITS:%\w+]] = %c0 to %c65536 step %c1 {
// CHECK-NEXT: [[WORD:%\w+]] = arith.index_castui [[BITS]] : index to i16
// CHECK-NEXT: [[X:%\w+]] = arith.bitcast [[WORD]] : i16 to bf16
// CHECK: [[T:%\w+]] = math.tanh [[X]] : bf16
// CHECK-NEXT: [[U:%\w+]] = arith.mulf [[T]], {{%\w+}} : bf16
// CHECK-NEXT: memref.store [[U]], [[TABLE]][[[BITS]]]
func.func @main(%in: memref<100000xbf16>, %out: memref<100000xbf16>) attributes {xla.entry, warpsmith.target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100000 : index
  %half = arith.constant 0.5 : bf16
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %in[%i] : memref<100000xbf16>
    %t = math.tanh %x : bf16
    %u = arith.mulf %t, %half : bf16
    memref.store %u, %out[%i] : memref<100000xbf16>
  }
  return
}

// -----

// The part that depends on one element alone is looked up; the rest stays.
// CHECK-LABEL: func.func @main
// CHECK: [[L:%\w+]] = xla_cpu.lookup {{%\w+}}[%y]
// CHECK: arith.mulf %x, [[L]] : bf16
// CHECK-LABEL: func.func @main_setup
func.func @main(%a: memref<100000xbf16>, %b: memref<100000xbf16>, %out: memref<100000xbf16>) attributes {xla.entry, warpsmith.target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100000 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %a[%i] : memref<100000xbf16>
    %y = memref.load %b[%i] : memref<100000xbf16>
    %t = math.exp %y : bf16
    %u = arith.mulf %x, %t : bf16
    memref.store %u, %out[%i] : memref<100000xbf16>
  }
  return
}

// -----

// Not for a few elements.
// CHECK-LABEL: func.func @main
// CHECK-NOT: lookup
// CHECK: return
func.func @main(%in: memref<100xbf16>, %out: memref<100xbf16>) attributes {xla.entry, warpsmith.target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %in[%i] : memref<100xbf16>
    %t = math.tanh %x : bf16
    memref.store %t, %out[%i] : memref<100xbf16>
  }
  return
}

// -----

// Nor for wide elements.
// CHECK-LABEL: func.func @main
// CHECK-NOT: lookup
// CHECK: return
func.func @main(%in: memref<100000xf32>, %out: memref<100000xf32>) attributes {xla.entry, warpsmith.target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100000 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %in[%i] : memref<100000xf32>
    %t = math.tanh %x : f32
    memref.store %t, %out[%i] : memref<100000xf32>
  }
  return
}
