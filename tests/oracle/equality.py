"""Whether two pieces of IR are the same but for names and locations.

In: two ops.  Out: yes or no.  Values and blocks are matched by where they are defined; attributes and types are
interned and compared by identity, indexing maps without the names of their variables.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith.ir.core.attributes import ArrayAttr, Attribute, DictAttr, IndexingMapAttr
from warpsmith.ir.core.ssa import Block, Operation, Value

__all__ = ["structurally_equal"]


def structurally_equal(a: Operation, b: Operation, *, locations: bool = False) -> bool:
    """Whether `a` and `b`, with all in their regions, are equal.

    Operands defined outside both must be the same values.  `locations` compares where ops come from as well.
    """
    values: dict[Value, Value] = {}
    blocks: dict[Block, Block] = {}
    pairs: list[tuple[Operation, Operation]] = []
    if not _match(a, b, values, blocks, pairs):
        return False
    return all(_same_op(x, y, values, blocks, locations) for x, y in pairs)


def _match(
    a: Operation,
    b: Operation,
    values: dict[Value, Value],
    blocks: dict[Block, Block],
    pairs: list[tuple[Operation, Operation]],
) -> bool:
    """Pair up all ops, values and blocks; False when the shapes differ."""
    todo = [(a, b)]
    while todo:
        x, y = todo.pop()
        pairs.append((x, y))
        if len(x.results) != len(y.results) or len(x.regions) != len(y.regions):
            return False
        values.update(zip(x.results, y.results, strict=True))
        for p, q in zip(x.regions, y.regions, strict=True):
            if len(p.blocks) != len(q.blocks):
                return False
            for s, t in zip(p.blocks, q.blocks, strict=True):
                blocks[s] = t
                inner, other = list(s), list(t)
                if len(s.args) != len(t.args) or len(inner) != len(other):
                    return False
                if any(u.type is not v.type for u, v in zip(s.args, t.args, strict=True)):
                    return False
                values.update(zip(s.args, t.args, strict=True))
                todo += zip(inner, other, strict=True)
    return True


def _same_op(
    x: Operation, y: Operation, values: Mapping[Value, Value], blocks: Mapping[Block, Block], locations: bool
) -> bool:
    return (
        x.row.name == y.row.name
        and len(x.operands) == len(y.operands)
        and all(values.get(v, v) is w for v, w in zip(x.operands, y.operands, strict=True))
        and all(r.type is s.type for r, s in zip(x.results, y.results, strict=True))
        and len(x.successors) == len(y.successors)
        and all(blocks.get(s, s) is t for s, t in zip(x.successors, y.successors, strict=True))
        and x.attributes.keys() == y.attributes.keys()
        and all(_same_attribute(v, y.attributes[k]) for k, v in x.attributes.items())
        and (not locations or x.location == y.location)
    )


def _same_attribute(a: Attribute, b: Attribute) -> bool:
    if a is b:
        return True
    if isinstance(a, IndexingMapAttr) and isinstance(b, IndexingMapAttr):
        return a.map == b.map
    if isinstance(a, ArrayAttr) and isinstance(b, ArrayAttr):
        return len(a.items) == len(b.items) and all(
            _same_attribute(x, y) for x, y in zip(a.items, b.items, strict=True)
        )
    if isinstance(a, DictAttr) and isinstance(b, DictAttr):
        same_names = [k for k, _ in a.items] == [k for k, _ in b.items]
        return same_names and all(_same_attribute(x, y) for (_, x), (_, y) in zip(a.items, b.items, strict=True))
    return False
