"""The CPU target: an emitted module in; lowered IR and LLVM IR for this computer out.

`lower` runs the passes of `passes/pipeline.py` with the register width of the host; machine code is `llvm_jit`.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.ir.core import Operation
from warpsmith.passes.manager import PassCall, PassTiming, run_pipeline
from warpsmith.passes.pipeline import CPU_LOWERING, CPU_PIPELINE
from warpsmith.targets.llvm_jit import host_target
from warpsmith.targets.llvm_text import llvm_text

__all__ = ["PASSES", "STREAMING_BYTES", "llvm_ir", "lower"]

PASSES: tuple[str, ...] = CPU_PIPELINE + CPU_LOWERING

STREAMING_BYTES = 4 << 20
"""Outputs of at least this many bytes in all are written past the caches; smaller ones are likely read again soon."""

Hook = Callable[[int, str, Operation], None]


def lower(module: Operation, on_after: Hook | None = None, *, output_bytes: int = 0) -> list[PassTiming]:
    """Rewrite an emitted module in place to the llvm dialect; `on_after(index, pass, module)` sees each step.

    `output_bytes` is the size of all outputs: large ones are streamed, and then must be aligned to 64 bytes.
    """
    vectorize = {"vector_bits": host_target()[3], "nontemporal": output_bytes >= STREAMING_BYTES}
    options = {"vectorize-cpu": vectorize, "expand-math": {"fma": True}}
    return run_pipeline(module, [PassCall(name, options.get(name, {})) for name in PASSES], on_after=on_after)


def llvm_ir(module: Operation) -> str:
    """LLVM IR of a lowered module."""
    return llvm_text(module, triple=host_target()[0])
