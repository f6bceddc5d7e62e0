"""Lowerings that are known and aren't here, for they need hardware that no other lowering uses: each always refuses.

They are listed with the others where a call finds no lowering, and `dispatch=` may ask for one.
"""

from __future__ import annotations

from typing import NoReturn

from warpsmith.errors import InternalError
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.registry import Predicate, Variant

__all__ = ["VARIANTS"]

_TENSOR_MAP = "a tensor map and an asynchronous barrier (compute capability 9)"
_TENSOR_MEMORY = "tensor memory (compute capability 10)"
_MATRIX_UNITS = "tcgen05 matrix units (compute capability 10)"
_TRAINIUM = "a Trainium core"

_KNOWN: tuple[tuple[tuple[str, ...], str, str, str], ...] = (
    (("copy_async",), "tma_auto", "global <-> shared, a whole tile by one thread", _TENSOR_MAP),
    (("copy_async",), "tma_explicit", "global <-> shared through a given tensor map", _TENSOR_MAP),
    (("copy_async",), "dsmem", "shared memory of another block", "thread block clusters (compute capability 9)"),
    (("copy_async",), "smem_tmem", "shared -> tensor memory", _TENSOR_MEMORY),
    (("copy_async",), "tmem_local", "tensor memory <-> registers", _TENSOR_MEMORY),
    (("gemm_async",), "tcgen05", "products of shared and tensor memory", _MATRIX_UNITS),
    (
        ("binary_reduce", "unary_reduce", "binary_chain", "reduce_negate", "compose_op"),
        "trn",
        "on the engines of an accelerator core",
        _TRAINIUM,
    ),
)
"""Primitives, the variant's name, what it does, what it needs."""


def _missing(needs: str) -> Predicate:
    def check(_: CallContext) -> str:
        return "no lowering here uses it"

    return Predicate(f"needs {needs}", check)


def _emit(call: CallContext) -> NoReturn:
    raise InternalError(f"{call.row.name} has no lowering")


VARIANTS = [
    Variant(primitives, name, 10, f"{summary}: not here", (_missing(needs),), _emit)
    for primitives, name, summary, needs in _KNOWN
]
