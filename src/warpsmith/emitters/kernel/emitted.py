"""What emission gives: the module, the launch, and the facts that a report prints.

In: an analysis and what an emitter decided.  Out: `EmittedKernel`.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpsmith.arrays import Dim3
from warpsmith.dtypes import DType
from warpsmith.fusion.analysis import FusionAnalysis, Refusal
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap
from warpsmith.ir.core.ssa import Operation

__all__ = ["EmittedKernel", "KernelArgument", "SharedTile"]


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One buffer of the kernel's ABI: inputs in operand order, then the output leaves.

    `whole_words`: its memory has to reach to the end of its last 32-bit word, since a GPU's atomic steps on narrower
    elements exchange the word around them; what else the word holds keeps its value.
    """

    name: str
    shape: Shape
    is_output: bool
    whole_words: bool = False


@dataclass(frozen=True, slots=True)
class SharedTile:
    """A tile of shared memory of `dims` (row-major, what keeps columns off one bank included), `count` times.

    `write` and `read` are maps from ids to the place that a thread touches before the barrier, and after it.
    """

    dims: tuple[int, ...]
    dtype: DType
    write: IndexingMap
    read: IndexingMap
    count: int = 1


@dataclass(frozen=True, eq=False)
class EmittedKernel:
    """A kernel before any pass.

    `module` is a builtin.module whose entry has `xla.entry`.  `emitter` is what was used, `analysis.emitter` what the
    rules prefer; `refused` says why for each emitter that was passed over.  `maps` is (name, text) of the maps from
    threads to elements.  On the CPU the grid is the number of work groups, the block one thread, `chunk` the elements
    or rows that a work group takes.  `aliases`: (output, input) pairs that are one buffer: the launch passes the
    output's address for both, with the input's contents there.  `tile`: how shared memory is used, if it is.
    `notes` says what else is worth knowing of the way that was taken.
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
    tile: SharedTile | None = None
    notes: tuple[str, ...] = ()

    @property
    def workgroups(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]
