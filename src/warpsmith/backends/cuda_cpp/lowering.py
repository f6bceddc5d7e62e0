"""The passes before CUDA C++: those of the GPU target, but loops stay loops.

nvcc unrolls by itself: loops that `optimize-loops` would have unrolled are marked, and print as `#pragma unroll`.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.core.types import TensorType
from warpsmith.ir.dialects.arith import constant_int
from warpsmith.passes.manager import PassTiming, run_pipeline
from warpsmith.passes.pipeline import GPU_LOWERING, GPU_PIPELINE

__all__ = ["DIMS", "PASSES", "TILE_PASSES", "lower", "lower_tile"]

DIMS = "warpsmith.dims"
_END = ("library-calls", "convert-scf-to-cf", "convert-to-llvm")
PASSES: tuple[str, ...] = tuple(
    name for name in (*GPU_PIPELINE, *GPU_LOWERING) if name != "optimize-loops" and name not in _END
)
TILE_PASSES: tuple[str, ...] = (
    *("expand-float-ops", "expand-small-floats", "expand-remainder"),
    *("canonicalize", "cse", "licm"),
)
_MOST_OPS = 400  # in an unrolled body, as `optimize-loops` has it
_UNROLL = "tile.unroll"


def lower(module: Operation) -> list[PassTiming]:
    """Rewrite an emitted module in place to what `cuda_source` prints."""
    tiles: list[tuple[int, ...]] = []

    def note(_index: int, name: str, module: Operation) -> None:
        if name == "lower-loops-to-scf":
            tiles.extend(_tiles(module))

    timings = run_pipeline(module, PASSES, on_after=note)
    _name_dims(module, tiles)
    for op in module.walk_post():
        if op.name == "scf.for" and _is_small(op):
            op.attributes[_UNROLL] = at.UNIT
    return timings


def lower_tile(module: Operation) -> list[PassTiming]:
    """Rewrite a dispatched tile module in place to what `cuda_source` prints."""
    return run_pipeline(module, TILE_PASSES)


def _tiles(module: Operation) -> list[tuple[int, ...]]:
    """The dims of shared tiles, before tensors are flattened."""
    return [
        op.result.type.shape
        for op in module.walk()
        if op.name == "xla_gpu.allocate_shared" and isinstance(op.result.type, TensorType)
    ]


def _name_dims(module: Operation, tiles: list[tuple[int, ...]]) -> None:
    """Write the dims of shared tiles where they are declared."""
    shared = [
        op
        for op in module.body
        if op.name == "memref.global" and not isinstance(op.attributes.get("initial_value"), at.DenseAttr)
    ]
    if len(shared) == len(tiles):
        for op, dims in zip(shared, tiles, strict=True):
            op.attributes[DIMS] = at.dense_array(dims)


def _is_small(loop: Operation) -> bool:
    """Whether all iterations together are few ops, and there is no loop in it that stays one."""
    lower, upper, step = (constant_int(v) for v in loop.operands[:3])
    if lower is None or upper is None or not step:
        return False
    size = 0
    for op in loop.body.parent_op.walk() if loop.body.parent_op is not None else ():
        if op is not loop and op.row.has(Trait.LOOP) and _UNROLL not in op.attributes:
            return False
        size += 1
    trips = -(-(upper - lower) // step)
    return trips * size <= _MOST_OPS
