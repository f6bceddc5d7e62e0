"""How a kernel is launched, and the attributes of its entry that say so: any dump alone can be run.

In: a grid, a block, what a thread takes.  Out: `Launch`, written to an entry function and read back from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.arrays import Dim3
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation

__all__ = ["Launch"]

_GRID, _BLOCK, _WORKGROUPS = "warpsmith.grid", "warpsmith.block", "warpsmith.workgroups"
_UNROLL, _INDEX_BITS, _DYNAMIC = "warpsmith.unroll", "warpsmith.index_bits", "warpsmith.dynamic_shared"


@dataclass(frozen=True, slots=True)
class Launch:
    """A grid of blocks of threads; each thread takes `unroll` neighbouring elements.

    On the CPU the grid is the number of work groups, the block one thread, and `chunk` the elements or rows that a work
    group takes.  `shared_bytes` are those of a block; of them `dynamic_shared` are given at launch.  `chunk` and
    `shared_bytes` follow from the code, so that no attribute says them.
    """

    grid: Dim3
    block: Dim3
    unroll: int = 1
    chunk: int = 0
    index_bits: int = 64
    shared_bytes: int = 0
    dynamic_shared: int = 0

    @property
    def workgroups(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def write(self, entry: Operation, *, on_gpu: bool) -> None:
        """Write it to an entry function; `on_gpu` as a grid of blocks, else as a number of work groups."""
        found: dict[str, at.Attribute] = {_INDEX_BITS: at.integer_attr(self.index_bits, at.I64)}
        if self.unroll:
            found[_UNROLL] = at.integer_attr(self.unroll, at.I64)
        if self.dynamic_shared:
            found[_DYNAMIC] = at.integer_attr(self.dynamic_shared, at.I64)
        if on_gpu:
            found |= {_GRID: at.dense_array(self.grid), _BLOCK: at.dense_array(self.block)}
        else:
            found[_WORKGROUPS] = at.integer_attr(self.grid[0], at.I64)
        entry.attributes.update(found)

    @staticmethod
    def of(entry: Operation) -> Launch | None:
        """What an entry function says; None where it has neither a grid and a block nor work groups."""
        known = entry.attributes
        workgroups, grid, block = known.get(_WORKGROUPS), known.get(_GRID), known.get(_BLOCK)
        if isinstance(workgroups, at.IntegerAttr):
            sizes: tuple[Dim3, Dim3] = (workgroups.value, 1, 1), (1, 1, 1)
        elif isinstance(grid, at.DenseArrayAttr) and isinstance(block, at.DenseArrayAttr):
            sizes = _three(grid.values), _three(block.values)
        else:
            return None
        return Launch(
            *sizes,
            unroll=_number(entry, _UNROLL, 0),
            index_bits=_number(entry, _INDEX_BITS, 64),
            dynamic_shared=_number(entry, _DYNAMIC, 0),
        )


def _three(sizes: Sequence[int]) -> Dim3:
    x, y, z = [*sizes, 1, 1, 1][:3]
    return x, y, z


def _number(entry: Operation, name: str, default: int) -> int:
    found = entry.attributes.get(name)
    return found.value if isinstance(found, at.IntegerAttr) else default
