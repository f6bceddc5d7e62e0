"""Elementary functions as branch-free programs of f32 and i32 ops.

In: values of a backend.  Out: `expand` runs the program of a row of `table.FUNCTIONS` on them.  Errors stay within the
row's `max_ulp` over all of f32 (see `bounds.py`), with subnormals, signed zeros, infinities and NaN as exact arithmetic
has them.
"""

from __future__ import annotations

from typing import Any

from warpsmith.numerics.expr import Backend, Float, Precision
from warpsmith.numerics.functions.table import FUNCTIONS

__all__ = ["FUNCTIONS", "expand"]


def expand(name: str, backend: Backend, *operands: Any, precision: Precision = Precision.F32, xla: bool = False) -> Any:
    """The value of function `name` at f32 values of `backend`, as a value of `backend`; by XLA's program if `xla`."""
    row = FUNCTIONS[name]
    program = row.xla if xla else row.program
    assert program is not None
    return program(*(Float(backend, operand) for operand in operands), precision).raw
