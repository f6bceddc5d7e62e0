"""The CPU target: an emitted module in; lowered IR and LLVM IR for this computer out.

`lower` runs the passes of `passes/pipeline.py` with the register width of the host; machine code is `llvm_jit`.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.backends.cpu.jit import converts_f16, fuses_multiply_add, host_target
from warpsmith.backends.llvm.text import llvm_text
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes.manager import PassCall, PassTiming, run_pipeline
from warpsmith.passes.pipeline import CPU_LOWERING, CPU_PIPELINE, TILE_CPU_LOWERING
from warpsmith.passes.vectorize_cpu import LEAST_STREAMED

__all__ = ["PASSES", "STREAMING_BYTES", "llvm_ir", "lower", "lower_blocks", "output_alignment"]

PASSES: tuple[str, ...] = CPU_PIPELINE + CPU_LOWERING

STREAMING_BYTES = 24 << 20
"""A kernel whose inputs and outputs are at least this many bytes in all writes past the caches.

Measured with 32 MiB of last-level cache (f32 and bf16 addition, GELU): below 12 MiB plain stores take 0.65 of the time,
from 16 to 32 MiB both take the same, above it plain stores take 1.2 to 1.4 times as long.
"""

LINE_BYTES = 64

Hook = Callable[[int, str, Operation], None]


def lower(module: Operation, on_after: Hook | None = None, *, bytes_moved: int = 0) -> list[PassTiming]:
    """Rewrite an emitted module in place to the llvm dialect; `on_after(index, pass, module)` sees each step.

    `bytes_moved` is the size of all inputs and outputs: of large kernels the outputs are streamed, and then must be
    aligned to 64 bytes.
    """
    vectorize = {"vector_bits": host_target()[3], "nontemporal": bytes_moved >= STREAMING_BYTES}
    options = {"vectorize-cpu": vectorize, **_host_options()}
    return run_pipeline(module, [PassCall(name, options.get(name, {})) for name in PASSES], on_after=on_after)


def lower_blocks(module: Operation, on_after: Hook | None = None) -> list[PassTiming]:
    """Rewrite a dispatched tile program in place to the llvm dialect: blocks of threads become loops.

    LoweringError, with the place, for what threads that run one after the other can't do.
    """
    options = _host_options()
    calls = [PassCall(name, options.get(name, {})) for name in TILE_CPU_LOWERING]
    return run_pipeline(module, calls, on_after=on_after)


def _host_options() -> dict[str, dict[str, bool]]:
    """What this computer has instructions for."""
    return {"expand-math": {"fma": fuses_multiply_add()}, "expand-small-floats": {"f16": not converts_f16()}}


def output_alignment(shape_bytes: int, element_bytes: int, *, streams: bool) -> int:
    """What the code assumes of an output of that many bytes: whole lines where a kernel that streams may stream it."""
    return LINE_BYTES if shape_bytes >= LEAST_STREAMED and streams else element_bytes


def llvm_ir(module: Operation) -> str:
    """LLVM IR of a lowered module."""
    return llvm_text(module, triple=host_target()[0])
