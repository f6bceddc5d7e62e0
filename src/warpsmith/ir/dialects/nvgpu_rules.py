"""The rules of a warp's ops (dialects/nvgpu.py): what each takes, from which memory, how much at a time.

In: an op whose operand and result counts are right.  Out: nothing, or InvalidIr.  The rows hold them.
Reference: PTX ISA, the sections on cp.async, ldmatrix, stmatrix and mma.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.diagnostics import int_attr, ints, invalid, need, need_index, need_types, types_of
from warpsmith.ir.core.ssa import Operation, Value

_GLOBAL, _SHARED = 0, 3
_SPACES = {_GLOBAL: "global", _SHARED: "shared"}
_COPIES = (4, 8, 16)
_TILES = (1, 2, 4)
_SHAPE = (16, 8, 16)
_A, _B, _C = 8, 4, 4  # a lane's elements of 16 x 16, 16 x 8 and 16 x 8


def words(op: Operation) -> None:
    """Barrier numbers and lane masks are words of 32 bits."""
    for value in op.operands:
        need(op, value, value.type is ty.I32, "an i32")


def elect(op: Operation) -> None:
    """A lane learns whether it is the one."""
    need_types(op, types_of(op.results), [ty.I1], "the results")


def wait(op: Operation) -> None:
    """How many groups may be in flight is no negative number."""
    if int_attr(op, "n") < 0:
        raise invalid(op, f"a wait for {int_attr(op, 'n')} groups", "n is how many may be in flight still, 0 or more")


def _memory(op: Operation, base: Value, index: Value, space: int) -> ty.MemRefType:
    """The type of a flat buffer in `space`, which `index` is an index into."""
    type = base.type
    need_index(op, [index])
    if not isinstance(type, ty.MemRefType) or type.rank != 1 or type.space != space:
        where = f" in {_SPACES[space]} memory" + (f" (space {space})" if space else "")
        raise invalid(op, f"an operand of type {type} where a memref of rank 1{where} is needed")
    return type


def copy(op: Operation) -> None:
    """From global to shared memory, 4, 8 or 16 bytes that are whole elements."""
    target, i, source, j = op.operands
    to, of = _memory(op, target, i, _SHARED), _memory(op, source, j, _GLOBAL)
    if to.element is not of.element:
        raise invalid(op, f"a copy of {of.element} to {to.element}", "a copy moves bytes as they are: one element type")
    size = int_attr(op, "bytes")
    if size not in _COPIES:
        raise invalid(op, f"a copy of {size} bytes", "a thread copies 4, 8 or 16 bytes at a time")
    if 8 * size % ty.bit_width(to.element):
        raise invalid(op, f"a copy of {size} bytes of {to.element}", "a copy is a whole number of elements")


def _tiles(op: Operation, tile: ty.Type, base: ty.MemRefType) -> None:
    """Tiles of 8 x 8 elements of 16 bits: each lane has two elements of each."""
    count, flag = int_attr(op, "num_tiles"), op.attributes["transpose"]
    if count not in _TILES:
        raise invalid(op, f"{count} tiles", "a warp moves 1, 2 or 4 tiles at a time")
    if not isinstance(flag, at.IntegerAttr) or flag.type is not ty.I1:
        raise invalid(op, "attribute 'transpose' is no truth value", "it is true or false")
    if ty.bit_width(base.element) != 16:
        raise invalid(op, f"tiles of {base.element}", "their elements have 16 bits")
    wanted = ty.vector((2 * count,), base.element)
    if tile is not wanted:
        raise invalid(op, f"{tile} for {count} tiles of {base}", f"a lane holds two elements a tile: {wanted}")


def load_matrix(op: Operation) -> None:
    """Tiles from shared memory, as many as the lane's vector holds."""
    base, index = op.operands
    _tiles(op, op.results[0].type, _memory(op, base, index, _SHARED))


def store_matrix(op: Operation) -> None:
    """Tiles to shared memory, as many as the lane's vector holds."""
    value, base, index = op.operands
    _tiles(op, value.type, _memory(op, base, index, _SHARED))


def multiply(op: Operation) -> None:
    """A lane's fragments of a 16 x 8 x 16 product of halves."""
    a, _, c = op.operands
    if ints(op, "shape") != _SHAPE:
        raise invalid(op, f"a product of shape {list(ints(op, 'shape'))}", f"the shape is {list(_SHAPE)}: m, n, k")
    element = ty.element_type(a.type)
    if element not in (ty.F16, ty.BF16):
        raise invalid(op, f"a product of {element}", "the factors are f16 or bf16, both alike")
    wanted = [ty.vector((_A,), element), ty.vector((_B,), element), ty.vector((_C,), ty.F32)]
    need_types(op, types_of(op.operands), wanted, "a lane's fragments of a, b and c")
    need_types(op, types_of(op.results), [c.type], "the results")
