"""What a watch knows of a buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.simt.in_flight import Flight
from warpsmith.simt.shadow import Shadow

__all__ = ["Tracked"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(eq=False, slots=True)
class Tracked:
    """What is known of a buffer.  `data` are its bytes; of shared and local memory `copy` bytes are each block's or
    thread's.  `needed` bytes of it are the caller's, the rest is padding.  Of each copy, or of all, the first `end`
    bytes (0: all) are the buffer's; the rest is what an aligned access may reach on hardware.

    `fresh`: nothing was in it before the launch (`packed` elements, narrower than a byte, are read all the same).
    `read_only`: an input.  `item` is an element's size, 0 if unknown.  `arriving` and `leaving` are the copies in
    flight that write it and read it.
    """

    name: str
    space: str
    data: Array
    copy: int = 0
    needed: int = 0
    fresh: bool = False
    read_only: bool = False
    item: int = 0
    packed: bool = False
    end: int = 0
    shadow: Shadow | None = None
    read: Array | None = None
    written: Array | None = None
    arriving: Flight | None = None
    leaving: Flight | None = None
