"""peel-loops: the last iteration of a loop gets a loop of its own where that frees the others of their bounds check.

    xla_gpu.loop ()[s0 in 0..3], t + s0 * 128 in [0, 400]   ->   xla_gpu.loop ()[s0 in 0..2]
                                                                 xla_gpu.loop ()[s0 = 3], t in [0, 16]

Symbols are taken from last to first while the trips seen so far are below 64; whether a
constraint is implied by the bounds is the map simplifier's to say.
"""

from __future__ import annotations

from warpsmith.indexing import IndexingMap, Interval
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Region, Value
from warpsmith.ir.dialects import gpu

CONTRACT = "bit-exact"

_MAX_TRIPS = 64


def run(module: Operation) -> None:
    """Peel every xla_gpu.loop, inner ones before they are copied with those around them."""
    for op in reversed(list(module.walk())):
        if op.row.name == "xla_gpu.loop":
            _peel(op)


def _split(map: IndexingMap) -> list[IndexingMap]:
    """The main map, then the tails, in the order in which they run; one map when nothing is won."""
    main, tails = map, list[IndexingMap]()
    trips = 1
    for symbol in range(len(map.range_vars) - 1, -1, -1):
        bounds = main.symbol_vars[symbol].bounds
        trips *= bounds.size
        if trips >= _MAX_TRIPS:
            break
        if bounds.size <= 1 or not main.is_symbol_constrained(symbol):
            continue
        shorter = main.with_symbol_bounds(symbol, Interval(bounds.lower, bounds.upper - 1)).simplify()
        if shorter.is_symbol_constrained(symbol):
            continue
        tails.append(main.with_symbol_bounds(symbol, Interval.point(bounds.upper)).simplify())
        main = shorter
    return [main, *reversed(tails)]


def _peel(op: Operation) -> None:
    map = gpu.map_of(op)
    parts = _split(map)
    if len(parts) == 1:
        return
    dims, inits = gpu.loop_parts(op)
    values: list[Value] = inits
    b = Builder.before(op)
    for part in parts:
        if not part.known_empty:
            values = _copy(b, op, part, dims, values)
    op.replace_by(values)


def _copy(b: Builder, op: Operation, map: IndexingMap, dims: list[Value], inits: list[Value]) -> list[Value]:
    """The loop over another map, from other inits."""
    new = gpu.loop(b, dims, map, inits)
    mapping: dict[Value, Value] = {}
    region: Region = op.regions[0].clone(mapping)
    block: Block = region.blocks[0]
    region.parent = new
    new.regions[0] = region
    for result, old in zip(new.results, op.results, strict=True):
        result.name = old.name
    assert block.region is region
    return list(new.results)
