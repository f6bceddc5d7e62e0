// RUN: canonicalize

// Of two equal constants at the head the first is unused and goes; what follows still stands before its users.
// CHECK-LABEL: func.func @twins
// CHECK-NEXT: [[K:%\w+]] = arith.constant 3 : i32
// CHECK-NEXT: [[L:%\w+]] = arith.constant 5 : i32
// CHECK-NEXT: [[A:%\w+]] = arith.addi %x, [[K]] : i32
// CHECK-NEXT: [[B:%\w+]] = arith.muli [[A]], [[L]] : i32
// CHECK-NEXT: return [[B]]
func.func @twins(%x: i32) -> i32 {
  %unused = arith.constant 3 : i32
  %k = arith.constant 3 : i32
  %a = arith.addi %x, %k : i32
  %l = arith.constant 5 : i32
  %b = arith.muli %a, %l : i32
  return %b : i32
}
