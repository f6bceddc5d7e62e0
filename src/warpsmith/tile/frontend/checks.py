"""What a primitive's call must fulfil whatever lowering it gets: operand kinds, shapes, types, options.

In: the operands by parameter.  Out: the options that go with the call; InvalidTileProgram says what doesn't fit.
Reference: tile.md 2.5, 6.2, 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram
from warpsmith.tile import ops
from warpsmith.tile.dtypes import FLOAT32, INT32, TileType, common
from warpsmith.tile.frontend.values import Region, Scalar, items

__all__ = ["check", "squeezed"]

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


def _elementwise(row: ops.Primitive, dst: Region, operands: Operands, values: Mapping[str, Any]) -> dict[str, Any]:
    sources = {name: operands[name] for name in row.sources if name in operands}
    if row.kind == "unary" and "src" not in sources:
        sources = {"src": dst, **sources}
    if "scale" in sources and isinstance(sources["scale"], Region):
        raise InvalidTileProgram(f"Tx.{row.name}: scale is a number, not a buffer")
    if row.kind in ("binary", "ternary") and not any(isinstance(each, Region) for each in sources.values()):
        raise InvalidTileProgram(f"Tx.{row.name}: all inputs are numbers", help="Tx.fill(dst, value)")
    for name, source in sources.items():
        if isinstance(source, Region):
            _broadcasts(row, name, source, dst)
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
    kept = [1 if d in found else extent for d, extent in enumerate(src.extents)]
    if squeezed(kept) != squeezed(dst.extents):
        raise InvalidTileProgram(
            f"Tx.{row.name}: dst region shape {_shape(dst)} isn't src's {_shape(src)} without axes {sorted(found)}"
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
    options = {key: values.get(key, False) for key in ("transpose_a", "transpose_b")}
    m, k = _matrix(row, "a", a, bool(options["transpose_a"]))
    k2, n = _matrix(row, "b", b, bool(options["transpose_b"]))
    if k != k2 or squeezed(dst.extents) != squeezed((m, n)):
        raise InvalidTileProgram(
            f"gemm: a is {m}x{k}, b is {k2}x{n}, dst is {_shape(dst)}", help="dst[m, n] = a[m, k] b[k, n]"
        )
    if "c" in operands and squeezed(_region(row, "c", operands["c"]).extents) != squeezed(dst.extents):
        raise InvalidTileProgram("gemm: c and dst have different shapes")
    for key, default in (("alpha", 1.0), ("beta", 1.0 if "c" in operands else 0.0)):
        value = values.get(key, default)
        if isinstance(value, (Scalar, Region)):
            raise InvalidTileProgram(f"gemm: {key} is a number that is known while the kernel is read")
        options[key] = float(value)
    return options


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
