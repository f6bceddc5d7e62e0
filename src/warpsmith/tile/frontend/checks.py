"""What a primitive's call must fulfil whatever lowering it gets: operand kinds, shapes, types, options.

In: the operands by parameter.  Out: the options that go with the call; InvalidTileProgram says what doesn't fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram, did_you_mean
from warpsmith.tile.frontend.values import Buffer, Region, Scalar, items
from warpsmith.tile.model import ops
from warpsmith.tile.model.buffers import buffer_of
from warpsmith.tile.model.dtypes import FLOAT32, INT32, TileType, common
from warpsmith.tile.model.reductions import has_slots, reduced_shape

__all__ = ["check", "check_options", "squeezed"]

Operand = Region | Scalar | int | float
Operands = Mapping[str, Operand]


def check(row: ops.Primitive, operands: Operands, values: Mapping[str, Any]) -> dict[str, Any]:
    """The call's options.  InvalidTileProgram where the operands don't fit the primitive."""
    dst = operands["dst"]
    if not isinstance(dst, Region):
        raise InvalidTileProgram(
            f"Tx.{row.name} is tile-only and expects `dst` to be a buffer or a region of one",
            help=f"use T.{row.name} for expressions",
        )
    return dict(_CHECKS[row.kind](row, dst, operands, values))


_EVICT = ("evict_first", "evict_last", "evict_normal", "evict_unchanged", "no_allocate")
_OPTIONS: dict[str, tuple[str | bool | int, ...]] = {
    # Hints about caches, which a lowering may follow: what a copy moves is the same.
    "cache": ("nc", "ca", "cg", "cs"),
    "l1_evict": (*_EVICT, *(f"L1::{each}" for each in _EVICT)),
    "l2_evict": (*_EVICT[:3], *(f"L2::{each}" for each in _EVICT[:3])),
    "prefetch_size": (64, 128, 256, "64B", "128B", "256B"),
    "rounding_mode": ("rn", "rz", "rm", "rp"),
    "ftz": (False, True),
    "thread_reduce": (False, True),
}


def check_options(row: ops.Primitive, config: Mapping[str, Any]) -> None:
    """InvalidTileProgram where an option of a call has another value than it can have."""
    for key, value in config.items():
        legal = _OPTIONS.get(key, (value,))
        if not any(value == each and isinstance(value, type(each)) for each in legal):
            raise InvalidTileProgram(
                f"Tx.{row.name}: {key} is {' or '.join(map(repr, legal))}, not {value!r}",
                help=did_you_mean(str(value), map(str, legal)),
            )


def squeezed(extents: Sequence[int]) -> tuple[int, ...]:
    """Extents without those of 1."""
    return tuple(extent for extent in extents if extent != 1)


def _shape(region: Region) -> str:
    return str(list(region.extents))


def _region(row: ops.Primitive, name: str, operand: Operand) -> Region:
    if not isinstance(operand, Region):
        raise InvalidTileProgram(f"Tx.{row.name} expects `{name}` to be a buffer or a region of one")
    return operand


def type_of(operand: Operand, like: TileType) -> TileType:
    """An operand's element type; a Python number takes `like` where that can hold it."""
    if isinstance(operand, Region):
        return operand.buffer.type
    if isinstance(operand, Scalar):
        return operand.type
    if isinstance(operand, float) and not like.is_float:
        return FLOAT32
    return like if like.is_float or like.is_integer else INT32


def _copy(row: ops.Primitive, dst: Region, operands: Operands, values: Mapping[str, Any]) -> dict[str, Any]:
    src = _region(row, "src", operands["src"])
    if squeezed(dst.extents) != squeezed(src.extents):
        raise InvalidTileProgram(
            f"{row.name}: dst region shape {_shape(dst)} != src region shape {_shape(src)}; both must be the same",
            help="reshape one of them with .view, .permute or .rearrange",
        )
    if dst.buffer.type is not src.buffer.type:
        raise InvalidTileProgram(
            f"{row.name}: dst is {dst.buffer.type}, src is {src.buffer.type}",
            help="a copy keeps the type; Tx.cast converts",
        )
    return {}


def _broadcasts(row: ops.Primitive, name: str, source: Region, dst: Region) -> None:
    wanted, found = dst.extents, source.extents
    if len(found) > len(wanted) and squeezed(found) == squeezed(wanted):
        return
    if len(found) > len(wanted):
        raise InvalidTileProgram(f"Tx.{row.name}: `{name}` has {len(found)} dims, dst has {len(wanted)}")
    for back in range(1, len(found) + 1):
        if found[-back] not in (1, wanted[-back]):
            raise InvalidTileProgram(
                f"Tx.{row.name}: `{name}` of shape {_shape(source)} doesn't broadcast to dst's {_shape(dst)}: "
                f"dim {len(wanted) - back} is {found[-back]} against {wanted[-back]} (equal or 1)"
            )


def _check_scale_and_bias(row: ops.Primitive, dst: Region, sources: Operands) -> None:
    """Scalars of another type than the primitive computes in: rounding them would go unseen."""
    regions = [source.buffer.type for source in sources.values() if isinstance(source, Region)]
    type = ops.compute_type(dst.buffer.type, regions)
    for name in ("scale", "bias"):
        source = sources.get(name)
        if isinstance(source, Scalar) and source.type is not type:
            raise InvalidTileProgram(
                f"Tx.{row.name}: {name} is {source.type}, and it computes in {type}", help=f"T.cast({name}, '{type}')"
            )


def _elementwise(row: ops.Primitive, dst: Region, operands: Operands, values: Mapping[str, Any]) -> dict[str, Any]:
    sources = {name: operands[name] for name in row.sources if name in operands}
    if row.kind in ("unary", "cast") and "src" in sources:
        _region(row, "src", sources["src"])
    if row.kind == "unary" and "src" not in sources:
        sources = {"src": dst, **sources}
    if "scale" in sources and isinstance(sources["scale"], Region):
        raise InvalidTileProgram(f"Tx.{row.name}: scale is a number, not a buffer")
    if row.kind in ("binary", "ternary") and not any(isinstance(each, Region) for each in sources.values()):
        raise InvalidTileProgram(f"Tx.{row.name}: all inputs are numbers", help="Tx.fill(dst, value)")
    for name, source in sources.items():
        if isinstance(source, Region):
            _broadcasts(row, name, source, dst)
    _check_scale_and_bias(row, dst, sources)
    counted = {name: source for name, source in sources.items() if name != "condition"}
    types = [type_of(source, dst.buffer.type) for source in counted.values()]
    compute = ops.compute_type(dst.buffer.type, types) if row.kind not in ("fill", "cast") else dst.buffer.type
    if not row.takes(compute):
        raise InvalidTileProgram(
            f"Tx.{row.name} computes in {row.legal}, not in {compute}", help="cast the operands with Tx.cast"
        )
    return {}


def _reduction(row: ops.Primitive, dst: Region, operands: Operands, values: Mapping[str, Any]) -> dict[str, Any]:
    src = _region(row, "src", operands["src"])
    axes = values.get("axes", -1)
    listed = items(axes)
    given = [axes] if listed is None else listed
    rank = len(src.extents)
    found: list[int] = []
    for axis in given:
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise InvalidTileProgram(f"Tx.{row.name}: axis {axis!r} of a source with {rank} dims")
        found.append(axis % rank)
    if len(set(found)) != len(found):
        raise InvalidTileProgram(f"Tx.{row.name}: an axis is named twice in {tuple(given)}")
    slots = has_slots(dst.extents, src.extents, found)
    if squeezed(reduced_shape(src.extents, found)) != squeezed(dst.extents) and not slots:
        raise InvalidTileProgram(
            f"Tx.{row.name}: dst region shape {_shape(dst)} isn't src's {_shape(src)} without axes {sorted(found)}"
        )
    if slots and not all(buffer_of(each.buffer.value).is_distributed for each in (dst, src)):
        raise InvalidTileProgram(
            f"Tx.{row.name}: dst {_shape(dst)} keeps a part of the reduced dims of src {_shape(src)}: only registers "
            "that are spread over threads have a place for each thread's partial result"
        )
    type = common(src.buffer.type, dst.buffer.type)
    if not row.takes(type):
        raise InvalidTileProgram(f"Tx.{row.name} computes in {row.legal}, not in {type}")
    accum = values.get("accum", False)
    if not isinstance(accum, bool):
        raise InvalidTileProgram(f"Tx.{row.name}: accum is True or False")
    return {"axes": tuple(sorted(found)), "accum": accum}


def _gemm(row: ops.Primitive, dst: Region, operands: Operands, values: Mapping[str, Any]) -> dict[str, Any]:
    a, b = (_region(row, name, operands[name]) for name in ("a", "b"))
    options: dict[str, Any] = {}
    for key in ("transpose_a", "transpose_b"):
        value = values.get(key, False)
        if not isinstance(value, int) or value not in (0, 1):
            raise InvalidTileProgram(f"gemm: {key} is True or False, not {_given(value)}")
        options[key] = bool(value)
    m, k = _matrix(row, "a", a, options["transpose_a"])
    k2, n = _matrix(row, "b", b, options["transpose_b"])
    if k != k2 or squeezed(dst.extents) != squeezed((m, n)):
        raise InvalidTileProgram(
            f"gemm: a is {m}x{k}, b is {k2}x{n}, dst is {_shape(dst)}", help="dst[m, n] = a[m, k] b[k, n]"
        )
    if "c" in operands and squeezed(_region(row, "c", operands["c"]).extents) != squeezed(dst.extents):
        raise InvalidTileProgram("gemm: c and dst have different shapes")
    for key, default in (("alpha", 1.0), ("beta", 1.0 if "c" in operands else 0.0)):
        value = values.get(key, default)
        if not isinstance(value, (int, float)):
            raise InvalidTileProgram(
                f"gemm: {key} is a number that is known while the kernel is read, not {_given(value)}"
            )
        options[key] = float(value)
    return options


def _given(value: Any) -> str:
    """What an author gave, in words."""
    return "a value of the kernel" if isinstance(value, (Scalar, Region, Buffer)) else repr(value)


def _matrix(row: ops.Primitive, name: str, region: Region, transposed: bool) -> tuple[int, int]:
    dims = region.extents if len(region.extents) == 2 else squeezed(region.extents)
    if len(dims) != 2:
        raise InvalidTileProgram(f"Tx.{row.name}: `{name}` is no matrix: {_shape(region)}")
    return (dims[1], dims[0]) if transposed else (dims[0], dims[1])


def _known(row: ops.Primitive, dst: Region, operands: Operands, values: Mapping[str, Any]) -> dict[str, Any]:
    return {}


_CHECKS: dict[str, Callable[[ops.Primitive, Region, Operands, Mapping[str, Any]], dict[str, Any]]] = {
    "copy": _copy,
    "cast": _elementwise,
    "fill": _elementwise,
    "unary": _elementwise,
    "binary": _elementwise,
    "ternary": _elementwise,
    "reduce": _reduction,
    "gemm": _gemm,
    "known": _known,
}
