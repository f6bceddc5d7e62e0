"""The passes for NVIDIA's GPUs.  In: a kernel.  Out: passes, all of them or as far as control flow is structured."""

from __future__ import annotations

from warpsmith.backends.base import pass_calls
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall
from warpsmith.passes.pipeline import (
    FLATTEN,
    GPU_BUFFERS,
    GPU_PIPELINE,
    TILE_BUFFERS,
    TILE_LOWERING,
)

__all__ = ["BLOCKS", "FUSIONS", "STRUCTURED", "STRUCTURED_BLOCKS", "pipeline", "structured"]

STRUCTURED: tuple[str, ...] = (*GPU_PIPELINE, *GPU_BUFFERS, "library-calls")
FUSIONS: tuple[str, ...] = (*STRUCTURED, *FLATTEN)
STRUCTURED_BLOCKS: tuple[str, ...] = TILE_BUFFERS
BLOCKS: tuple[str, ...] = TILE_LOWERING


def pipeline(kernel: Kernel[object]) -> tuple[PassCall, ...]:
    """The passes of a kernel."""
    return pass_calls(BLOCKS if kernel.form == "buffers" else FUSIONS)


def structured(kernel: Kernel[object]) -> tuple[PassCall, ...]:
    """The first of its passes, after which loops are still loops: IR on buffers."""
    return pass_calls(STRUCTURED_BLOCKS if kernel.form == "buffers" else STRUCTURED)
