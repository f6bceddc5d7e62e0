// RUN: pack-sub-byte

// Two elements a byte: the byte is shifted to the element. The entry remembers what it held.
// CHECK-LABEL: func.func @load
// CHECK-SAME: %in: memref<4xi8>
// CHECK-SAME: warpsmith.unpacked = [memref<7xi4>]
// CHECK: [[BYTE:%\w+]] = arith.shrui %i, %c1 : index
// CHECK: [[V:%\w+]] = memref.load %in[[[BYTE]]] : memref<4xi8>
// CHECK-NEXT: arith.shrui [[V]], {{.*}} : i8
// CHECK-NEXT: arith.trunci {{.*}} : i8 to i4
func.func @load(%in: memref<7xi4>, %i: index) -> i4 attributes {xla.entry, warpsmith.target = "sm_90"} {
  %x = memref.load %in[%i] : memref<7xi4>
  return %x : i4
}

// -----

// Nobody else writes the byte: lower elements are kept, upper ones cleared.
// CHECK-LABEL: func.func @owned
// CHECK: [[OLD:%\w+]] = memref.load %out
// CHECK-NEXT: arith.andi [[OLD]]
// CHECK-NEXT: arith.ori
// CHECK-NEXT: memref.store
// CHECK-NOT: atomic
func.func @owned(%out: memref<8xi2>, %x: i2, %i: index)
    attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.whole_bytes} {
  memref.store %x, %out[%i] : memref<8xi2>
  return
}

// -----

// Somebody may write the other half of the byte.
// CHECK-LABEL: func.func @shared_byte
// CHECK: [[MASK:%\w+]] = arith.xori
// CHECK: memref.atomic_rmw andi [[MASK]], %out[{{.*}}] : (i8, memref<4xi8>) -> i8
// CHECK: memref.atomic_rmw ori {{.*}}, %out[{{.*}}] : (i8, memref<4xi8>) -> i8
func.func @shared_byte(%out: memref<8xi4>, %x: i4, %i: index) attributes {xla.entry, warpsmith.target = "sm_90"} {
  memref.store %x, %out[%i] : memref<8xi4>
  return
}

// -----

// While others write the other half, the byte is read by an atomic operation, too; what nobody writes is just loaded.
// CHECK-LABEL: func.func @read_and_written
// CHECK: memref.load %in
// CHECK-NOT: memref.load %out
// CHECK: memref.atomic_rmw ori {{.*}}, %out[{{.*}}] : (i8, memref<4xi8>) -> i8
// CHECK: memref.atomic_rmw andi
// CHECK: memref.atomic_rmw ori
func.func @read_and_written(%in: memref<8xi4>, %out: memref<8xi4>, %i: index)
    attributes {xla.entry, warpsmith.target = "sm_90"} {
  %x = memref.load %in[%i] : memref<8xi4>
  %y = memref.load %out[%i] : memref<8xi4>
  %z = arith.addi %x, %y : i4
  memref.store %z, %out[%i] : memref<8xi4>
  return
}

// -----

// Vectors of whole bytes: one access, lanes by shifts and shuffles. f4 goes as i4.
// CHECK-LABEL: func.func @vectors
// CHECK: vector.load {{.*}} {alignment = 2 : i64} : memref<8xi8>, vector<2xi8>
// CHECK: vector.shuffle {{.*}} [0, 2, 1, 3]
// CHECK: arith.trunci {{.*}} : vector<4xi8> to vector<4xi4>
// CHECK-NEXT: arith.bitcast {{.*}} : vector<4xi4> to vector<4xf4E2M1FN>
// CHECK: vector.shuffle {{.*}} [0, 2]
// CHECK: vector.shuffle {{.*}} [1, 3]
// CHECK: vector.store {{.*}} : memref<8xi8>, vector<2xi8>
func.func @vectors(%in: memref<16xf4E2M1FN>, %out: memref<16xf4E2M1FN>, %i: index)
    attributes {xla.entry, warpsmith.target = "sm_90"} {
  %v = vector.load %in[%i] {alignment = 2 : i64} : memref<16xf4E2M1FN>, vector<4xf4E2M1FN>
  vector.store %v, %out[%i] : memref<16xf4E2M1FN>, vector<4xf4E2M1FN>
  return
}

// -----

// Constants are packed, element 0 lowest: 1, 2, 3, -1 are 0x21 and 0xf3.
// CHECK: memref.global {{.*}} : memref<2xi8> = dense<[33, -13]>
memref.global "private" constant @table : memref<4xi4> = dense<[1, 2, 3, -1]>
func.func @constants(%i: index) -> i4 attributes {xla.entry, warpsmith.target = "sm_90"} {
  %t = memref.get_global @table : memref<4xi4>
  %x = memref.load %t[%i] : memref<4xi4>
  return %x : i4
}

// -----

// On a CPU an element takes a byte, as in numpy.
// CHECK-LABEL: func.func @bytes
// CHECK-SAME: %in: memref<7xi8>
// CHECK-NOT: warpsmith.unpacked
// CHECK: memref.load %in[%i] : memref<7xi8>
// CHECK-NEXT: arith.trunci {{.*}} : i8 to i4
// CHECK-NEXT: arith.extui {{.*}} : i4 to i8
// CHECK-NEXT: memref.store
func.func @bytes(%in: memref<7xi4>, %out: memref<7xi4>, %i: index) attributes {xla.entry, warpsmith.target = "cpu"} {
  %x = memref.load %in[%i] : memref<7xi4>
  memref.store %x, %out[%i] : memref<7xi4>
  return
}
