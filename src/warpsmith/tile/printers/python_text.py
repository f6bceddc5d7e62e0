"""Layouts and options of calls as Python text, as the kernel language takes them."""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.tile.layout import ComposeLayout, Iter
from warpsmith.tile.model.buffers import AnyLayout

__all__ = ["attribute_python", "layout_python"]


def attribute_python(attribute: at.Attribute) -> str:
    """An option of a call as its author would write it."""
    match attribute:
        case at.IntegerAttr():
            return str(bool(attribute.value)) if str(attribute.type) == "i1" else str(attribute.value)
        case at.FloatAttr():
            return repr(attribute.value)
        case at.StringAttr():
            return f'"{attribute.value}"'
        case at.DenseArrayAttr():
            return f"({', '.join(map(str, attribute.values))}{',' if len(attribute.values) == 1 else ''})"
        case _:
            return "..."


def layout_python(layout: AnyLayout) -> str:
    """A layout as its author would write it."""
    if isinstance(layout, ComposeLayout):
        inner = f"{layout.per_element}, {layout.swizzle_len}, {layout.atom_len}"
        side = "" if layout.inner else ", inner=False"
        return f"ComposeLayout({inner}, tile={layout_python(layout.tile)}{side})"
    parts = [_iters("S", layout.shard)]
    if layout.replica:
        parts.append(_iters("R", layout.replica))
    parts += [
        str(n) if not axis.is_thread and axis.name == "m" else f"{n} @ {axis}" for axis, n in layout.offset.items()
    ]
    return f"TileLayout({' + '.join(parts)})"


def _iters(letter: str, iters: tuple[Iter, ...]) -> str:
    strides = [str(i.stride) if i.axis.name == "m" else f"{i.stride} @ {i.axis}" for i in iters]
    if len(iters) == 1:
        return f"{letter}[{iters[0].extent} : {strides[0]}]"
    return f"{letter}[({', '.join(str(i.extent) for i in iters)}) : ({', '.join(strides)})]"
