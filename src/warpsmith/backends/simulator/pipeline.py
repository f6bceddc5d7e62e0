"""The passes before the simulator: none of its own, but those of the target whose code it runs.

In: a kernel, and the stage that is run.  Out: passes.
"""

from __future__ import annotations

from warpsmith.backends.nvptx.pipeline import pipeline as whole
from warpsmith.backends.nvptx.pipeline import structured
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall

__all__ = ["STAGES", "pipeline"]

STAGES = ("buffers", "ptx")
"""IR just before its control flow is flattened, and the text that is handed out."""


def pipeline(kernel: Kernel[object], stage: str) -> tuple[PassCall, ...]:
    """The passes of a kernel up to a stage."""
    return whole(kernel) if stage == "ptx" else structured(kernel)
