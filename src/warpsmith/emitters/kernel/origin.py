"""What emission says of a kernel beside its code: the facts that a report prints.

In: an analysis and what an emitter decided.  Out: `Fused`, the origin of an `EmittedKernel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from warpsmith.dtypes import DType
from warpsmith.fusion.analysis import FusionAnalysis, Refusal
from warpsmith.indexing import IndexingMap
from warpsmith.kernel import Kernel

__all__ = ["EmittedKernel", "Fused", "SharedTile"]


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


@dataclass(frozen=True, eq=False, slots=True)
class Fused:
    """A kernel's fusion, and the way that was taken.

    `emitter` is what was used, `analysis.emitter` what the rules prefer; `refused` says why for each emitter that was
    passed over.  `maps` is (name, text) of the maps from threads to elements.  `tile`: how shared memory is used, if it
    is.  `notes` says what else is worth knowing.
    """

    analysis: FusionAnalysis
    emitter: str
    variant: str
    maps: tuple[tuple[str, str], ...]
    refused: tuple[Refusal, ...] = ()
    tile: SharedTile | None = None
    notes: tuple[str, ...] = ()


EmittedKernel: TypeAlias = Kernel[Fused]
