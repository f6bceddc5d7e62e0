// Two equal additions, and a sum that folds.
func.func @f(%a: index) -> index {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %five = arith.addi %c2, %c3 : index
  %x = arith.addi %a, %five : index
  %y = arith.addi %a, %five : index
  %z = arith.muli %x, %y : index
  return %z : index
}
