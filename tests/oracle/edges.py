"""What each op gives at the edges of floating point: op x edge value -> the result that exact arithmetic has.

Data.  It tests the interpreter and the programs of `numerics/functions`, and makes a page of the documentation;
`edge_cases.py` has values of each type's own, which the CPU's code and PTX are held to as well.  Each row holds for
every IEEE-like type (f16, bf16, f32, f64): values are written by name, `max` the largest finite, `min` the least
normal, `sub` the least subnormal value of the type.  A result `nan` is any NaN; a zero has the sign written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpsmith.dtypes import DType

_ML_DTYPES: Any = ml_dtypes  # its stubs know only some of the types

__all__ = ["EDGES", "EdgeRow", "cases", "value"]


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """One fact: `opcode` of `operands` is `result`, all by name."""

    opcode: str
    operands: tuple[str, ...]
    result: str


# opcode: "operand=result ..." for one operand, "lhs,rhs=result ..." for two.
_UNARY = {
    "abs": "-0=0 0=0 -inf=inf inf=inf nan=nan -max=max -sub=sub",
    "negate": "0=-0 -0=0 inf=-inf nan=nan max=-max sub=-sub",
    "sign": "0=0 -0=-0 inf=1 -inf=-1 nan=nan sub=1 -sub=-1 max=1",
    "floor": "-0=-0 0=0 -0.5=-1 0.5=0 inf=inf -inf=-inf nan=nan sub=0 -sub=-1 max=max",
    "ceil": "-0=-0 0=0 -0.5=-0 0.5=1 inf=inf -inf=-inf nan=nan sub=1 -sub=-0 max=max",
    "round-nearest-even": "-0=-0 0.5=0 -0.5=-0 1.5=2 2.5=2 -2.5=-2 inf=inf nan=nan sub=0 -sub=-0 max=max",
    "round-nearest-afz": "-0=-0 0.5=1 -0.5=-1 1.5=2 2.5=3 -2.5=-3 inf=inf nan=nan sub=0 -sub=-0 max=max",
    "sqrt": "0=0 -0=-0 1=1 4=2 inf=inf -inf=nan -1=nan -sub=nan nan=nan",
    "rsqrt": "0=inf -0=-inf 1=1 4=0.5 inf=0 -inf=nan -1=nan -sub=nan nan=nan",
    "cbrt": "0=0 -0=-0 1=1 -1=-1 8=2 -8=-2 inf=inf -inf=-inf nan=nan",
    "exponential": "0=1 -0=1 inf=inf -inf=0 nan=nan max=inf -max=0 sub=1 -sub=1",
    "exponential-minus-one": "0=0 -0=-0 inf=inf -inf=-1 nan=nan max=inf -max=-1 sub=sub -sub=-sub",
    "log": "0=-inf -0=-inf 1=0 inf=inf -inf=nan -1=nan -sub=nan -max=nan nan=nan",
    "log-plus-one": "0=0 -0=-0 -1=-inf -2=nan inf=inf -inf=nan -max=nan nan=nan sub=sub -sub=-sub",
    "logistic": "0=0.5 -0=0.5 inf=1 -inf=0 nan=nan max=1 -max=0 sub=0.5",
    "tanh": "0=0 -0=-0 inf=1 -inf=-1 nan=nan max=1 -max=-1 sub=sub -sub=-sub",
    "sinh": "0=0 -0=-0 inf=inf -inf=-inf nan=nan max=inf -max=-inf sub=sub -sub=-sub",
    "cosh": "0=1 -0=1 inf=inf -inf=inf nan=nan max=inf -max=inf sub=1",
    "asinh": "0=0 -0=-0 inf=inf -inf=-inf nan=nan sub=sub -sub=-sub",
    "acosh": "1=0 inf=inf 0=nan -0=nan 0.5=nan -1=nan -inf=nan -max=nan nan=nan",
    "atanh": "0=0 -0=-0 1=inf -1=-inf 2=nan -2=nan inf=nan -inf=nan max=nan nan=nan sub=sub -sub=-sub",
    "sine": "0=0 -0=-0 inf=nan -inf=nan nan=nan sub=sub -sub=-sub",
    "cosine": "0=1 -0=1 inf=nan -inf=nan nan=nan sub=1",
    "tan": "0=0 -0=-0 inf=nan -inf=nan nan=nan sub=sub -sub=-sub",
    "asin": "0=0 -0=-0 2=nan -2=nan inf=nan -inf=nan max=nan nan=nan sub=sub -sub=-sub",
    "acos": "1=0 2=nan -2=nan inf=nan -inf=nan max=nan nan=nan",
    "erf": "0=0 -0=-0 inf=1 -inf=-1 nan=nan max=1 -max=-1 sub=sub -sub=-sub",
}
_BINARY = {
    "add": "0,-0=0 -0,-0=-0 inf,-inf=nan inf,inf=inf inf,max=inf max,max=inf max,-max=0 nan,1=nan 1,nan=nan sub,-sub=0",
    "subtract": "0,0=0 -0,0=-0 0,-0=0 inf,inf=nan inf,-inf=inf -max,max=-inf nan,1=nan min,sub=min-sub",
    "multiply": "0,inf=nan -0,inf=nan inf,-inf=-inf max,2=inf 0,-1=-0 -0,-1=0 sub,1=sub sub,0.5=0 nan,0=nan sub,sub=0",
    "divide": (
        "0,0=nan inf,inf=nan 1,0=inf 1,-0=-inf -1,0=-inf 1,inf=0 -1,inf=-0 inf,0=inf sub,2=0 max,0.5=inf nan,1=nan "
        "1,nan=nan"
    ),
    "remainder": (
        "1,0=nan inf,1=nan 1,inf=1 -1,inf=-1 -0,1=-0 -2,2=-0 5,3=2 -5,3=-2 5,-3=2 nan,1=nan 1,nan=nan sub,max=sub"
    ),
    "maximum": "nan,1=nan 1,nan=nan nan,inf=nan 0,-0=0 -0,0=0 -0,-0=-0 inf,max=inf -inf,-max=-max",
    "minimum": "nan,1=nan 1,nan=nan nan,-inf=nan 0,-0=-0 -0,0=-0 0,0=0 -inf,-max=-inf inf,max=max",
    "power": (
        "0,0=1 nan,0=1 nan,-0=1 1,nan=1 1,inf=1 -1,inf=1 -1,-inf=1 0,1=0 -0,1=-0 -0,2=0 0,-1=inf -0,-1=-inf -0,-2=inf "
        "-0,0.5=0 inf,1=inf inf,-1=0 -inf,3=-inf -inf,2=inf -inf,-3=-0 -inf,-2=0 -inf,0.5=inf 2,inf=inf 2,-inf=0 "
        "0.5,inf=0 0.5,-inf=inf -2,0.5=nan -2,2=4 -2,3=-8 nan,1=nan 2,nan=nan max,max=inf 0,inf=0 0,-inf=inf -2,max=inf"
    ),
    "atan2": (
        "0,1=0 -0,1=-0 0,0=0 -0,0=-0 0,inf=0 -0,inf=-0 1,inf=0 -1,inf=-0 nan,1=nan 1,nan=nan nan,inf=nan inf,nan=nan "
        "0,nan=nan nan,0=nan"
    ),
}


def _rows() -> list[EdgeRow]:
    rows: list[EdgeRow] = []
    for opcode, text in {**_UNARY, **_BINARY}.items():
        for item in text.split():
            operands, _, result = item.partition("=")
            rows.append(EdgeRow(opcode, tuple(operands.split(",")), result))
    return rows


EDGES: tuple[EdgeRow, ...] = tuple(_rows())


def value(name: str, dtype: DType) -> NDArray[Any]:
    """The scalar of `dtype` that a name in the table means."""
    info = _ML_DTYPES.finfo(dtype.numpy)
    named = {"max": info.max, "min": info.tiny, "sub": info.smallest_subnormal}
    if name == "min-sub":
        return np.array(float(info.tiny) - float(info.smallest_subnormal), np.float64).astype(dtype.numpy)
    sign, bare = (-1.0, name[1:]) if name.startswith("-") else (1.0, name)
    magnitude = float(named[bare]) if bare in named else float(bare)
    return np.array(sign * magnitude, np.float64).astype(dtype.numpy)


def cases(opcode: str, dtype: DType) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """All rows of an op as arrays: the operands, one array each, and the results."""
    rows = [row for row in EDGES if row.opcode == opcode]
    operands = [np.stack([value(row.operands[i], dtype) for row in rows]) for i in range(len(rows[0].operands))]
    return operands, np.stack([value(row.result, dtype) for row in rows])
