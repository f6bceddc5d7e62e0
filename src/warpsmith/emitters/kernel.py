"""What emission gives: the module, the launch, and the facts that a report prints.

In: an analysis and what an emitter decided.  Out: `EmittedKernel`.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpsmith.emitters.launch import Dim3
from warpsmith.fusion.analysis import FusionAnalysis, Refusal
from warpsmith.hlo.shapes import Shape
from warpsmith.ir.core import Operation

__all__ = ["EmittedKernel", "KernelArgument"]


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One buffer of the kernel's ABI: inputs in operand order, then the output leaves."""

    name: str
    shape: Shape
    is_output: bool


@dataclass(frozen=True, eq=False)
class EmittedKernel:
    """A kernel before any pass.

    `module` is a builtin.module whose entry has `xla.entry`.  `emitter` is what was used, `analysis.emitter` what the
    rules prefer; `refused` says why for each emitter that was passed over.  `maps` is (name, text) of the maps from
    threads to elements.  On the CPU the grid is the number of work groups, the block one thread, `chunk` the elements
    or rows that a work group takes.  `aliases`: (output, input) pairs that are one buffer: the launch passes the
    output's address for both, with the input's contents there.
    """

    name: str
    module: Operation
    analysis: FusionAnalysis
    emitter: str
    variant: str
    grid: Dim3
    block: Dim3
    unroll: int
    index_bits: int
    args: tuple[KernelArgument, ...]
    maps: tuple[tuple[str, str], ...]
    refused: tuple[Refusal, ...] = ()
    shared_bytes: int = 0
    aliases: tuple[tuple[int, int], ...] = ()
    chunk: int = 0

    @property
    def workgroups(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]
