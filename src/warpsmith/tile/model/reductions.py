"""What the operands of sum, max and min say: the shape of the result, and the type that partial results are held in.

In: extents, axes, element types.  Out: what the front end checks, dispatch lowers and the simulator's meaning follows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from warpsmith.tile.model.dtypes import BY_NAME, TileType, common

__all__ = ["accumulation_type", "has_slots", "reduced_shape"]


def reduced_shape(src: Sequence[int], axes: Collection[int]) -> tuple[int, ...]:
    """The extents that are left: 1 along each of `axes`."""
    return tuple(1 if d in axes else extent for d, extent in enumerate(src))


def has_slots(dst: Sequence[int], src: Sequence[int], axes: Collection[int]) -> bool:
    """Whether dst isn't the whole reduction, but has a slot for each thread that a reduced dim of src is spread over.

    Such a dst has src's rank, its kept extents, and along reduced dims a part of its extents.
    """
    wanted = reduced_shape(src, axes)
    if _real(dst) == _real(wanted) or len(dst) != len(src):
        return False
    return all(
        whole % own == 0 if d in axes else own == whole for d, (own, whole) in enumerate(zip(dst, src, strict=True))
    )


def _real(extents: Sequence[int]) -> list[int]:
    return [extent for extent in extents if extent != 1]


def accumulation_type(dst: TileType, src: TileType) -> TileType:
    """What partial results are held in: the type in which source and destination meet, of 32 bits at least.

    So a sum of float16 is accumulated in float32 and rounded once; one of int8 is exact in an int32 destination, and
    modulo 256 in an int8 one.
    """
    found = common(src, dst)
    return BY_NAME[f"{found.kind}32"] if found.bits < 32 else found
