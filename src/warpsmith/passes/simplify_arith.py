"""simplify-arith: integer ranges are noted on ops, and what they decide is decided.

    %t = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
    %c = arith.cmpi sle, %t, %c127 : index                        ->   scf.if's body, without the if
    scf.if %c {...}

Step A notes ranges (one walk); step B decides comparisons, picks winners of min and max, narrows the bounds of index
maps, and moves truncations below bit operations; step C is scf's canonical forms, so that ifs with decided conditions
vanish.  As XLA's `simplify_arith.cc`, except: a range that could leave its type's width is not noted (integers
wrap); unsigned comparisons are decided only for values known not to be negative.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.indexing import Interval, Variable
from warpsmith.indexing.rewire import symbols_to_dims
from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core.attributes import boolean, indexing_map, int_range, splat_or_scalar
from warpsmith.ir.core.rewriter import Rewriter, rewrite
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import I1, IndexType, IntegerType, Type, bit_width, element_type
from warpsmith.ir.dialects import gpu
from warpsmith.ir.dialects.arith import constant_int, constant_value
from warpsmith.passes.canonicalize import indexing, merge, scf

CONTRACT = "bit-exact, except math.atan2 with 1.0 (becomes math.atan: each within its own bound)"


def run(module: Operation) -> None:
    """Annotate and simplify every function of `module`."""
    for op in module.walk():
        annotate = _RANGES.get(op.row.name)
        if annotate is not None and "xla.range" not in op.attributes:
            annotate(op)
    rewrite(module, _PATTERNS)


# ------------------------------------------------------------------------------------------------- step A: annotation
def _limits(type: Type) -> Interval | None:
    """All values of a scalar integer type."""
    if isinstance(type, IndexType):
        return Interval.full()
    if not isinstance(type, IntegerType) or type is I1:
        return None
    half = 1 << (bit_width(type) - 1)
    return Interval(-half, half - 1)


def _note(op: Operation, found: Interval) -> None:
    limits = _limits(op.results[0].type)
    if limits is not None and limits.contains(found) and found != limits and not found.is_empty:
        op.attributes["xla.range"] = int_range(found.lower, found.upper)


def _binary_range(combine: Callable[[Interval, Interval], Interval]) -> Callable[[Operation], None]:
    def annotate(op: Operation) -> None:
        limits = _limits(op.results[0].type)
        if limits is not None:
            left, right = (range_of(v) or limits for v in op.operands)
            _note(op, combine(left, right))

    return annotate


def _cast_range(op: Operation) -> None:
    found = range_of(op.operands[0])
    if found is not None:
        _note(op, found)


def _absolute_range(op: Operation) -> None:
    """select (x sge 0), x, (0 - x)."""
    condition, x, negated = op.operands
    compare, subtract = condition.defining_op, negated.defining_op
    limits = _limits(op.results[0].type)
    if compare is None or subtract is None or limits is None:
        return
    if compare.row.name != "arith.cmpi" or compare.int_attr("predicate") != 5 or compare.operands[0] is not x:
        return
    if constant_int(compare.operands[1]) != 0 or subtract.row.name != "arith.subi" or subtract.operands[1] is not x:
        return
    if constant_int(subtract.operands[0]) != 0:
        return
    found = range_of(x)
    if found is None or found.lower == limits.lower:
        # The least value has no positive twin: its absolute value wraps to itself.
        return
    _note(op, Interval(max(found.lower, -found.upper, 0), max(-found.lower, found.upper)))


_RANGES: dict[str, Callable[[Operation], None]] = {
    "arith.maxsi": _binary_range(Interval.max),
    "arith.minsi": _binary_range(Interval.min),
    "arith.addi": _binary_range(lambda a, b: a + b),
    "arith.muli": _binary_range(lambda a, b: a * b),
    "arith.index_cast": _cast_range,
    "arith.select": _absolute_range,
}

# --------------------------------------------------------------------------------------------------- step B: patterns
_DECIDE: dict[int, Callable[[Interval, Interval], bool | None]] = {
    0: Interval.eq,
    1: Interval.ne,
    2: Interval.lt,
    3: Interval.le,
    4: Interval.gt,
    5: Interval.ge,
}


def decide_comparison(op: Operation, rewriter: Rewriter) -> bool:
    """cmpi whose operands' ranges settle it."""
    if element_type(op.operands[0].type) is I1:
        return False
    left = range_of(op.operands[0])
    right = range_of(op.operands[1]) if left is not None else None
    if left is None or right is None:
        return False
    predicate = op.int_attr("predicate")
    if predicate > 5:
        if left.lower < 0 or right.lower < 0:
            return False
        predicate -= 4
    answer = _DECIDE[predicate](left, right)
    if answer is None:
        return False
    type = op.results[0].type
    rewriter.replace(op, [rewriter.constant(op, splat_or_scalar(boolean(answer), type), type)])
    return True


def pick_winner(op: Operation, rewriter: Rewriter) -> bool:
    """min or max whose operands' ranges settle which one it is."""
    left, right = (range_of(v) for v in op.operands)
    if left is None or right is None:
        return False
    if op.row.name.endswith("ui") and (left.lower < 0 or right.lower < 0):
        return False
    larger = op.row.name.startswith("arith.max")
    if left.upper <= right.lower:
        rewriter.replace(op, [op.operands[1 if larger else 0]])
        return True
    if right.upper <= left.lower:
        rewriter.replace(op, [op.operands[0 if larger else 1]])
        return True
    return False


def refine_bounds(op: Operation, rewriter: Rewriter) -> bool:
    """An apply_indexing's variables get the bounds that their operands are known to have."""
    map = gpu.map_of(op)
    if map.known_empty:
        return False
    if map.num_symbols:
        map = symbols_to_dims(map)
    variables: list[Variable] = []
    narrowed = False
    for value, variable in zip(op.operands, map.dim_vars, strict=True):
        found = range_of(value)
        both = variable.bounds if found is None else variable.bounds.intersect(found)
        if both.is_empty or both == variable.bounds:
            variables.append(variable)
        else:
            narrowed = True
            variables.append(Variable(variable.name, both))
    if not narrowed:
        return False
    for i, variable in enumerate(variables):
        map = map.with_dim_bounds(i, variable.bounds)
    op.attributes["map"] = indexing_map(map.simplify())
    rewriter.changed(op)
    indexing.apply_indexing(op, rewriter)
    return True


def _narrowest(value: Value) -> tuple[Value, Value | None]:
    """The first value of a chain of extui and trunci with the fewest bits; and a wider source that it was cut from."""
    best, wide = value, None
    current = value
    while True:
        op = current.defining_op
        if op is None or op.row.name not in ("arith.extui", "arith.trunci"):
            return best, wide
        source = op.operands[0]
        if bit_width(source.type) < bit_width(best.type):
            best, wide = source, None
        elif op.row.name == "arith.trunci" and current is best:
            wide = source
        current = source


def widen_bit_operation(op: Operation, rewriter: Rewriter) -> bool:
    """and/or of values cut from wide ones: done on the wide ones, and cut once.

    A warp reduction of i1 by `or` then runs on whole words, with one truncation at its end.
    """
    type = op.results[0].type
    if not isinstance(type, IntegerType):
        return False
    (left, left_wide), (right, right_wide) = (_narrowest(v) for v in op.operands)
    if left.type is not right.type or (left_wide is None and right_wide is None):
        return False
    target = (left_wide or right_wide or left).type
    if (left_wide or right_wide) is None or (left_wide and right_wide and left_wide.type is not right_wide.type):
        return False
    b = rewriter.builder(op)
    wide = [
        w if w is not None else b.op1("arith.extui", (n,), target) for n, w in ((left, left_wide), (right, right_wide))
    ]
    result = b.op1("arith.trunci", (b.op1(op.row.name, wide, target),), left.type)
    if left.type is not type:
        name = "arith.extui" if bit_width(left.type) < bit_width(type) else "arith.trunci"
        result = b.op1(name, (result,), type)
    rewriter.replace(op, [result])
    return True


def shuffle_before_truncation(op: Operation, rewriter: Rewriter) -> bool:
    """shuffle(extui(trunci(x))) with x as wide as the shuffle: shuffle(x), then trunci and extui."""
    extend = op.operands[0].defining_op
    if extend is None or extend.row.name != "arith.extui":
        return False
    cut = extend.operands[0].defining_op
    if cut is None or cut.row.name != "arith.trunci" or cut.operands[0].type is not op.operands[0].type:
        return False
    b = rewriter.builder(op)
    new = b.create("gpu.shuffle", [cut.operands[0], *op.operands[1:]], [r.type for r in op.results], op.attributes)
    narrow = b.op1("arith.trunci", (new.results[0],), cut.results[0].type)
    wide = b.op1("arith.extui", (narrow,), op.results[0].type)
    for old, value in zip(op.results, (wide, new.results[1]), strict=True):
        rewriter.replace_value(old, value)
    rewriter.erase(op)
    return True


def atan2_of_one(op: Operation, rewriter: Rewriter) -> bool:
    """atan2(x, 1.0) is atan(x)."""
    right = constant_value(op.operands[1])
    if right is None or right.value != 1.0:
        return False
    kept = {k: v for k, v in op.attributes.items() if k == "fastmath"}
    rewriter.replace(op, [rewriter.builder(op).op1("math.atan", op.operands[:1], op.results[0].type, kept)])
    return True


_PATTERNS = merge(
    {
        "arith.cmpi": (decide_comparison,),
        **{f"arith.{n}": (pick_winner,) for n in ("maxsi", "minsi", "maxui", "minui")},
        "arith.andi": (widen_bit_operation,),
        "arith.ori": (widen_bit_operation,),
        "gpu.shuffle": (shuffle_before_truncation,),
        "math.atan2": (atan2_of_one,),
        "xla_gpu.apply_indexing": (refine_bounds,),
    },
    scf.PATTERNS,
)
