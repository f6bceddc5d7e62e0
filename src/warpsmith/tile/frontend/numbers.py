"""What may stand where a number is wanted: scalars, Python's numbers, variables, single elements of buffers."""

from __future__ import annotations

from typing import Any

from warpsmith.errors import InvalidTileProgram
from warpsmith.tile.frontend import subscripts
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Region, Scalar, Variable

__all__ = ["is_number", "number"]


def number(state: KernelState, value: Any) -> Operand:
    """A value as a scalar or a Python number: an element is loaded, a variable read.  InvalidTileProgram otherwise."""
    if isinstance(value, (Scalar, bool, int, float)):
        return value
    if isinstance(value, Variable):
        return state.read(value)
    if isinstance(value, Region):
        return subscripts.load(state, value)
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:  # a numpy scalar of the author's
        return value.item()
    if isinstance(value, Buffer):
        raise InvalidTileProgram("a buffer where a number is needed", help="Tx.warp.sqrt(dst, src) takes buffers")
    raise InvalidTileProgram(f"a number is needed here, not {type(value).__name__}")


def is_number(value: Any) -> bool:
    """Whether a value can stand where a number is wanted: a scalar, Python's number, one element."""
    if isinstance(value, Region):
        return not any(value.kept)
    return isinstance(value, (Scalar, bool, int, float)) or (hasattr(value, "item") and getattr(value, "ndim", 1) == 0)
