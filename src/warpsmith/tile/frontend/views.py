"""Buffers as they are declared, and views of them: the same memory under another shape, type or layout.

In: what an author wrote.  Out: `tile.match_buffer`, `tile.alloc` and `tile.view` ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import memref
from warpsmith.ir.dialects import tile
from warpsmith.tile.frontend.rearrange import rearranged
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Parameter, Scalar, items
from warpsmith.tile.layout import ComposeLayout, S, TileLayout
from warpsmith.tile.model.buffers import (
    AnyLayout,
    buffer_of,
    dense_layout,
    first_element,
    layout_attr,
    memory_elements,
    plain,
)
from warpsmith.tile.model.dtypes import TileType, tile_type

__all__ = ["METHODS", "allocate", "declare", "match", "memory_of", "type_of", "view"]

_SPACES = {"shared": tile.SHARED, "shared.dyn": tile.SHARED, "local": tile.PRIVATE}
_KNOWN_SCOPES = {
    "tmem": "tensor memory, which compute capability 10 has",
    "trn.sbuf": "a Trainium core",
    "trn.psum": "a Trainium core",
}


def type_of(dtype: Any) -> TileType:
    """An element type given by name, or as `T.float32`."""
    found = getattr(dtype, "type", None)
    return found if isinstance(found, TileType) else tile_type(str(dtype))


def _shape(shape: Any) -> tuple[Any, ...]:
    parts = items(shape) or [shape]
    for part in parts:
        if isinstance(part, Scalar) and part.type.is_integer:
            continue
        if isinstance(part, Scalar):
            raise InvalidTileProgram(f"an extent is an integer, not {part.type}", help="n // 2 is one, n / 2 isn't")
        if isinstance(part, bool) or not hasattr(part, "__index__") or int(part) < 1:
            raise InvalidTileProgram(f"an extent is a positive integer, not {part!r}")
    return tuple(part if isinstance(part, Scalar) else int(part) for part in parts)


def _flattened(arguments: tuple[Any, ...]) -> Sequence[Any]:
    """`f(1, 2)` and `f((1, 2))` alike."""
    inner = items(arguments[0]) if len(arguments) == 1 else None
    return arguments if inner is None else inner


def _static(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(-1 if isinstance(part, Scalar) else part for part in shape)


def _layout(shape: tuple[int, ...], layout: Any) -> AnyLayout | None:
    """The layout that was asked for, made to fit."""
    if layout is None:
        return None
    if layout == "default":
        return dense_layout(shape)  # of one with symbolic extents `match` says the strides
    if not isinstance(layout, (TileLayout, ComposeLayout)):
        raise InvalidTileProgram(f"a layout is a TileLayout, not {layout!r}", help="TileLayout(S[(32, 8) : (8, 1)])")
    if any(extent < 0 for extent in shape):
        raise InvalidTileProgram(
            "a layout has known extents, and an extent of this buffer is symbolic",
            help="specialise it with T.constexpr",
        )
    if isinstance(layout, ComposeLayout) and layout.tile.size() == 1:
        layout = layout.over(shape)
    size, elements = plain(layout).size(), math.prod(shape)
    if size != elements:
        raise InvalidTileProgram(
            f"layout {layout} places {size} elements, but shape {shape} has {elements}",
            help="the extents of a layout multiply to the buffer's",
        )
    plain(layout).group(shape)  # InvalidLayout: no dim of the shape may cut through a factor
    first = first_element(plain(layout))
    if first < 0:
        raise InvalidTileProgram(
            f"layout {layout} places an element at {first}, before its buffer begins", help=f"add an offset: + {-first}"
        )
    return layout


def _attributes(layout: AnyLayout | None, type: TileType) -> dict[str, at.Attribute]:
    return {"layout": layout_attr(layout), "dtype": at.string(type.name)}


def match(
    state: KernelState,
    param: Parameter,
    shape: Any,
    dtype: Any,
    strides: Sequence[int] | None = None,
    elem_offset: int = 0,
    align: int = 16,
    layout: Any = "default",
) -> Buffer:
    """A parameter as a buffer."""
    parts, type = _shape(shape), type_of(dtype)
    dims = _static(parts)
    if strides is not None:
        if layout != "default":
            raise InvalidTileProgram("strides and a layout say the same thing twice")
        if -1 in dims or any(isinstance(each, Scalar) for each in strides):
            raise InvalidTileProgram(
                "strides and symbolic extents don't go together: such a buffer is row-major",
                help="specialise it with T.constexpr",
            )
        layout = TileLayout(S[tuple(max(d, 1) for d in dims) : tuple(strides)])
    found = _layout(dims, layout)
    if elem_offset:
        if not isinstance(found, TileLayout) or -1 in dims:
            raise InvalidTileProgram("elem_offset is of a buffer with known extents and a plain layout")
        found = found.shifted(elem_offset)
    elements = -1 if -1 in dims else memory_elements(found, dims)
    memory = state.bind_parameter(param, elements, type)
    is_dense = -1 in dims or found == dense_layout(dims)
    state.note_parameter(param, parts, type, align, None if is_dense else found)
    operands = [memory, *(part.value for part in parts if isinstance(part, Scalar))]
    attributes = _attributes(found, type)
    if -1 in dims[1:]:
        amounts, by = _row_major_strides(state, parts)
        places: list[int] = []
        for value in by:
            places.append(len(operands) if value is not None else -1)
            operands += [value] if value is not None else []
        attributes |= {"strides": at.dense_array(amounts), "by": at.dense_array(places)}
    value = tile.buffer_op(
        state.b, "tile.match_buffer", operands, memref(dims, type.ir), attributes, state.target or param.name
    )
    return Buffer(value, type)


def _row_major_strides(state: KernelState, parts: Sequence[Any]) -> tuple[list[int], list[Value | None]]:
    """Elements to the next index of each dim: a number, times a value where extents behind it are symbolic."""
    amount, by = 1, None
    amounts, values = list[int](), list[Value | None]()
    for part in reversed(parts):
        amounts.insert(0, amount)
        values.insert(0, by)
        if isinstance(part, Scalar):
            extent = state.scalars.index(part)
            by = extent if by is None else state.b.op1("arith.muli", (by, extent), extent.type)
        else:
            amount *= part
    return amounts, values


def allocate(state: KernelState, shape: Any, dtype: Any, scope: str, layout: Any, align: int) -> Buffer:
    """Memory of the kernel's own."""
    state.need_device("an allocation")
    if scope in _KNOWN_SCOPES:
        raise InvalidTileProgram(f"memory scope '{scope}' needs {_KNOWN_SCOPES[scope]}", help="use shared or local")
    space = _SPACES.get(scope)
    if space is None:
        raise InvalidTileProgram(
            f"a kernel can't allocate in scope '{scope}'", help='"shared", "shared.dyn" or "local"'
        )
    dims = _shape(shape)
    if any(isinstance(part, Scalar) for part in dims):
        raise InvalidTileProgram("an allocation has known extents", help="specialise them with T.constexpr")
    type = type_of(dtype)
    if scope == "shared.dyn":
        if state.has_dynamic:
            raise InvalidTileProgram(
                "a second allocation in shared.dyn: a launch gives a block one array",
                help="allocate all of it at once, and take regions and views of it",
            )
        state.has_dynamic = True
    if align < 1 or align & (align - 1):
        raise InvalidTileProgram(f"an alignment is a power of two, not {align}")
    attributes = _attributes(_layout(_static(dims), layout), type)
    attributes |= {"scope": at.string(scope), "alignment": at.integer_attr(max(align, type.bytes), at.I64)}
    value = tile.buffer_op(
        state.b, "tile.alloc", (), memref(_static(dims), type.ir, space), attributes, state.target or "buffer"
    )
    return Buffer(value, type)


def memory_of(buffer: Buffer) -> Buffer:
    """The buffer whose memory a view is of: what `.data` points at."""
    info = buffer_of(buffer.value)
    return Buffer(info.root, info.root_type)


def declare(
    state: KernelState, data: Buffer, shape: Any, dtype: Any, strides: Sequence[int] | None, offset: int, layout: Any
) -> Buffer:
    """Another buffer in the memory of `data`, `offset` elements of its own type from where that begins."""
    root, type = memory_of(data), type_of(dtype)
    info, parts = buffer_of(root.value), _shape(shape)
    if any(isinstance(part, Scalar) for part in parts):
        raise InvalidTileProgram("a buffer over another's memory has known extents")
    dims = _static(parts)
    if strides is not None and layout != "default":
        raise InvalidTileProgram("strides and a layout say the same thing twice")
    if type is not root.type and "bool" in (type.kind, root.type.kind):
        raise InvalidTileProgram(f"memory of {root.type} can't be seen as {type}", help="Tx.cast converts")
    if -1 not in info.shape and memory_elements(info.layout, info.shape) * info.type.bits % type.bits:
        raise InvalidTileProgram(f"the memory of '{info.name}' has no whole number of elements of {type}")
    found = _layout(dims, layout if strides is None else TileLayout(S[dims : tuple(strides)]))
    if offset and isinstance(found, ComposeLayout):
        if offset % found.period:
            raise InvalidTileProgram(
                f"a swizzled buffer begins at a multiple of its period, {found.period} elements, not at {offset}"
            )
        found = found.with_tile(found.tile.shifted(offset))
    elif offset:
        found = (dense_layout(dims) if found is None else plain(found)).shifted(offset)
    return _view_op(state, root, dims, type, found, "decl")


# ---------------------------------------------------------------------------------------------------------------- views
def _view_op(
    state: KernelState, buffer: Buffer, shape: Sequence[int], type: TileType, layout: AnyLayout | None, kind: str
) -> Buffer:
    _check_reach(buffer, shape, type, layout)
    space = buffer_of(buffer.value).value.type
    attributes = _attributes(layout, type) | {"kind": at.string(kind)}
    value = tile.buffer_op(
        state.b,
        "tile.view",
        (buffer.value,),
        memref(shape, type.ir, getattr(space, "space", 0)),
        attributes,
        state.target or buffer.value.name,
    )
    return Buffer(value, type)


def _check_reach(buffer: Buffer, shape: Sequence[int], type: TileType, layout: AnyLayout | None) -> None:
    """InvalidTileProgram for a view that reaches out of the memory it is of."""
    root = buffer_of(buffer_of(buffer.value).root)
    if layout is None or -1 in root.shape:
        return
    held = memory_elements(root.layout, root.shape) * root.type.bits // type.bits
    reach = memory_elements(layout, shape)
    if reach > held:
        raise InvalidTileProgram(
            f"a view of layout {layout} reaches over {reach} elements of {type}; '{root.name}' has memory for {held}",
            help="allocate as much as the layouts of all views reach over",
        )


def _need_layout(buffer: Buffer) -> AnyLayout:
    info = buffer_of(buffer.value)
    if info.layout is None:
        raise InvalidTileProgram(f"'{info.name}' has no layout")
    if info.strides is not None:
        raise InvalidTileProgram(
            f"'{info.name}' has symbolic extents, so that its strides aren't known: it has no views",
            help="take regions of it, or specialise it with T.constexpr",
        )
    return info.layout


def view(state: KernelState, buffer: Buffer, *shape: Any, layout: Any = None) -> Buffer:
    """The same elements under another shape (-1 once), another layout, or another element type."""
    if len(shape) == 1 and (isinstance(shape[0], str) or hasattr(shape[0], "type")):
        return _view_type(state, buffer, type_of(shape[0]))
    info = buffer_of(buffer.value)
    if -1 in info.shape:
        raise InvalidTileProgram(
            f"'{info.name}' has a symbolic extent, so that its number of elements isn't known: it can't be reshaped",
            help="take regions of it, or specialise it with T.constexpr",
        )
    total = math.prod(info.shape)
    sizes = [int(each) for each in _flattened(shape)]
    if sizes.count(-1) == 1:
        known = -math.prod(sizes)
        if known and total % known == 0:
            sizes[sizes.index(-1)] = total // known
    if any(each < 1 for each in sizes) or (layout is None and math.prod(sizes) != total):
        raise InvalidTileProgram(
            f"a view of shape {tuple(sizes)} has {math.prod(sizes)} elements, '{info.name}' of shape {info.shape} has "
            f"{total}"
        )
    chosen = _layout(tuple(sizes), layout) if layout is not None else _need_layout(buffer)
    return _view_op(state, buffer, sizes, buffer.type, chosen, "view")


def _view_type(state: KernelState, buffer: Buffer, type: TileType) -> Buffer:
    info = buffer_of(buffer.value)
    layout, source = _need_layout(buffer), buffer.type
    if type is source:
        return buffer
    if "bool" in (type.kind, source.kind):
        raise InvalidTileProgram(f"'{info.name}' of {source} can't be viewed as {type}", help="Tx.cast converts")
    if type.bits == source.bits:
        return _view_op(state, buffer, info.shape, type, layout, "dtype")
    if not isinstance(layout, TileLayout):
        raise InvalidTileProgram("a swizzled buffer keeps its element width", help="view it before it is swizzled")
    *rest, last = info.shape
    if type.bits > source.bits:
        factor = type.bits // source.bits
        if last % factor:
            raise InvalidTileProgram(f"{last} elements of {source} don't make whole elements of {type}")
        return _view_op(state, buffer, (*rest, last // factor), type, layout.pack(factor), "dtype")
    factor = source.bits // type.bits
    return _view_op(state, buffer, (*rest, last * factor), type, layout.unpack(factor), "dtype")


def permute(state: KernelState, buffer: Buffer, *dims: Any) -> Buffer:
    """The dims in another order."""
    order = tuple(int(d) for d in _flattened(dims))
    info = buffer_of(buffer.value)
    if sorted(order) != list(range(len(info.shape))):
        raise InvalidTileProgram(f"{order} is no order of the {len(info.shape)} dims of '{info.name}'")
    layout = rearranged(_need_layout(buffer), info.shape, order)
    return _view_op(state, buffer, [info.shape[d] for d in order], buffer.type, layout, "permute")


def rearrange(state: KernelState, buffer: Buffer, pattern: str, **sizes: int) -> Buffer:
    """`"a (b c) -> (a b) c"`: dims split, reordered and joined."""
    from warpsmith.tile.frontend.rearrange import parse_pattern

    info = buffer_of(buffer.value)
    split, order, joined = parse_pattern(pattern, info.shape, sizes)
    layout = rearranged(_need_layout(buffer), split, order)
    return _view_op(state, buffer, joined, buffer.type, layout, "rearrange")


def local(state: KernelState, buffer: Buffer, *shape: Any, layout: Any = None) -> Buffer:
    """This thread's own registers of a buffer, flat unless a shape is given."""
    info = buffer_of(buffer.value)
    if info.scope != "local":
        raise InvalidTileProgram(f"'{info.name}' is in {info.scope} memory: only registers have a .local() view")
    span = memory_elements(_need_layout(buffer), info.shape)
    sizes = [int(each) for each in _flattened(shape)] or [span]
    if layout is None and math.prod(sizes) != span:
        raise InvalidTileProgram(
            f"local view shape {tuple(sizes)} has {math.prod(sizes)} elements, but a thread holds {span} registers of "
            f"'{info.name}'"
        )
    return _view_op(state, buffer, sizes, buffer.type, _layout(tuple(sizes), layout or "default"), "local")


METHODS: dict[str, Callable[..., Any]] = {
    "view": view,
    "permute": permute,
    "rearrange": rearrange,
    "local": local,
}
