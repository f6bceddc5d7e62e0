"""scatter-order: scatters whose result depends on the order of their updates are told to keep the interpreter's.

    r = f32[9] fusion(x, i, u)            r.keys  = (s32[n], s32[n]) fusion(i)     the place of each update, 0, 1, 2...
      { ROOT scatter(x, i, u) }     ->    r.order = (s32[n], s32[n]) sort(...)     stable, by place
                                          r       = f32[9] fusion(x, u, places, order)
                                            { ROOT scatter(x, places, gather(u, order)), indices_are_sorted=true }

In: a module as `wrap` leaves it, and a GPU.  Out: the module, in which the updates of every such scatter are combined
one after another in the order of the slices, whatever the combiner: `--deterministic`.  The new module means the same.
The scatter carries the frontend attribute `update_order="kept"`, for which the emitter gives each place of the output
to one thread (`emitters/shared/scatter_order.py`).  That thread needs to know which updates are its own:

- few slices are left as they are, and every thread looks through all of them;
- sorted indices say it themselves, unless slices overlap in part;
- otherwise the updates are sorted by place, by element where slices overlap in part.  A slice that doesn't fit gets the
  place behind the last one.

Upstream's pass of this purpose sorts, too, then combines neighbours in log2(n) rounds over all updates.  One walk reads
the updates once, adds in the interpreter's order, and takes any combiner; it is slow only where one place gets a large
part of all updates.  Scatters in which any order gives the same bits keep their atomic steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from warpsmith.devices import Device
from warpsmith.dtypes import DType, by_name
from warpsmith.fusion.scatters import ORDER_KEPT, Scatter, order_matters
from warpsmith.hlo.attributes import FrontendAttributes, SliceDim
from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.shapes import Shape, TupleShape
from warpsmith.hlo_passes.kit import Rewriting, rewrite_computation, rewrite_steps, with_operands
from warpsmith.hlo_passes.scatter_simplifier import simplified
from warpsmith.hlo_passes.support.bodies import Body, elements_of, fusion_of
from warpsmith.hlo_passes.wrap import wrap

__all__ = ["CONTRACT", "keep_order", "keeps_order", "marked", "run"]

CONTRACT = "E"

MOST_SEARCHED = 2048
"""Slices among which each thread looks for its own: reading so many indices from a cache takes less than a sort."""

S32, S64, PRED = by_name("s32"), by_name("s64"), by_name("pred")


def run(module: HloModule, target: Device) -> HloModule:
    """The module with scatters wrapped, too, then `keep_order`."""
    return keep_order(wrap(module, takes=keeps_order), target)


def keep_order(module: HloModule, target: Device) -> HloModule:
    """The module with every such scatter rewritten; itself on a CPU, which updates in order anyway."""
    if target.is_cpu:
        return module

    def rule(at: Rewriting) -> HloInstruction | None:
        return _ordered(at, at.old, at.operands(at.old)) if keeps_order(at.old) else None

    return rewrite_steps(module, rule)


def keeps_order(instruction: HloInstruction) -> bool:
    """Whether the instruction is a fusion in which `keep_order` finds a scatter whose order it has yet to keep."""
    if instruction.opcode != "fusion":
        return False
    root = instruction.attr("calls", HloComputation).root
    return root.opcode == "scatter" and not Scatter(root).keeps_order and order_matters(Scatter(root))


def marked(scatter: HloInstruction) -> HloInstruction:
    """The scatter, told to keep the order of its updates."""
    found = scatter.attributes.get("frontend_attributes")
    others = found.fields if isinstance(found, FrontendAttributes) else ()
    kept = tuple(each for each in others if each[0] != ORDER_KEPT[0])
    attributes = {**scatter.attributes, "frontend_attributes": FrontendAttributes((*kept, ORDER_KEPT))}
    return with_operands(scatter, scatter.operands, attributes)


def _ordered(at: Rewriting, old: HloInstruction, operands: tuple[HloInstruction, ...]) -> HloInstruction:
    """Emit a fusion on new operands, with a sort before it where it takes one; what stands for it."""
    fusion = old if operands == old.operands else with_operands(old, operands)
    body = old.attr("calls", HloComputation)
    scatter = Scatter(body.root)
    if scatter.has_runs or scatter.slices <= MOST_SEARCHED:
        return _marked(at, fusion, body)
    simple = rewrite_computation(body, simplified)
    if not scatter.batching and Scatter(simple.root).has_runs:
        return _marked(at, fusion, simple)
    sorting = _Sorting(at, fusion, simple)
    keys, _ = fusion_of(at, fusion, at.fresh(f"{fusion.name}.keys"), sorting.keys())
    order = sorting.sort(elements_of(at, at.emit(keys), 2))
    updated, _ = fusion_of(at, fusion, fusion.name, sorting.update(elements_of(at, order, 2)))
    return at.emit(updated)


def _marked(at: Rewriting, fusion: HloInstruction, body: HloComputation) -> HloInstruction:
    """Emit the fusion with its scatter marked, and nothing else new."""
    root = marked(body.root)
    instructions = tuple(root if each is body.root else each for each in body)
    new = HloComputation(at.fresh(body.name), instructions, root, body.attributes, body.origin)
    at.bodies.append(new)
    return at.emit(with_operands(fusion, fusion.operands, {**fusion.attributes, "calls": new}))


class _Sorting:
    """The parts of one scatter whose updates are sorted by place.

    `places` are the sizes of the table of places, one dim for each number of an index vector; `count` updates are
    sorted, whole slices or, where slices may overlap in part, elements.
    """

    def __init__(self, at: Rewriting, fusion: HloInstruction, body: HloComputation) -> None:
        self.at, self.fusion, self.body = at, fusion, body
        self.scatter = Scatter(body.root)
        scatter = self.scatter
        self.whole = scatter.is_aligned
        self.index_map = scatter.index_map if self.whole else tuple(range(len(scatter.operand_dims)))
        free = [size - wide + 1 for size, wide in zip(scatter.operand_dims, scatter.window, strict=True)]
        self.limits = [free[d] - 1 for d in scatter.index_map]
        self.places = [free[d] if self.whole else scatter.operand_dims[d] for d in self.index_map]
        self.strides = [math.prod(self.places[i + 1 :]) for i in range(len(self.places))]
        self.count = scatter.slices * (1 if self.whole else scatter.slice_elements)
        self.key = _smallest(math.prod(self.places))

    # -- the places
    def keys(self) -> tuple[HloComputation, dict[HloInstruction, HloInstruction]]:
        """The place of each update, and the updates' numbers."""
        body = Body(self.at, self.body, self.fusion.operands, f"{self.fusion.name}.keys.body")
        body.take([self.scatter.indices])
        b, count = body.builder, self.scatter.slices
        table = body.inside[self.scatter.indices]
        fits: list[HloInstruction] = []
        numbers: list[HloInstruction] = []
        for k, limit in enumerate(self.limits):
            column = b.add("slice", None, [table], {"slice": _column(count, k)})
            number = b.add("reshape", Shape(column.array_shape.dtype, (count,)), [column])
            number = body.convert(number, S64 if _is_wide(number.array_shape.dtype) else S32, f"{number.name}.signed")
            low, high = _full(b, 0, number.array_shape), _full(b, limit, number.array_shape)
            fits.append(_compare(b, number, low, "GE"))
            fits.append(_compare(b, number, high, "LE"))
            numbers.append(number)
        fitting = reduce(lambda left, right: b.add("and", None, [left, right]), fits)
        zeros = {n.array_shape.dtype: _full(b, 0, n.array_shape) for n in numbers}
        safe = [b.add("select", None, [fitting, n, zeros[n.array_shape.dtype]]) for n in numbers]
        starts = dict(
            zip(self.scatter.index_map, (body.convert(n, self.key, f"{n.name}.key") for n in safe), strict=True)
        )
        key = self._key(b, starts, fitting)
        b.tuple([key, b.add("iota", Shape(_smallest(self.count), (self.count,)), [], {"iota_dimension": 0})])
        return b.build(), body.outer

    def _key(self, b: ComputationBuilder, starts: dict[int, HloInstruction], fitting: HloInstruction) -> HloInstruction:
        """The linear place, or the one behind the last."""
        dims = (self.scatter.slices,) if self.whole else (self.scatter.slices, *self.scatter.window)
        shape = Shape(self.key, dims)
        total: HloInstruction | None = None
        for d, stride in zip(self.index_map, self.strides, strict=True):
            place = _spread(b, starts[d], dims) if d in starts else None
            if not self.whole and self.scatter.window[d] > 1:
                within = b.add("iota", shape, [], {"iota_dimension": d + 1})
                place = within if place is None else b.add("add", None, [place, within])
            if place is None:
                continue
            if stride != 1:
                place = b.add("multiply", None, [place, _full(b, stride, shape)])
            total = place if total is None else b.add("add", None, [total, place])
        assert total is not None
        behind = _full(b, math.prod(self.places), shape)
        key = b.add("select", None, [_spread(b, fitting, dims), total, behind])
        return key if self.whole else b.add("reshape", Shape(self.key, (self.count,)), [key])

    # -- their order
    def sort(self, pair: Sequence[HloInstruction]) -> HloInstruction:
        """Places and numbers, by place; equal places in the order of the slices."""
        name = self.at.fresh(f"{self.fusion.name}.before")
        b = ComputationBuilder(name)
        sides = [b.parameter(2 * i + j, Shape(each.array_shape.dtype)) for i, each in enumerate(pair) for j in (0, 1)]
        comparator = b.build(_compare(b, sides[0], sides[1], "LT"))
        self.at.bodies.append(comparator)
        attributes = frozen({"dimensions": (0,), "is_stable": True, "to_apply": comparator})
        shape = TupleShape(tuple(each.shape for each in pair))
        name = self.at.fresh(f"{self.fusion.name}.order")
        return self.at.emit(HloInstruction(name, "sort", shape, tuple(pair), attributes, origin=self.fusion.origin))

    # -- the updates
    def update(self, pair: Sequence[HloInstruction]) -> tuple[HloComputation, dict[HloInstruction, HloInstruction]]:
        """The scatter of the updates in their new order."""
        scatter = self.scatter
        body = Body(self.at, self.body, self.fusion.operands, f"{self.fusion.name}.ordered.body")
        body.take([*scatter.operands, *scatter.updates])
        b = body.builder
        key = body.parameter(pair[0].shape, "places", pair[0])
        order = body.parameter(pair[1].shape, "order", pair[1])
        rows = b.add("reshape", Shape(order.array_shape.dtype, (self.count, 1)), [order])
        window = scatter.window if self.whole else (1,) * len(scatter.window)
        updates = [self._moved(b, body.inside[each], rows, window) for each in scatter.updates]
        attributes = {
            **scatter.instruction.attributes,
            "scatter_dims_to_operand_dims": self.index_map,
            "indices_are_sorted": True,
            "unique_indices": False,
        }
        operands = [*(body.inside[each] for each in scatter.operands), self._table(b, key), *updates]
        old = scatter.instruction
        root = HloInstruction(old.name, "scatter", old.shape, tuple(operands), frozen(attributes), origin=old.origin)
        return b.build(b.append(marked(root))), body.outer

    def _moved(
        self, b: ComputationBuilder, update: HloInstruction, rows: HloInstruction, window: tuple[int, ...]
    ) -> HloInstruction:
        shape = Shape(update.array_shape.dtype, (self.count, *window))
        if update.array_shape.dims != shape.dims:
            update = b.add("reshape", shape, [update])
        attributes = {
            "offset_dims": tuple(range(1, len(shape.dims))),
            "collapsed_slice_dims": (0,),
            "start_index_map": (0,),
            "index_vector_dim": 1,
            "slice_sizes": (1, *window),
        }
        return b.add("gather", shape, [update, rows], attributes, name=f"{update.name}.moved")

    def _table(self, b: ComputationBuilder, key: HloInstruction) -> HloInstruction:
        """Index vectors of linear places: [count, numbers]."""
        column = Shape(self.key, (self.count, 1))
        shape = key.array_shape
        parts: list[HloInstruction] = []
        for i, (stride, size) in enumerate(zip(self.strides, self.places, strict=True)):
            part = key if stride == 1 else b.add("divide", None, [key, _full(b, stride, shape)])
            if i:
                part = b.add("remainder", None, [part, _full(b, size, shape)])
            parts.append(b.add("reshape", column, [part]))
        if len(parts) == 1:
            return parts[0]
        return b.add("concatenate", Shape(self.key, (self.count, len(parts))), parts, {"dimensions": (1,)})


def _smallest(places: int) -> DType:
    """The type that numbers `places` places, and the one behind them."""
    return S32 if places < 2**31 else S64


def _is_wide(dtype: DType) -> bool:
    """Whether s32 doesn't hold an index type's numbers."""
    return dtype.bits > 32 or (dtype.bits == 32 and not dtype.is_signed)


def _column(rows: int, number: int) -> tuple[SliceDim, SliceDim]:
    return SliceDim(0, rows), SliceDim(number, number + 1)


def _full(b: ComputationBuilder, value: int, shape: Shape) -> HloInstruction:
    """An array of one number."""
    scalar = b.constant(Literal.of(np.asarray(value, shape.dtype.numpy)), f"c{value}")
    return b.add("broadcast", Shape(shape.dtype, shape.dims), [scalar], {"dimensions": ()})


def _compare(b: ComputationBuilder, left: HloInstruction, right: HloInstruction, direction: str) -> HloInstruction:
    shape = Shape(PRED, left.array_shape.dims)
    return b.add("compare", shape, [left, right], {"direction": direction})


def _spread(b: ComputationBuilder, rows: HloInstruction, dims: tuple[int, ...]) -> HloInstruction:
    """One value a slice, for each of its elements."""
    if rows.array_shape.dims == dims:
        return rows
    return b.add("broadcast", Shape(rows.array_shape.dtype, dims), [rows], {"dimensions": (0,)})
