"""Which bytes of an access matter, where not all of them do.

On hardware an aligned load that begins in a buffer may go on past the buffer's end, and LLVM relies on it: it loads
vectors with bytes that nobody asked for.  Such bytes are no read.  A compare-and-exchange of one or two bytes is one of
the word around them, which may go on past the end, too: it puts back what it found there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.tracked import Tracked

__all__ = ["Reach"]


@dataclass(frozen=True, slots=True)
class Reach:
    """The runs of bytes that count, as (first byte, number of bytes) of each access; `spares`: those past a buffer's
    end don't, either.
    """

    parts: tuple[tuple[int, int], ...]
    spares: bool = False

    def inside(self, buffer: Tracked, start: Array) -> Iterator[tuple[Array, int, int]]:
        """Accesses (by number) with the runs of their bytes that count and lie in the buffer."""
        for first, count in self.parts:
            room = self._room(buffer, start + first)
            for size in np.unique(np.clip(room, 0, count)).tolist():
                if size:
                    yield np.flatnonzero(np.clip(room, 0, count) == size), first, size

    def past(self, buffer: Tracked, start: Array) -> Iterator[tuple[Array, int]]:
        """Accesses (by number) of which bytes count that lie past the buffer's end, and the first such byte."""
        for first, count in () if self.spares else self.parts:
            room = self._room(buffer, start + first)
            over = np.flatnonzero(room < count)
            if over.size:
                yield over, first + max(0, int(room[over[0]]))

    @staticmethod
    def _room(buffer: Tracked, start: Array) -> Array:
        """How many bytes there are from here to the end of the buffer (or of a block's, or thread's, copy of it)."""
        return (buffer.end or buffer.data.size) - (start % buffer.copy if buffer.copy else start)
