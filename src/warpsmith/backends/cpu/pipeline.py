"""The passes for this computer's processor, with what it has instructions for.

In: a kernel.  Out: passes.  Of large kernels the outputs are written past the caches, and then must lie on whole lines.
"""

from __future__ import annotations

from warpsmith.backends.base import pass_calls
from warpsmith.backends.cpu.jit import converts_f16, fuses_multiply_add, host_target
from warpsmith.kernel import Kernel
from warpsmith.passes.manager import PassCall
from warpsmith.passes.pipeline import CPU_LOWERING, CPU_PIPELINE, TILE_CPU_LOWERING
from warpsmith.passes.vectorize_cpu import LEAST_STREAMED

__all__ = ["BLOCKS", "FUSIONS", "STREAMING_BYTES", "output_alignment", "pipeline"]

FUSIONS: tuple[str, ...] = CPU_PIPELINE + CPU_LOWERING
BLOCKS: tuple[str, ...] = TILE_CPU_LOWERING
"""Of a dispatched tile program: blocks of threads become loops."""

STREAMING_BYTES = 24 << 20
"""A kernel whose inputs and outputs are at least this many bytes in all writes past the caches.

Measured with 32 MiB of last-level cache (f32 and bf16 addition, GELU): below 12 MiB plain stores take 0.65 of the time,
from 16 to 32 MiB both take the same, above it plain stores take 1.2 to 1.4 times as long.
"""

LINE_BYTES = 64


def pipeline(kernel: Kernel[object]) -> tuple[PassCall, ...]:
    """The passes of a kernel."""
    small_floats, math = {"f16": not converts_f16()}, {"fma": fuses_multiply_add()}
    if kernel.form == "buffers":
        return pass_calls(BLOCKS, expand_small_floats=small_floats, expand_math=math)
    vectorize = {"vector_bits": host_target()[3], "nontemporal": kernel.bytes_moved >= STREAMING_BYTES}
    return pass_calls(FUSIONS, expand_small_floats=small_floats, expand_math=math, vectorize_cpu=vectorize)


def output_alignment(byte_size: int, element_bytes: int, *, streams: bool) -> int:
    """What the code assumes of an output of that many bytes: whole lines where a kernel that streams may stream it."""
    return LINE_BYTES if byte_size >= LEAST_STREAMED and streams else element_bytes
