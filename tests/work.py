"""How much work a piece of Python does, counted and not timed: the same on every machine, loaded or not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["calls_of"]


def calls_of(function: Callable[[], object]) -> int:
    """The Python and C function calls that `function` makes."""
    count = 0

    def count_call(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
