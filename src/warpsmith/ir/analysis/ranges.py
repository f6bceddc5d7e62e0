"""What values an integer can take: the interval of an IR value, as far as it is plain to see.

In: a value.  Out: an `Interval`, or None when nothing is known.  Sources, in this order: a constant; `xla.range` on the
op that makes it or on the function argument; the result of an apply_indexing; the induction variable of an scf.for with
constant bounds; the variables and map results of an xla_gpu.loop.
"""

from __future__ import annotations

from functools import lru_cache

from warpsmith.indexing import IndexingMap, Interval
from warpsmith.ir.core.attributes import ArrayAttr, Attribute, DenseAttr, DictAttr, IndexingMapAttr, IntegerAttr
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.ssa import BlockArgument, Operation, OpResult, Trait, Value

__all__ = ["iv_range", "range_of", "read_range"]


def range_of(value: Value) -> Interval | None:
    """An interval that holds every value of an integer or index (for a vector: of each lane)."""
    if isinstance(value, OpResult):
        return _result_range(value)
    return _argument_range(value) if isinstance(value, BlockArgument) else None


def read_range(attribute: Attribute | None) -> Interval | None:
    """The interval of an `xla.range` attribute."""
    if isinstance(attribute, ArrayAttr) and len(attribute.items) == 2:
        lower, upper = attribute.items
        if isinstance(lower, IntegerAttr) and isinstance(upper, IntegerAttr):
            return Interval(lower.value, upper.value)
    return None


def _result_range(value: OpResult) -> Interval | None:
    op = value.op
    if op.row.traits & Trait.CONSTANT:
        attribute = op.attributes.get("value")
        if isinstance(attribute, DenseAttr):
            attribute = attribute.splat
        return Interval(attribute.value, attribute.value) if isinstance(attribute, IntegerAttr) else None
    if op.attributes:
        found = read_range(op.attributes.get("xla.range"))
        if found is not None:
            return found
        if op.row.name == "xla_gpu.apply_indexing":
            return _map_range(op, value.index)
    return None


def _map_range(op: Operation, index: int) -> Interval | None:
    attribute = op.attributes["map"]
    if not isinstance(attribute, IndexingMapAttr) or attribute.map.known_empty:
        return None
    return _result_ranges(attribute.map)[index]


@lru_cache(maxsize=2048)
def _result_ranges(map: IndexingMap) -> tuple[Interval, ...]:
    return map.result_ranges()


def _argument_range(value: BlockArgument) -> Interval | None:
    op = value.block.parent_op
    if op is None:
        return None
    name = op.row.name
    if name == "scf.for":
        return iv_range(op) if value.index == 0 else None
    if name == "xla_gpu.loop":
        attribute = op.attributes["map"]
        if not isinstance(attribute, IndexingMapAttr) or attribute.map.known_empty:
            return None
        symbols = attribute.map.symbol_vars
        if value.index < len(symbols):
            return symbols[value.index].bounds
        result = value.index - len(symbols)
        return _result_ranges(attribute.map)[result] if result < attribute.map.num_results else None
    if name == "func.func" and op.regions[0].blocks[0] is value.block:
        attributes = op.attributes.get("arg_attrs")
        if isinstance(attributes, ArrayAttr) and value.index < len(attributes.items):
            own = attributes.items[value.index]
            return read_range(own.get("xla.range")) if isinstance(own, DictAttr) else None
    return None


def iv_range(loop: Operation) -> Interval | None:
    """The values of the induction variable of an scf.for with constant bounds and step; None if it never runs."""
    lower, upper, step = (constant_of(v) for v in loop.operands[:3])
    if lower is None or upper is None or step is None or step.value < 1 or lower.value >= upper.value:
        return None
    last = (upper.value - 1 - lower.value) // step.value * step.value + lower.value
    return Interval(lower.value, last)
