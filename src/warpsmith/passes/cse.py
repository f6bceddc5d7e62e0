"""cse: equal pure ops become one.

    %a = arith.addi %x, %y : index        %a = arith.addi %x, %y : index
    %b = arith.addi %x, %y : index   ->   %c = arith.muli %a, %a : index
    %c = arith.muli %a, %b : index

Two ops are equal when name, operands, attributes, result types and regions are.  An op sees the ops before it in its
own block and in the blocks around it, up to the function.  Ops that only read memory are merged within a block when
nothing was written in between.
"""

from __future__ import annotations

from warpsmith.ir.core.attributes import IndexingMapAttr
from warpsmith.ir.core.effects import effects_of, is_removable
from warpsmith.ir.core.ssa import Block, Effect, Operation, Region, Trait, Value, fuse_locations

CONTRACT = "bit-exact"

_Key = tuple[object, ...]
_READS = frozenset((Effect.READ,))
_MAX_REGION_OPS = 32  # region ops larger than this are hardly ever equal and cost a walk a level


def run(module: Operation) -> None:
    """Merge equal ops everywhere in `module` (or in one function)."""
    _Scope().op(module)


class _Scope:
    """Known ops by key; entries are undone when the block that made them is left."""

    def __init__(self) -> None:
        self.known: dict[_Key, Operation] = {}

    def op(self, op: Operation) -> None:
        if op.row.has(Trait.ISOLATED):
            outer, self.known = self.known, {}
            for region in op.regions:
                self.region(region)
            self.known = outer
        else:
            for region in op.regions:
                self.region(region)

    def region(self, region: Region) -> None:
        if len(region.blocks) == 1:
            added: list[_Key] = []
            self.block(region.blocks[0], added)
            self.undo(added)
        elif region.blocks:  # the entry block dominates the others; those are taken one by one
            entry: list[_Key] = []
            self.block(region.blocks[0], entry)
            for block in region.blocks[1:]:
                added = []
                self.block(block, added)
                self.undo(added)
            self.undo(entry)

    def undo(self, added: list[_Key]) -> None:
        for key in added:
            del self.known[key]

    def block(self, block: Block, added: list[_Key]) -> None:
        known = self.known
        reads: dict[_Key, Operation] = {}
        for op in block:
            row = op.row
            if row.traits & Trait.TERMINATOR:
                continue
            if op.is_unused and is_removable(op):
                op.erase()
                continue
            if op.regions:
                self.op(op)
            if row.traits & Trait.SYMBOL:
                continue
            effects = effects_of(op)
            if not effects:
                key = _key(op)
                if key is None:
                    continue
                earlier = known.get(key)
                if earlier is None:
                    known[key] = op
                    added.append(key)
                else:
                    _merge(op, earlier)
            elif effects == _READS:
                key = _key(op)
                if key is not None:
                    earlier = reads.setdefault(key, op)
                    if earlier is not op:
                        _merge(op, earlier)
            else:
                reads.clear()


def _merge(op: Operation, earlier: Operation) -> None:
    earlier.location = fuse_locations(earlier.location, op.location)
    op.replace_by(earlier.results)


def _key(op: Operation) -> _Key | None:
    """Equal for equal ops; None for an op that is not worth comparing."""
    frozen = _attributes(op)
    results = op.results
    types = results[0].type if len(results) == 1 else tuple(r.type for r in results)
    if not op.regions:
        return (op.row.name, frozen, types, *op.operands)
    numbers: dict[Value, int] = {}
    parts: list[object] = [op.row.name, frozen, types, *op.operands]
    return tuple(parts) if _region_key(op, numbers, parts, [_MAX_REGION_OPS]) else None


def _attributes(op: Operation) -> object:
    """The attributes in a form that is equal for equal ones; maps count without their variables' names."""
    attributes = op.attributes
    if not attributes:
        return None
    items = [(name, a.map if isinstance(a, IndexingMapAttr) else a) for name, a in attributes.items()]
    return items[0] if len(items) == 1 else frozenset(items)


def _region_key(op: Operation, numbers: dict[Value, int], parts: list[object], budget: list[int]) -> bool:
    """Append the structure of the regions of `op`; values made inside count by their order.  False when too large."""
    for region in op.regions:
        parts.append(len(region.blocks))
        if len(region.blocks) > 1:
            return False
        for block in region.blocks:
            for arg in block.args:
                numbers[arg] = len(numbers)
                parts.append(arg.type)
            for inner in block:
                budget[0] -= 1
                if budget[0] < 0:
                    return False
                parts.append((inner.row.name, _attributes(inner), tuple(r.type for r in inner.results)))
                parts.append(tuple(numbers.get(v, v) for v in inner.operands))
                for result in inner.results:
                    numbers[result] = len(numbers)
                if inner.regions and not _region_key(inner, numbers, parts, budget):
                    return False
    return True
