"""Declarations of scope ids: `bx, by = T.cta_id([4, 2])`, `lane = T.lane_id()`."""

from __future__ import annotations

from typing import Any

from warpsmith.errors import InvalidTileProgram
from warpsmith.ir.dialects import tile
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Scalar, items
from warpsmith.tile.model.dtypes import INDEX

__all__ = ["declare"]

_REFUSED = {
    "cluster_id": "thread block clusters, which compute capability 9 and later have",
    "cta_id_in_cluster": "thread block clusters, which compute capability 9 and later have",
    "cta_id_in_pair": "pairs of blocks, which compute capability 10 has",
}


def declare(state: KernelState, kind: str, extents: Any, preferred: Any, dtype: str) -> Any:
    """One id, or a tuple of them where there are several extents."""
    state.need_device(f"T.{kind}")
    if kind in _REFUSED:
        raise InvalidTileProgram(f"T.{kind} needs {_REFUSED[kind]}; no lowering here uses them yet")
    if preferred is not None:
        raise InvalidTileProgram("preferred= is of cluster ids alone")
    if str(dtype) not in ("int32", "uint32"):
        raise InvalidTileProgram(f"an id is int32 or uint32, not {dtype}")
    sizes = _extents(kind, extents)
    count = 1 if sizes is None else len(sizes)
    ids = tile.scope_id(state.b, kind, sizes, count)
    scalars = [Scalar(id, INDEX) for id in ids]
    if count == 1:
        ids[0].name = state.target or ids[0].name
        return scalars[0]
    return tuple(scalars)


def _extents(kind: str, extents: Any) -> tuple[int, ...] | None:
    if extents is None:
        return None
    sizes = items(extents) or [extents]
    if not 1 <= len(sizes) <= 3:
        raise InvalidTileProgram(f"T.{kind} has one to three extents")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            if isinstance(size, Scalar):
                raise InvalidTileProgram(
                    f"an extent of T.{kind} is known while the kernel is read",
                    help="loop over what is symbolic, from the id on in steps of all of them, or specialise it with "
                    "T.constexpr",
                )
            raise InvalidTileProgram(f"an extent of T.{kind} is a positive integer, not {size!r}")
    return tuple(sizes)
