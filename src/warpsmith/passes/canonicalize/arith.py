"""Canonical forms of arith: chains of constants collapse, casts of casts become one, comparisons lean to the right.

    %a = arith.addi %x, %c1 : index
    %b = arith.addi %a, %c2 : index   ->   %b = arith.addi %x, %c3 : index

Only rules that keep every bit; what needs ranges is in `passes/simplify_arith.py`.
"""

from __future__ import annotations

import numpy as np

from warpsmith.ir.core.attributes import IntegerAttr, integer_attr
from warpsmith.ir.core.folding import attribute_of, constant_array, constant_attribute
from warpsmith.ir.core.rewriter import Pattern, Rewriter
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import I1, I64, bit_width, element_type
from warpsmith.ir.dialects.arith import constant_int

__all__ = ["INVERSE", "PATTERNS", "SWAPPED"]

# cmpi predicates: with the operands exchanged, and negated.
SWAPPED = {0: 0, 1: 1, 2: 4, 3: 5, 4: 2, 5: 3, 6: 8, 7: 9, 8: 6, 9: 7}
INVERSE = {0: 1, 1: 0, 2: 5, 3: 4, 4: 3, 5: 2, 6: 9, 7: 8, 8: 7, 9: 6}


def _maker(value: Value, name: str) -> Operation | None:
    op = value.defining_op
    return op if op is not None and op.row.name == name else None


def reassociate(op: Operation, rewriter: Rewriter) -> bool:
    """(x . c1) . c2 becomes x . (c1 . c2), for addi, muli, andi, ori, xori."""
    inner = _maker(op.operands[0], op.row.name)
    if inner is None:
        return False
    left, right = constant_attribute(inner.operands[1]), constant_attribute(op.operands[1])
    if left is None or right is None or op.row.numpy is None:
        return False
    a, b = constant_array(left), constant_array(right)
    if a is None or b is None:
        return False
    attribute = attribute_of(np.asarray(op.row.numpy(op, a, b)), op.results[0].type)
    if attribute is None:
        return False
    combined = rewriter.constant(op, attribute, op.results[0].type)
    # The flags of either op say nothing about the combined one.
    op.attributes.pop("overflowFlags", None)
    rewriter.set_operands(op, (inner.operands[0], combined))
    return True


def subtract_constant(op: Operation, rewriter: Rewriter) -> bool:
    """x - c becomes x + (-c), which then joins other sums."""
    attribute = constant_attribute(op.operands[1])
    if not isinstance(attribute, IntegerAttr):
        return False
    builder = rewriter.builder(op)
    negated = rewriter.constant(op, integer_attr(-attribute.value, attribute.type), attribute.type)
    kept = {k: v for k, v in op.attributes.items() if k == "xla.range"}
    rewriter.replace(op, [builder.op1("arith.addi", (op.operands[0], negated), op.results[0].type, kept)])
    return True


def compare_leans_right(op: Operation, rewriter: Rewriter) -> bool:
    """A constant is the right operand of a comparison."""
    left, right = op.operands
    if constant_attribute(left) is None or constant_attribute(right) is not None:
        return False
    op.attributes["predicate"] = integer_attr(SWAPPED[op.int_attr("predicate")], I64)
    rewriter.set_operands(op, (right, left))
    return True


def compare_of_boolean(op: Operation, rewriter: Rewriter) -> bool:
    """`x == true` and `x != false` are x, for an i1 and for an i1 that was extended."""
    predicate, value = op.int_attr("predicate"), constant_int(op.operands[1])
    if predicate > 1 or value is None:
        return False
    source = op.operands[0]
    maker = source.defining_op
    if maker is not None and maker.row.name in ("arith.extui", "arith.extsi"):
        truth = 1 if maker.row.name == "arith.extui" else -1
        source = maker.operands[0]
    else:
        truth = 1
    if element_type(source.type) is not I1 or value not in (0, truth):
        return False
    if (predicate == 0) != (value == truth):
        return False
    rewriter.replace(op, [source])
    return True


def invert_comparison(op: Operation, rewriter: Rewriter) -> bool:
    """`not (a < b)` is `a >= b` for integers; `not not x` is x."""
    if element_type(op.results[0].type) is not I1 or constant_int(op.operands[1]) != 1:
        return False
    compare = _maker(op.operands[0], "arith.cmpi")
    if compare is not None:
        inverse = integer_attr(INVERSE[compare.int_attr("predicate")], I64)
        new = rewriter.builder(op).op1("arith.cmpi", compare.operands, op.results[0].type, {"predicate": inverse})
        rewriter.replace(op, [new])
        return True
    return False


def select_of_booleans(op: Operation, rewriter: Rewriter) -> bool:
    """select c, true, false is c."""
    if element_type(op.results[0].type) is not I1 or op.operands[0].type is not op.results[0].type:
        return False
    if constant_int(op.operands[1]) == 1 and constant_int(op.operands[2]) == 0:
        rewriter.replace(op, [op.operands[0]])
        return True
    return False


def select_of_not(op: Operation, rewriter: Rewriter) -> bool:
    """select (not c), a, b is select c, b, a."""
    negation = _maker(op.operands[0], "arith.xori")
    if negation is None or constant_int(negation.operands[1]) != 1 or element_type(negation.results[0].type) is not I1:
        return False
    rewriter.set_operands(op, (negation.operands[0], op.operands[2], op.operands[1]))
    return True


def extend_of_extend(op: Operation, rewriter: Rewriter) -> bool:
    """ext(ext(x)) is one ext, for extui, extsi, extf, and sign extension of a zero extension."""
    inner = op.operands[0].defining_op
    if inner is None:
        return False
    name = inner.row.name
    if name != op.row.name and not (op.row.name == "arith.extsi" and name == "arith.extui"):
        return False
    rewriter.replace(op, [rewriter.builder(op).op1(name, inner.operands, op.results[0].type)])
    return True


def truncate_of_cast(op: Operation, rewriter: Rewriter) -> bool:
    """trunci of trunci, or of an extension to a type that is still wider or narrower than the source."""
    inner = op.operands[0].defining_op
    if inner is None or inner.row.name not in ("arith.trunci", "arith.extui", "arith.extsi"):
        return False
    source, target = inner.operands[0], op.results[0].type
    if inner.row.name == "arith.trunci":
        name = "arith.trunci"
    else:
        have, want = bit_width(element_type(source.type)), bit_width(element_type(target))
        if have == want:
            return False  # a fold
        name = inner.row.name if have < want else "arith.trunci"
    rewriter.replace(op, [rewriter.builder(op).op1(name, (source,), target)])
    return True


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    **{f"arith.{name}": (reassociate,) for name in ("addi", "muli", "andi", "ori")},
    "arith.xori": (invert_comparison, reassociate),
    "arith.subi": (subtract_constant,),
    "arith.cmpi": (compare_leans_right, compare_of_boolean),
    "arith.select": (select_of_booleans, select_of_not),
    "arith.extui": (extend_of_extend,),
    "arith.extsi": (extend_of_extend,),
    "arith.extf": (extend_of_extend,),
    "arith.trunci": (truncate_of_cast,),
}
