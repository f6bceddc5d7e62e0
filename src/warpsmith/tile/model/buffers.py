"""What is known of a buffer value in the IR: shape, element type, where it lives, and its layout.

In: a value that a `tile` op defines.  Out: `BufferInfo`.  A view shares the memory of its root and has a layout of its
own; the address of an element is the layout's, in the elements of the root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.errors import InternalError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import MemRefType
from warpsmith.ir.dialects import tile
from warpsmith.tile.layout import ComposeLayout, TileLayout, row_major
from warpsmith.tile.model.dtypes import TileType, tile_type

__all__ = [
    "AnyLayout",
    "BufferInfo",
    "RegionInfo",
    "Stride",
    "buffer_of",
    "extents_of",
    "first_element",
    "layout_attr",
    "layout_of",
    "memory_elements",
    "plain",
    "region_of",
]

AnyLayout = TileLayout | ComposeLayout
Stride = tuple[int, Value | None]
"""Elements to the next index of a dim: a number, or a number times a value that is known when the kernel runs."""

_SCOPES = {0: "global", tile.SHARED: "shared", tile.PRIVATE: "local"}
_BY_TEXT: dict[str, AnyLayout | None] = {}


def layout_attr(layout: AnyLayout | None) -> at.OpaqueAttr:
    """A layout as an attribute: its text; the object stays at hand."""
    text = f"#tile.layout<{layout if layout is not None else 'none'}>"
    _BY_TEXT[text] = layout
    return at.opaque(text)


def layout_of(attribute: at.Attribute) -> AnyLayout | None:
    """The layout of an attribute; None where the buffer has none."""
    if not isinstance(attribute, at.OpaqueAttr):
        raise InternalError("a layout attribute is opaque")
    if attribute.text not in _BY_TEXT:
        from warpsmith.tile.layout import parse_layout

        inner = attribute.text.removeprefix("#tile.layout<").removesuffix(">")
        _BY_TEXT[attribute.text] = None if inner == "none" else parse_layout(inner)
    return _BY_TEXT[attribute.text]


def plain(layout: AnyLayout) -> TileLayout:
    """The layout without its swizzle."""
    return layout.tile if isinstance(layout, ComposeLayout) else layout


def first_element(layout: AnyLayout) -> int:
    """The least place in memory that a layout has, down to a whole period where it is swizzled."""
    held = plain(layout).storage()
    first = sum(held.offset.values())
    first += sum(min(0, each.stride) * (each.extent - 1) for each in (*held.shard, *held.replica))
    return first // layout.period * layout.period if isinstance(layout, ComposeLayout) else first


def memory_elements(layout: AnyLayout | None, shape: Sequence[int]) -> int:
    """How many elements a thread's (or the block's) memory of a buffer has: up to the last place of its layout, in
    whole periods where that is swizzled."""
    if layout is None:
        return math.prod(shape)
    held = plain(layout).storage()
    last = sum(held.offset.values())
    last += sum(max(0, each.stride) * (each.extent - 1) for each in (*held.shard, *held.replica))
    if isinstance(layout, ComposeLayout):
        return -(-(last + 1) // layout.period) * layout.period
    return last + 1


@dataclass(frozen=True, slots=True)
class BufferInfo:
    """A buffer or view.  `scope` is "global", "shared", "shared.dyn" or "local"; `root` the value whose memory it is;
    `strides` stands for the layout of a parameter that has symbolic extents behind its first dim."""

    value: Value
    shape: tuple[int, ...]
    type: TileType
    scope: str
    layout: AnyLayout | None
    root: Value
    root_type: TileType
    strides: tuple[Stride, ...] | None = None

    @property
    def name(self) -> str:
        """The buffer's name, or its root's."""
        return self.value.name or self.root.name or "buffer"

    @property
    def is_shared(self) -> bool:
        """Whether it is in a block's shared memory."""
        return self.scope.startswith("shared")

    @property
    def is_distributed(self) -> bool:
        """Whether its elements are spread over threads."""
        if self.layout is None:
            return False
        inner = plain(self.layout)
        return any(each.axis.is_thread for each in (*inner.shard, *inner.replica))


def buffer_of(value: Value) -> BufferInfo:
    """What is known of a buffer value."""
    op = value.defining_op
    if op is None or op.name not in ("tile.match_buffer", "tile.alloc", "tile.view"):
        raise InternalError("this value is no buffer")
    type = value.type
    assert isinstance(type, MemRefType)
    root = value
    while (source := root.defining_op) is not None and source.name == "tile.view":
        root = source.operands[0]
    holder = root.defining_op
    assert holder is not None
    scope = holder.str_attr("scope") if "scope" in holder.attributes else _SCOPES[type.space]
    return BufferInfo(
        value,
        type.shape,
        tile_type(op.str_attr("dtype")),
        scope,
        layout_of(op.attributes["layout"]),
        root,
        tile_type(holder.str_attr("dtype")),
        _strides(op),
    )


def _strides(op: Operation) -> tuple[Stride, ...] | None:
    """What `tile.match_buffer` says of strides: amounts, and which operand each is multiplied by (-1: none)."""
    amounts, by = op.attributes.get("strides"), op.attributes.get("by")
    if not isinstance(amounts, at.DenseArrayAttr) or not isinstance(by, at.DenseArrayAttr):
        return None
    return tuple(
        (amount, op.operands[which] if which >= 0 else None)
        for amount, which in zip(amounts.values, by.values, strict=True)
    )


def extents_of(value: Value) -> tuple[int | Value, ...]:
    """The extents of a buffer, symbolic ones as values."""
    op = value.defining_op
    shape = buffer_of(value).shape
    if op is None or op.name != "tile.match_buffer":
        return shape
    symbolic = iter(op.operands[1:])
    return tuple(next(symbolic) if extent < 0 else extent for extent in shape)


@dataclass(frozen=True, slots=True)
class RegionInfo:
    """A box of a buffer: `mins` are index values."""

    buffer: BufferInfo
    mins: tuple[Value, ...]
    extents: tuple[int, ...]

    def __str__(self) -> str:
        from warpsmith.tile.model.affine import linear
        from warpsmith.tile.printers.expressions import value_text

        parts: list[str] = []
        for start, extent in zip(self.mins, self.extents, strict=True):
            known = linear(start)
            text = value_text(start)
            if not known.terms:
                parts.append(f"{known.constant}:{known.constant + extent}")
            else:
                parts.append(text if extent == 1 else f"{text} : {text} + {extent}")
        return f"{self.buffer.name}[{', '.join(parts)}]"

    @property
    def in_short(self) -> str:
        """A whole buffer by its name alone."""
        from warpsmith.ir.core.effects import constant_of

        begins = [constant_of(start) for start in self.mins]
        whole = self.extents == self.buffer.shape and all(each is not None and each.value == 0 for each in begins)
        return self.buffer.name if whole else str(self)


def region_of(value: Value) -> RegionInfo:
    """The region that an operand of a primitive is."""
    op = value.defining_op
    if op is None or op.name != "tile.region":
        raise InternalError("this value is no region")
    extents = op.attributes["extents"]
    assert isinstance(extents, at.DenseArrayAttr)
    return RegionInfo(buffer_of(op.operands[0]), tuple(op.operands[1:]), extents.values)


def dense_layout(shape: Sequence[int]) -> TileLayout:
    """Row-major over a shape; a symbolic extent may only come first."""
    return row_major(tuple(max(extent, 1) for extent in shape))
