"""The passes before CUDA C++: those of the GPU target, but loops stay loops.

nvcc unrolls by itself: loops that `optimize-loops` would have unrolled are marked, and print as `#pragma unroll`.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.backends.base import Hook, pass_calls
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.core.types import TensorType
from warpsmith.ir.dialects.arith import constant_int
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall, PassTiming, run_pipeline
from warpsmith.passes.pipeline import GPU_BUFFERS, GPU_LOOPS, ONE_FUNCTION, TILE_BUFFERS

__all__ = ["BLOCKS", "DIMS", "FUSIONS", "STRUCTURED_BLOCKS", "pipeline", "run"]

DIMS = "warpsmith.dims"
FUSIONS: tuple[str, ...] = (*GPU_LOOPS, *ONE_FUNCTION, *GPU_BUFFERS)
STRUCTURED_BLOCKS: tuple[str, ...] = (
    "expand-float-ops",
    "expand-small-floats",
    "expand-remainder",
    "canonicalize",
    "cse",
    "licm",
)
"""Of a tile program whose primitives are arithmetic on buffers already."""
BLOCKS: tuple[str, ...] = (*TILE_BUFFERS, *STRUCTURED_BLOCKS)
_MOST_OPS = 400  # in an unrolled body, as `optimize-loops` has it
_UNROLL = "tile.unroll"


def pipeline(kernel: Kernel[object]) -> tuple[PassCall, ...]:
    """The passes of a kernel."""
    return pass_calls(BLOCKS if kernel.form == "buffers" else FUSIONS)


def run(module: Operation, calls: Sequence[PassCall], on_after: Hook | None = None) -> list[PassTiming]:
    """Run the passes of a fusion, and write down what they would lose: dims of shared tiles, short loops."""
    tiles: list[tuple[int, ...]] = []

    def note(index: int, name: str, module: Operation) -> None:
        if name == "lower-loops-to-scf":
            tiles.extend(_tiles(module))
        if on_after is not None:
            on_after(index, name, module)

    timings = run_pipeline(module, calls, on_after=note)
    _name_dims(module, tiles)
    for op in module.walk_post():
        if op.name == "scf.for" and _is_small(op):
            op.attributes[_UNROLL] = at.UNIT
    return timings


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
