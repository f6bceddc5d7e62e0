"""The GPU target: an emitted module in; lowered IR, LLVM IR and PTX out.

`lower` runs the passes of `passes/pipeline.py`; `llvm_ir` prints; PTX and cubin are `nvptx_codegen` and `ptxas`.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.backends.llvm.text import llvm_text
from warpsmith.backends.nvptx.codegen import DATA_LAYOUT, TRIPLE
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes.manager import PassTiming, run_pipeline
from warpsmith.passes.pipeline import GPU_LOWERING, GPU_PIPELINE

__all__ = ["PASSES", "llvm_ir", "lower"]

PASSES: tuple[str, ...] = GPU_PIPELINE + GPU_LOWERING

Hook = Callable[[int, str, Operation], None]


def lower(module: Operation, on_after: Hook | None = None) -> list[PassTiming]:
    """Rewrite an emitted module in place to the llvm dialect; `on_after(index, pass, module)` sees each step."""
    return run_pipeline(module, PASSES, on_after=on_after)


def llvm_ir(module: Operation) -> str:
    """LLVM IR of a lowered module, with the HLO lines that PTX shows as `.loc`."""
    return llvm_text(module, triple=TRIPLE, layout=DATA_LAYOUT, lines=True)
