"""The passes for AMD's GPUs.  In: a kernel.  Out: the passes of every GPU; each asks what this one can do."""

from __future__ import annotations

from warpsmith.backends.base import pass_calls
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall
from warpsmith.passes.pipeline import GPU_LOWERING, GPU_PIPELINE

__all__ = ["FUSIONS", "pipeline"]

FUSIONS: tuple[str, ...] = (*GPU_PIPELINE, *GPU_LOWERING)


def pipeline(kernel: Kernel[object]) -> tuple[PassCall, ...]:
    """The passes of a kernel."""
    return pass_calls(FUSIONS)
