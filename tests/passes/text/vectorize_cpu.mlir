// RUN: vectorize-cpu{vector_bits=256}

// CHECK-LABEL: func.func @square
// CHECK: scf.for %i = %c0 to {{%\w+}} step %c8 {
// CHECK-NEXT: [[X:%\w+]] = vector.load %in[%i] : memref<64xf32>, vector<8xf32>
// CHECK-NEXT: [[Y:%\w+]] = arith.mulf [[X]], [[X]] : vector<8xf32>
// CHECK-NEXT: vector.store [[Y]], %out[%i] : memref<64xf32>, vector<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @square(%in: memref<64xf32>, %out: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %x = memref.load %in[%i] : memref<64xf32>
    %y = arith.mulf %x, %x : f32
    memref.store %y, %out[%i] : memref<64xf32>
  }
  return
}

// -----

// The rest is the same body once more, under a mask; a uniform element is loaded once.
// CHECK-LABEL: func.func @tail
// CHECK: scf.for %i = %c0 to [[END:%\w+]] step %c8 {
// CHECK: [[S:%\w+]] = memref.load %k[%c1]
// CHECK-NEXT: vector.broadcast [[S]] : f32 to vector<8xf32>
// CHECK: [[LEFT:%\w+]] = arith.subi %n, [[END]] : index
// CHECK: scf.if
// CHECK-NEXT: [[MASK:%\w+]] = vector.create_mask [[LEFT]] : vector<8xi1>
// CHECK: vector.maskedload %in[[[END]]], [[MASK]],
// CHECK: memref.load %k[%c1]
// CHECK: vector.maskedstore %out[[[END]]], [[MASK]],
func.func @tail(%in: memref<64xf32>, %out: memref<64xf32>, %k: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %in[%i] : memref<64xf32>
    %s = memref.load %k[%c1] : memref<4xf32>
    %y = arith.mulf %x, %s : f32
    memref.store %y, %out[%i] : memref<64xf32>
  }
  return
}

// -----

// A branch on a varying condition runs both sides; its loads are masked, for they may lie outside.
// CHECK-LABEL: func.func @branch
// CHECK: [[C:%\w+]] = arith.cmpi uge, {{.*}} : vector<8xindex>
// CHECK: [[X:%\w+]] = vector.maskedload %in[{{%\w+}}], [[C]],
// CHECK: arith.select [[C]], [[X]], {{%\w+}} : vector<8xi1>, vector<8xf32>
func.func @branch(%in: memref<64xf32>, %out: memref<64xf32>, %z: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %c = arith.cmpi uge, %i, %c7 : index
    %y = scf.if %c -> (f32) {
      %p = arith.subi %i, %c7 : index
      %x = memref.load %in[%p] : memref<64xf32>
      scf.yield %x : f32
    } else {
      scf.yield %z : f32
    }
    memref.store %y, %out[%i] : memref<64xf32>
  }
  return
}

// -----

// An element anywhere is gathered.
// CHECK-LABEL: func.func @gather
// CHECK: [[AT:%\w+]] = arith.index_cast {{%\w+}} : vector<8xi32> to vector<8xindex>
// CHECK: vector.gather %in[%c0{{\w*}}] [[[AT]]], {{.*}} into vector<8xf32>
func.func @gather(%at: memref<16xi32>, %in: memref<64xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %j = memref.load %at[%i] : memref<16xi32>
    %p = arith.index_cast %j : i32 to index
    %x = memref.load %in[%p] : memref<64xf32>
    memref.store %x, %out[%i] : memref<16xf32>
  }
  return
}

// -----

// Stores must be neighbours.
// CHECK-LABEL: func.func @strided_store
// CHECK-NOT: vector
// CHECK: return
func.func @strided_store(%in: memref<64xf32>, %out: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %p = arith.muli %i, %c4 : index
    %x = memref.load %in[%i] : memref<64xf32>
    memref.store %x, %out[%p] : memref<64xf32>
  }
  return
}

// -----

// A loop inside runs once for all lanes, with a vector where it carried a scalar.
// CHECK-LABEL: func.func @column_sums
// CHECK: [[R:%\w+]] = scf.for %j = %c0 to %c5 step %c1 iter_args([[A:%\w+]] = {{%\w+}}) -> (vector<8xf32>) {
// CHECK: vector.load %in[{{%\w+}}]
// CHECK: arith.addf [[A]], {{%\w+}} : vector<8xf32>
// CHECK: vector.store [[R]], %out[%i]
func.func @column_sums(%in: memref<80xf32>, %out: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c16 step %c1 {
    %r = scf.for %j = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
      %row = arith.muli %j, %c16 : index
      %p = arith.addi %row, %i : index
      %x = memref.load %in[%p] : memref<80xf32>
      %s = arith.addf %a, %x : f32
      scf.yield %s : f32
    }
    memref.store %r, %out[%i] : memref<16xf32>
  }
  return
}

// -----

// An iteration that reads what another one wrote stays behind it.
// CHECK-LABEL: func.func @recurrence
// CHECK-NOT: vector
// CHECK: return
func.func @recurrence(%out: memref<65xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %x = memref.load %out[%i] : memref<65xf32>
    %y = arith.addf %x, %x : f32
    %next = arith.addi %i, %c1 : index
    memref.store %y, %out[%next] : memref<65xf32>
  }
  return
}

// -----

// So do two stores that meet at one element, and a store that an inner loop moves by less than the loop's extent.
// CHECK-LABEL: func.func @overlapping_stores
// CHECK-NOT: vector
// CHECK: return
func.func @overlapping_stores(%in: memref<64xf32>, %out: memref<72xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %x = memref.load %in[%i] : memref<64xf32>
    %y = arith.addf %x, %x : f32
    %later = arith.addi %i, %c8 : index
    memref.store %x, %out[%i] : memref<72xf32>
    memref.store %y, %out[%later] : memref<72xf32>
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %x = memref.load %in[%i] : memref<64xf32>
    scf.for %k = %c0 to %c8 step %c4 {
      %p = arith.addi %i, %k : index
      memref.store %x, %out[%p] : memref<72xf32>
    }
  }
  return
}

// -----

// What lies a whole extent apart never meets, nor does an iteration meet others when it updates its own element.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-5: vector.store
// CHECK: return
func.func @apart(%in: memref<64xf32>, %out: memref<576xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %x = memref.load %in[%i] : memref<64xf32>
    %o = memref.load %out[%i] : memref<576xf32>
    %s = arith.addf %x, %o : f32
    memref.store %s, %out[%i] : memref<576xf32>
    %t = arith.mulf %x, %o : f32
    memref.store %t, %out[%i] : memref<576xf32>
    %later = arith.addi %i, %c64 : index
    memref.store %x, %out[%later] : memref<576xf32>
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %x = memref.load %in[%i] : memref<64xf32>
    scf.for %k = %c0 to %c8 step %c1 {
      %row = arith.muli %k, %c64 : index
      %p = arith.addi %i, %row : index
      memref.store %x, %out[%p] : memref<576xf32>
      %q = arith.addi %p, %c64 : index
      memref.store %x, %out[%q] : memref<576xf32>
    }
  }
  return
}

// -----

// Where a branch or the end of the loop excludes a lane, its division divides by 1: by zero it would trap.
// CHECK-LABEL: func.func @guarded_division
// CHECK: scf.for %i = %c0 to {{%\w+}} step %c8 {
// CHECK: [[C:%\w+]] = arith.cmpi ne, {{.*}} : vector<8xi32>
// CHECK: vector.maskedload %a[%i], [[C]],
// CHECK: [[ONE:%\w+]] = arith.constant dense<1> : vector<8xi32>
// CHECK: [[D:%\w+]] = arith.select [[C]], {{%\w+}}, [[ONE]]
// CHECK: arith.divsi {{%\w+}}, [[D]]
// CHECK: [[SOME:%\w+]] = arith.cmpi ne, {{%\w+}}, {{%\w+}} : i8
// CHECK: [[E:%\w+]] = arith.select [[SOME]], %n, {{%\w+}} : i32
// CHECK: arith.remui %m, [[E]] : i32
// CHECK: [[TAIL:%\w+]] = vector.create_mask
// CHECK: [[BOTH:%\w+]] = arith.andi [[TAIL]], {{%\w+}}
// CHECK: arith.select [[BOTH]],
// CHECK: arith.divsi
// CHECK: arith.remui
// CHECK: [[F:%\w+]] = arith.select [[TAIL]],
// CHECK: arith.divui {{%\w+}}, [[F]]
func.func @guarded_division(%a: memref<61xi32>, %b: memref<61xi32>, %out: memref<61xi32>, %m: i32, %n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c61 = arith.constant 61 : index
  %zero = arith.constant 0 : i32
  scf.for %i = %c0 to %c61 step %c1 {
    %d = memref.load %b[%i] : memref<61xi32>
    %c = arith.cmpi ne, %d, %zero : i32
    %q = scf.if %c -> (i32) {
      %x = memref.load %a[%i] : memref<61xi32>
      %y = arith.divsi %x, %d : i32
      %r = arith.remui %m, %n : i32
      %z = arith.addi %y, %r : i32
      scf.yield %z : i32
    } else {
      scf.yield %zero : i32
    }
    %e = memref.load %a[%i] : memref<61xi32>
    %u = arith.divui %q, %e : i32
    memref.store %u, %out[%i] : memref<61xi32>
  }
  return
}

// -----

// A loop over a vector's elements is the vector's own op; the lanes that a condition leaves out keep what they had.
// CHECK-LABEL: func.func @elements
// CHECK: [[X:%\w+]] = vector.load %in[%c0] : memref<16xf32>, vector<16xf32>
// CHECK: [[S:%\w+]] = arith.addf %start, [[X]] : vector<16xf32>
// CHECK: [[Y:%\w+]] = vector.maskedload %in[%c0]
// CHECK: [[T:%\w+]] = arith.addf [[S]], [[Y]] : vector<16xf32>
// CHECK: [[R:%\w+]] = arith.select {{%\w+}}, [[T]], [[S]] : vector<16xi1>, vector<16xf32>
// CHECK: return [[R]]
func.func @elements(%in: memref<16xf32>, %start: vector<16xf32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c16 = arith.constant 16 : index
  %sum = scf.for %l = %c0 to %c16 step %c1 iter_args(%acc = %start) -> (vector<16xf32>) {
    %a = vector.extract %acc[%l] : f32 from vector<16xf32>
    %x = memref.load %in[%l] : memref<16xf32>
    %b = arith.addf %a, %x : f32
    %v = vector.insert %b, %acc [%l] : f32 into vector<16xf32>
    scf.yield %v : vector<16xf32>
  }
  %most = scf.for %l = %c0 to %c16 step %c1 iter_args(%acc = %sum) -> (vector<16xf32>) {
    %inside = arith.cmpi slt, %l, %c9 : index
    %next = scf.if %inside -> (vector<16xf32>) {
      %a = vector.extract %acc[%l] : f32 from vector<16xf32>
      %x = memref.load %in[%l] : memref<16xf32>
      %b = arith.addf %a, %x : f32
      %v = vector.insert %b, %acc [%l] : f32 into vector<16xf32>
      scf.yield %v : vector<16xf32>
    } else {
      scf.yield %acc : vector<16xf32>
    }
    scf.yield %next : vector<16xf32>
  }
  return %most : vector<16xf32>
}

// -----

// An element that another one's value goes into: one after the other.
// CHECK-LABEL: func.func @chain
// CHECK: scf.for
// CHECK: vector.insert
func.func @chain(%start: vector<16xf32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %sum = scf.for %l = %c0 to %c16 step %c1 iter_args(%acc = %start) -> (vector<16xf32>) {
    %a = vector.extract %acc[%l] : f32 from vector<16xf32>
    %before = arith.subi %c15, %l : index
    %x = vector.extract %acc[%before] : f32 from vector<16xf32>
    %b = arith.addf %a, %x : f32
    %v = vector.insert %b, %acc [%l] : f32 into vector<16xf32>
    scf.yield %v : vector<16xf32>
  }
  return %sum : vector<16xf32>
}
