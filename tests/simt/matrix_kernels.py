"""Kernels of one or several warps with ldmatrix, stmatrix, mma.sync and cp.async, in IR and in PTX, and running them.

In IR `%t` is the thread, `%lane` its place in its warp, `%tile` shared memory.  In PTX `%t`, `%lane`, `%tile` (an
address) and the arguments' addresses `%in` and `%out`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from warpsmith.arrays import Array
from warpsmith.errors import CheckFailed
from warpsmith.ir.text.parser import parse_module
from warpsmith.simt import watch_kernel
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.core.results import Counters, Finding
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx

__all__ = ["COMMIT", "COPY_IR", "WAIT", "Run", "ir_kernel", "ptx_kernel", "run_ir", "run_ptx_text"]


# A copy of 512 words of shared memory from 1280 of global memory, and what ends one.
COPY_IR = "(memref<512xf32, 3>, index, memref<1280xf32>, index) -> ()"
COMMIT = {"ir": '"nvvm.cp.async.commit.group"() : () -> ()', "ptx": "cp.async.commit_group;"}
WAIT = {"ir": '"nvvm.cp.async.wait.group"() {n = 0 : i32} : () -> ()', "ptx": "cp.async.wait_group 0;"}


@dataclass
class Run:
    """A kernel's output (None where a check ended it), what was found, what it cost."""

    output: Any
    findings: list[Finding] = field(default_factory=list[Finding])
    counters: Counters | None = None

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.findings]


def ir_kernel(
    body: str,
    *,
    threads: int = 32,
    blocks: int = 1,
    element: str = "f16",
    inputs: int = 1024,
    outputs: int = 1024,
    out: str = "",
    shared: int = 1024,
    more: str = "",
) -> str:
    """%in of `inputs` elements, %out of `outputs` of type `out`, %tile of `shared` elements in shared memory."""
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in (0, 1, 2, 4, 8, 16, 32, 64))
    return f"""
memref.global "private" @tile : memref<{shared}x{element}, 3> = uninitialized {{alignment = 128 : i64}}
func.func @main(%in: memref<{inputs}x{element}>, %out: memref<{outputs}x{out or element}>{more}) attributes {{
    xla.entry, warpsmith.grid = array<i64: {blocks}, 1, 1>, warpsmith.block = array<i64: {threads}, 1, 1>}} {{
  {constants}
  %t = gpu.thread_id x {{xla.range = [0 : index, {threads - 1} : index]}}
  %lane = arith.remui %t, %c32 : index
  %tile = memref.get_global @tile : memref<{shared}x{element}, 3>
  {body}
  return
}}
"""


def run_ir(text: str, *inputs: Array) -> Run:
    """The kernel's one output, flat."""
    try:
        (output,), result = watch_kernel(parse_module(text), inputs, 1)
    except CheckFailed as failed:
        return Run(None, [failed.finding] if isinstance(failed.finding, Finding) else [])
    return Run(output, result.findings, result.counters)


def ptx_kernel(body: str, *, shared: int = 2048, registers: str = "") -> str:
    """The same of PTX: %r0-%r39, %f0-%f19, %rd0-%rd19, %p0-%p9 are free; `shared` bytes at %tile."""
    return f"""
.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 .ptr .align 16 in, .param .u64 .ptr .align 16 out)
{{
    .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<20>; .reg .pred %p<10>;
    .reg .b32 %t, %lane, %tile, %own; .reg .b64 %in, %out;
    .shared .align 128 .b8 tile[{shared}];
    {registers}
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    mov.b32 %tile, tile;
    ld.param.b64 %in, [in];
    ld.param.b64 %out, [out];
{body}
    ret;
}}
"""


def run_ptx_text(text: str, source: Array, output: Array, *, threads: int = 32, blocks: int = 1) -> Run:
    """Run it; `output` is changed."""
    checks = Checks(read_only=[0], fresh={1: output.nbytes})
    try:
        stats = run_ptx(text, [source, output], PtxLaunch((blocks,), (threads,)), checks=checks)
    except CheckFailed as failed:
        return Run(None, [failed.finding] if isinstance(failed.finding, Finding) else [])
    return Run(output, stats.findings, stats.counters)
