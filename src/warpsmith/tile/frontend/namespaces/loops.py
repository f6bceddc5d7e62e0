"""What a `for` may run over: `range`, `T.serial`, `T.unroll`, `T.vectorized`, `T.grid`, `T.thread_binding`."""

from __future__ import annotations

from typing import Any

from warpsmith.errors import TileSyntaxError
from warpsmith.tile.frontend.values import Loop, Region, Scalar, Variable

__all__ = ["grid", "serial", "thread_binding", "unroll", "vectorized"]

Bound = Any


def _loop(kind: str, values: tuple[Bound, ...]) -> Loop:
    if not 1 <= len(values) <= 3:
        raise TileSyntaxError(f"a loop has one to three bounds, not {len(values)}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, Scalar, Variable, Region)):
            raise TileSyntaxError(f"a loop bound can't be {value!r}", help="an integer, or an integer expression")
    start, stop = (0, values[0]) if len(values) == 1 else values[:2]
    step = values[2] if len(values) == 3 else 1
    if not isinstance(step, int) or step < 1:
        raise TileSyntaxError(
            "the step of a loop is a positive constant", help="to count down, use n - 1 - i inside range(n)"
        )
    return Loop(kind, ((start, stop, step),))


def serial(*bounds: Bound, annotations: object = None) -> Loop:
    """One turn after the other."""
    return _loop("serial", bounds)


def unroll(*bounds: Bound) -> Loop:
    """One turn after the other, written out."""
    return _loop("unroll", bounds)


def vectorized(*bounds: Bound) -> Loop:
    """Turns that may be done together; here one after the other, written out."""
    return _loop("vectorized", bounds)


def grid(*extents: Bound) -> Loop:
    """A nest of loops from 0, the last one innermost."""
    return Loop("grid", tuple(_loop("serial", (extent,)).bounds[0] for extent in extents))


def thread_binding(*bounds: Bound, thread: str = "") -> Loop:
    """A loop variable that is a hardware index; here the ids say that."""
    raise TileSyntaxError(
        "T.thread_binding isn't taken here", help="declare the id: tx = T.thread_id([n]), bx = T.cta_id([n])"
    )
