"""lower-loops-to-scf: an xla_gpu.loop becomes a nest of scf.for with one scf.if for its domain.

    xla_gpu.loop (%t)[%s] -> (%d) in #map        scf.for %s = %c0 to %c4 step %c1 {
      iter_args(%iter = %out) { body }      ->     %in = (domain holds)
                                                   scf.if %in { %d = apply_indexing #map(%t)[%s]; body } else { %iter }

Every constraint and every dim's bounds are checked here, redundant or not: `simplify-arith` decides those that follow
from `xla.range`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.indexing import IndexingMap, Interval
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import I1
from warpsmith.ir.dialects import arith, gpu, scf

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("xla_gpu.loop",)


def run(module: Operation) -> None:
    """Rewrite every xla_gpu.loop, inner ones first."""
    for op in list(module.walk_post()):
        if op.row.name == "xla_gpu.loop":
            _lower(op)


Index = Callable[[int], Value]


class _Indices:
    """Index constants made once a loop nest."""

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._known: dict[int, Value] = {}

    def before(self, op: Operation) -> None:
        """Constants made from now on go before `op`."""
        self._b = Builder.before(op)

    def __call__(self, value: int) -> Value:
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = arith.index(self._b, value)
        return known


def _lower(op: Operation) -> None:
    map = gpu.map_of(op)
    dims, inits = gpu.loop_parts(op)
    if map.known_empty:
        op.replace_by(inits)
        return
    body = op.body
    symbols = map.symbol_vars
    index = _Indices(Builder.before(op))
    b, carried, loops = Builder.before(op), list(inits), list[Operation]()
    names = [a.name for a in body.args[len(symbols) + map.num_results :]]
    for arg, variable in zip(body.args[: len(symbols)], symbols, strict=True):
        lower, upper = index(variable.bounds.lower), index(variable.bounds.upper + 1)
        loop = scf.for_(b, lower, upper, index(1), carried, arg.name, names)
        for result, old in zip(loop.results, op.results, strict=True):
            result.name = old.name
        loops.append(loop)
        index.before(loops[0])
        b, carried = Builder.at_end(loop.body, op.location), list[Value](loop.body.args[1:])
    ivs: list[Value] = [loop.body.args[0] for loop in loops]
    results = _guarded(b, op, map, dims, ivs, carried, index)
    for loop in reversed(loops):
        scf.yield_(Builder.at_end(loop.body, op.location), results)
        results = list(loop.results)
    op.replace_by(results)


def _guarded(
    b: Builder,
    op: Operation,
    map: IndexingMap,
    dims: Sequence[Value],
    ivs: Sequence[Value],
    carried: Sequence[Value],
    index: Index,
) -> list[Value]:
    """The loop's body inside an scf.if on the domain; gives the if's results."""
    condition = check_domain(b, map, dims, ivs, index)
    branch = scf.if_(b, condition, [v.type for v in carried], with_else=True)
    otherwise = Builder.at_end(branch.regions[1].blocks[0], op.location)
    scf.yield_(otherwise, carried)
    then: Block = branch.body
    inside = Builder.at_end(then, op.location)
    unconstrained = map.clear_constraints()
    body = op.body
    count = map.num_symbols
    for i, arg in enumerate(body.args[count : count + map.num_results]):
        if arg.users:
            value = gpu.apply_indexing(inside, unconstrained.select_results([i]), [*dims, *ivs])[0]
            value.name = arg.name
            arg.replace_by(value)
    for arg, value in zip(body.args[:count], ivs, strict=True):
        arg.replace_by(value)
    for arg, value in zip(body.args[count + map.num_results :], carried, strict=True):
        arg.replace_by(value)
    terminator = body.terminator
    yielded = list(terminator.operands)
    terminator.erase()
    for inner in body:
        inner.unlink()
        then.append(inner)
    scf.yield_(inside, yielded)
    return list(branch.results)


def check_domain(b: Builder, map: IndexingMap, dims: Sequence[Value], symbols: Sequence[Value], index: Index) -> Value:
    """An i1: the constraints hold and each dim lies in its bounds.  Symbols are taken to be in theirs."""
    checks: list[Value] = []
    box = map.clear_constraints()
    for expr, interval in map.constraints.items():
        value = gpu.apply_indexing(b, box.with_results([expr]), [*dims, *symbols])[0]
        checks.append(_check(b, value, interval, index))
    for value, variable in zip(dims, map.dim_vars, strict=True):
        checks.append(_check(b, value, variable.bounds, index))
    if not checks:
        return arith.constant(b, 1, I1, "true")
    result = checks[0]
    for check in checks[1:]:
        result = arith.binary(b, "andi", result, check)
    return result


def _check(b: Builder, value: Value, interval: Interval, index: Index) -> Value:
    lower = index(interval.lower)
    if interval.is_point:
        return arith.cmpi(b, "eq", value, lower)
    above = arith.cmpi(b, "sge", value, lower)
    below = arith.cmpi(b, "sle", value, index(interval.upper))
    return arith.binary(b, "andi", above, below)
