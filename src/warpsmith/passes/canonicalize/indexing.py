"""Canonical forms of apply_indexing and xla_gpu.loop.

    %a = xla_gpu.apply_indexing #(d0) -> (d0 * 4)(%x)
    %b = xla_gpu.apply_indexing #(d0)[s0] -> (d0 + s0)(%a)[%y]   ->   %b = ... #(d0, d1) -> (d0 * 4 + d1)(%x, %y)

apply_indexing: symbols become dims, constants go into the map, producers are composed (when this is their only use,
they are linear, or the map gets simpler), equal operands share a dim, unused dims go, results that are constants or
bare variables leave the op.  Loops: dims that are one known value, or computed by an
apply_indexing, go into the map.  As in XLA, except: a dim shared by producer and consumer gets the bounds that
both state.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.indexing import Const, Expr, IndexingMap, Interval, Var, Variable, const, dim, substitute
from warpsmith.indexing.expr import split_coefficient, terms_of
from warpsmith.indexing.nodes import MAX_DEPTH
from warpsmith.indexing.rewire import drop_variables, remove_unused_vars, symbols_to_dims, unused_variables
from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core.attributes import dense_array, indexing_map, integer_attr
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.rewriter import Pattern, Rewriter
from warpsmith.ir.core.ssa import Operation, OpResult, Value
from warpsmith.ir.core.types import I32, INDEX
from warpsmith.ir.dialects import gpu

__all__ = ["PATTERNS", "canonical_apply", "size_of"]

# Composing stops here: a long chain of ops would else become one expression of quadratic size.
_MAX_DIMS = 32
_MAX_DEPTH = MAX_DEPTH // 4


def size_of(expr: Expr) -> int:
    """Leaves and operators of an expression written out."""
    size, stack = 0, [expr]
    while stack:
        node = stack.pop()
        children = node.children
        size += max(1, len(children) - 1) if children else 1
        stack.extend(children)
    return size


def _occurrences(expr: Expr, variable: Expr) -> int:
    count, stack = 0, [expr]
    while stack:
        node = stack.pop()
        count += node is variable
        stack.extend(node.children)
    return count


class _Dims:
    """The dims of a map in the making: one a value, with the bounds that all its uses state."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.variables: list[Variable] = []
        self.number: dict[Value, int] = {}

    def add(self, value: Value, variable: Variable) -> Expr:
        """The expression that stands for `value`."""
        constant = constant_of(value)
        if constant is not None:
            return const(constant.value)
        known = self.number.get(value)
        if known is None:
            self.number[value] = len(self.values)
            self.values.append(value)
            self.variables.append(variable)
            return dim(len(self.values) - 1)
        old = self.variables[known]
        both = old.bounds.intersect(variable.bounds)
        if both != old.bounds and not both.is_empty:
            self.variables[known] = Variable(old.name or variable.name, both)
        return dim(known)


_Producer = tuple[Operation, IndexingMap, int]


def _producer(value: Value, depth: int = MAX_DEPTH, dims: int = 1 << 30) -> _Producer | None:
    """The apply_indexing that makes `value`, with its map in terms of dims alone.

    None when there is none, its domain is empty, or the expression is deeper or has more dims than said.
    """
    if not isinstance(value, OpResult) or value.op.row.name != "xla_gpu.apply_indexing":
        return None
    map = gpu.map_of(value.op)
    if map.known_empty or map.results[value.index].depth > depth or len(value.op.operands) > dims:
        return None
    return value.op, symbols_to_dims(map) if map.num_symbols else map, value.index


def _joined(map: IndexingMap, operands: Sequence[Value], composed: Sequence[bool]) -> tuple[IndexingMap, list[Value]]:
    """`map` with constants and the picked operands' producers put into it, equal operands joined.

    `map` has dims alone.  The same map when there is nothing to do.
    """
    dims = _Dims()
    replacements: dict[Expr, Expr] = {}
    for i, (value, variable) in enumerate(zip(operands, map.dim_vars, strict=True)):
        made = _producer(value) if composed[i] else None
        if made is None:
            new = dims.add(value, variable)
        else:
            op, inner, index = made
            inside: dict[Expr, Expr] = {
                dim(k): dims.add(v, w) for k, (v, w) in enumerate(zip(op.operands, inner.dim_vars, strict=True))
            }
            new = substitute(inner.results[index], inside)
        if new is not dim(i):
            replacements[dim(i)] = new
    if not replacements:
        return map, list(operands)
    memo: dict[Expr, Expr] = {}
    results = tuple(substitute(e, replacements, memo) for e in map.results)
    return IndexingMap(tuple(dims.variables), (), (), results), dims.values


def _got_simpler(old: IndexingMap, makers: Sequence[_Producer | None], new: IndexingMap) -> bool:
    """Whether `new` is smaller than `old` with its producers' expressions written in place of the operands."""
    written = sum(map(size_of, old.results))
    for i, made in enumerate(makers):
        if made is not None:
            inner = size_of(made[1].results[made[2]])
            written += sum(_occurrences(e, dim(i)) for e in old.results) * (inner - 1)
    return sum(map(size_of, new.results)) < written


def _is_linear(made: _Producer) -> bool:
    """Whether the producer's expression is a sum of multiples: written twice it costs next to nothing, and strides stay
    visible.
    """
    return all(type(split_coefficient(term)[0]) in (Var, Const) for term in terms_of(made[1].results[made[2]]))


def _is_only_user(op: Operation, made: _Producer) -> bool:
    return all(user is op for r in made[0].results for user in r.users)


def canonical_apply(op: Operation, map: IndexingMap) -> tuple[IndexingMap, list[Value]]:
    """The canonical map and operands of an apply_indexing `op`, of which `map` is (part of) the map."""
    values = list(op.operands)
    if map.num_symbols:
        map = symbols_to_dims(map)
    for _ in range(64):  # each round goes one producer up a chain
        map = map.simplify()
        if map.known_empty:
            break
        map, unused = remove_unused_vars(map.clear_constraints())
        if any(unused):
            values = [v for v, gone in zip(values, unused, strict=True) if not gone]
        room = _MAX_DEPTH - max((e.depth for e in map.results), default=0)
        makers = [_producer(v, room, _MAX_DIMS - len(values)) for v in values]
        own = [m is not None and (_is_linear(m) or _is_only_user(op, m)) for m in makers]
        joined, operands = _joined(map, values, own)
        if joined is map and any(makers):
            joined, operands = _joined(map, values, [m is not None for m in makers])
            joined = joined.simplify()
            if not _got_simpler(map, makers, joined):
                break
        if joined is map:
            break
        map, values = joined, operands
    return map, values


def apply_indexing(op: Operation, rewriter: Rewriter) -> bool:
    """All canonical forms of apply_indexing at once."""
    old = gpu.map_of(op)
    if old.known_empty:
        return False
    needed = [i for i, result in enumerate(op.results) if result.users]
    map = old if len(needed) == len(op.results) else old.select_results(needed)
    map, operands = canonical_apply(op, map)
    if map.known_empty:
        return False
    kept = [i for i, e in enumerate(map.results) if type(e) is not Const and type(e) is not Var]
    if len(kept) == len(op.results):
        if map == old and operands == op.operands:
            return False
        op.attributes["map"] = indexing_map(map)
        rewriter.set_operands(op, operands)
        return True
    values: list[Value] = list(op.results)
    for i, value in zip(needed, _results(rewriter, op, map, operands, kept), strict=True):
        values[i] = value
    rewriter.replace(op, values)
    return True


def _results(
    rewriter: Rewriter, op: Operation, map: IndexingMap, operands: Sequence[Value], kept: Sequence[int]
) -> list[Value]:
    """One value a map result: constants, operands, or results of a new apply_indexing of the `kept` ones."""
    made: dict[int, OpResult] = {}
    if kept:
        smaller, unused = remove_unused_vars(map.select_results(kept))
        left = [v for v, gone in zip(operands, unused, strict=True) if not gone]
        attributes = {"map": indexing_map(smaller)}
        new = rewriter.builder(op).create("xla_gpu.apply_indexing", left, [INDEX] * len(kept), attributes)
        made = dict(zip(kept, new.results, strict=True))
    values: list[Value] = []
    for i, expr in enumerate(map.results):
        if type(expr) is Const:
            values.append(rewriter.constant(op, integer_attr(expr.value, INDEX), INDEX))
        else:
            values.append(operands[expr.id] if type(expr) is Var else made[i])
    return values


def loop(op: Operation, rewriter: Rewriter) -> bool:
    """Dims of a loop: known points and apply_indexings go into the map; the map is simplified."""
    old = gpu.map_of(op)
    dims, inits = gpu.loop_parts(op)
    if old.known_empty:
        rewriter.replace(op, inits)
        return True
    map = _with_points(old, dims)
    map, dims = _with_producers(map, dims)
    map = map.simplify()
    if map.known_empty:
        rewriter.replace(op, inits)
        return True
    # A dim that only limits which threads run goes when its bounds hold for all of them.
    unused = [each and _holds(v, w) for each, v, w in zip(unused_variables(map), dims, map.dim_vars, strict=False)]
    gone = [*unused, *([False] * map.num_symbols)]
    if any(gone):
        map = drop_variables(map, gone)
        dims = [v for v, g in zip(dims, gone, strict=False) if not g]
    if map is old or (map == old and len(dims) == old.num_dims and dims == op.operands[: len(dims)]):
        return False
    op.attributes["map"] = indexing_map(map)
    op.attributes["operandSegmentSizes"] = dense_array((len(dims), len(inits)), I32)
    rewriter.set_operands(op, [*dims, *inits])
    for arg in op.body.args:
        rewriter.push_users(arg)
    return True


def _holds(value: Value, variable: Variable) -> bool:
    known = range_of(value)
    return known is not None and variable.bounds.contains(known)


def _with_points(map: IndexingMap, dims: Sequence[Value]) -> IndexingMap:
    """Substitutes dims that have one value, inside their bounds (outside, the loop would be emptied silently)."""
    replacements: dict[Expr, Expr] = {}
    for i, value in enumerate(dims):
        known = range_of(value)
        if known is not None and known.is_point and known.lower in map.dim_vars[i].bounds:
            replacements[dim(i)] = const(known.lower)
    return map.substitute(replacements) if replacements else map


def _with_producers(map: IndexingMap, dims: Sequence[Value]) -> tuple[IndexingMap, list[Value]]:
    """Composes dims computed by apply_indexing into the map; the old dims' bounds become constraints."""
    made = [_producer(value) for value in dims]
    if not any(made):
        return map, list(dims)
    values, variables = list(dims), list(map.dim_vars)
    number = {v: i for i, v in enumerate(values)}
    replacements: dict[Expr, Expr] = {}
    bounds: list[tuple[Expr, Interval]] = []
    for i, producer in enumerate(made):
        if producer is None:
            continue
        op, inner, index = producer
        inside: dict[Expr, Expr] = {}
        for k, (value, variable) in enumerate(zip(op.operands, inner.dim_vars, strict=True)):
            if value not in number:
                number[value] = len(values)
                values.append(value)
                variables.append(variable)
            inside[dim(k)] = dim(number[value])
        new = substitute(inner.results[index], inside)
        replacements[dim(i)] = new
        bounds.append((new, variables[i].bounds))
    wider = IndexingMap(tuple(variables), map.range_vars, map.rt_vars, map.results, map.constraints)
    return wider.substitute(replacements).add_constraints(bounds), values


PATTERNS: dict[str, tuple[Pattern, ...]] = {"xla_gpu.apply_indexing": (apply_indexing,), "xla_gpu.loop": (loop,)}
