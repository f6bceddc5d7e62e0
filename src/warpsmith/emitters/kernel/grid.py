"""What the GPU emitters share: thread and block ids, and maps over them.

In: functions and a launch.  Out: id ops; maps.
"""

from __future__ import annotations

from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.indexing import IndexingMap
from warpsmith.indexing.rewire import drop_variables, remove_unused_symbols
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["grid_ids", "over_ids", "through"]

_DIMENSIONS = ("x", "y", "z")
_ALWAYS_SHOWN = (0, 3)  # th_x and bl_x


def grid_ids(functions: KernelFunctions, launch: Launch) -> list[Value]:
    """The thread and block ids that have more than one value, x ones in any case."""
    ids: list[Value] = []
    for i, size in enumerate((*launch.block, *launch.grid)):
        if size > 1 or i in _ALWAYS_SHOWN:
            make = gpu.thread_id if i < 3 else gpu.block_id
            ids.append(make(functions.b, _DIMENSIONS[i % 3], size))
    return ids


def over_ids(map: IndexingMap, launch: Launch) -> IndexingMap:
    """A map over all six ids as a map over those that `grid_ids` makes."""
    gone = [size == 1 and i not in _ALWAYS_SHOWN for i, size in enumerate((*launch.block, *launch.grid))]
    return drop_variables(map, [*gone, *[False] * map.num_symbols])


def through(map: IndexingMap, place: IndexingMap | None, launch: Launch) -> IndexingMap:
    """A map from ids to an index, and on through `place` (None: as it is), over the ids that are shown."""
    whole = map if place is None else map.then(place).simplify()
    return over_ids(remove_unused_symbols(whole), launch)
