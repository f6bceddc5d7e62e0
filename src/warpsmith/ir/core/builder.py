"""Making ops: an insertion point and `create`.

Dialect modules (`ir/dialects/arith.py`...) hold typed helpers that take a builder first: `arith.addf(b, x, y)`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from warpsmith.errors import InternalError
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.ssa import UNKNOWN, Block, Location, Operation, OpResult, Region, Value, row
from warpsmith.ir.core.types import Type

__all__ = ["Builder"]


class Builder:
    """Creates ops at an insertion point: before `anchor`, or at the end of `block` when it is None."""

    __slots__ = ("anchor", "block", "created", "location")

    def __init__(
        self, block: Block | None = None, anchor: Operation | None = None, location: Location = UNKNOWN
    ) -> None:
        self.block = block if block is not None else (anchor.block if anchor is not None else None)
        self.anchor = anchor
        self.location = location
        self.created: list[Operation] | None = None  # a rewriter that wants to see new ops sets a list here

    @staticmethod
    def at_end(block: Block, location: Location = UNKNOWN) -> Builder:
        """A builder that appends to a block."""
        return Builder(block, None, location)

    @staticmethod
    def at_start(block: Block, location: Location = UNKNOWN) -> Builder:
        """A builder in front of a block's first op."""
        return Builder(block, block.first, location)

    @staticmethod
    def before(op: Operation) -> Builder:
        """Inserts before `op`, with its location."""
        return Builder(op.block, op, op.location)

    @staticmethod
    def after(op: Operation) -> Builder:
        """A builder behind an op, with its location."""
        return Builder(op.block, op.next, op.location)

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Append to another block for a while."""
        outer = self.block, self.anchor
        self.block, self.anchor = block, None
        try:
            yield
        finally:
            self.block, self.anchor = outer

    def insert(self, op: Operation) -> Operation:
        """Put an unlinked op at the insertion point."""
        if self.block is None:
            raise InternalError("the builder has no insertion point")
        if self.anchor is None:
            self.block.append(op)
        else:
            self.block.insert_before(self.anchor, op)
        if self.created is not None:
            self.created.append(op)
        return op

    def create(
        self,
        name: str,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
        hint: str = "",
    ) -> Operation:
        """Make op `name` at the insertion point; `hint` names its first result."""
        op = Operation(row(name), operands, result_types, attributes, regions, successors, self.location)
        if hint and op.results:
            op.results[0].name = hint
        return self.insert(op)

    def op1(
        self,
        name: str,
        operands: Sequence[Value],
        result_type: Type,
        attributes: Mapping[str, Attribute] | None = None,
        hint: str = "",
    ) -> OpResult:
        """Make an op of one result and give the result."""
        op = Operation(row(name), operands, (result_type,), attributes, (), (), self.location)
        if hint:
            op.results[0].name = hint
        self.insert(op)
        return op.results[0]
