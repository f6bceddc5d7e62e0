"""The kernel language's element types: names as its authors write them, and what each is in the IR.

Integers are signless in the IR, so signedness stays with the name.  `index` is the type of scope ids, loop variables
and coordinates; it mixes with integers of any width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.dtypes import FloatFormat, from_numpy
from warpsmith.errors import InvalidTileProgram, did_you_mean
from warpsmith.ir.core import types as ty

__all__ = ["BY_NAME", "TileType", "common", "of_numpy", "tile_type"]


_SMALLER_THAN_A_BYTE = frozenset(("float4_e2m1fn", "float4_e2m1", "fp4", "int4", "uint4"))


@dataclass(frozen=True, slots=True)
class TileType:
    """One element type.  `kind` is "float", "int", "uint", "bool" or "index"; `bits` what it takes in memory."""

    name: str
    kind: str
    bits: int
    ir: ty.Type
    numpy: np.dtype[Any]

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        """Whether it is a floating point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it counts: integers of either sign, and index."""
        return self.kind in ("int", "uint", "index")

    @property
    def is_signed(self) -> bool:
        """Whether it is a signed integer, or an index."""
        return self.kind in ("int", "index")

    @property
    def _format(self) -> FloatFormat:
        return from_numpy(self.numpy).format

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest finite value."""
        if not self.is_float:
            unsigned = self.kind in ("uint", "bool")
            most = (1 << self.bits - (not unsigned)) - 1
            return (0 if unsigned else -most - 1), most
        return -self._format.most, self._format.most

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next float."""
        return self._format.epsilon

    @property
    def smallest_normal(self) -> float:
        """The least positive float that isn't subnormal."""
        return self._format.least_normal

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return self.bits // 8


def _row(name: str, kind: str, bits: int, ir: ty.Type, numpy: str | type[Any]) -> TileType:
    return TileType(name, kind, bits, ir, np.dtype(numpy))


_ROWS = (
    _row("float64", "float", 64, ty.F64, np.float64),
    _row("float32", "float", 32, ty.F32, np.float32),
    _row("float16", "float", 16, ty.F16, np.float16),
    _row("bfloat16", "float", 16, ty.BF16, ml_dtypes.bfloat16),
    _row("float8_e4m3fn", "float", 8, ty.float_type("f8E4M3FN"), ml_dtypes.float8_e4m3fn),
    _row("float8_e5m2", "float", 8, ty.float_type("f8E5M2"), ml_dtypes.float8_e5m2),
    *(_row(f"int{n}", "int", n, ty.integer(n), f"int{n}") for n in (8, 16, 32, 64)),
    *(_row(f"uint{n}", "uint", n, ty.integer(n), f"uint{n}") for n in (8, 16, 32, 64)),
    _row("bool", "bool", 8, ty.I1, np.bool_),
)

INDEX = _row("index", "index", 64, ty.INDEX, np.int64)
BY_NAME: dict[str, TileType] = {row.name: row for row in _ROWS}
_BY_NUMPY = {row.numpy: row for row in _ROWS}
FLOAT32, INT32, BOOL = BY_NAME["float32"], BY_NAME["int32"], BY_NAME["bool"]


def tile_type(name: str) -> TileType:
    """The element type called `name` ("float32"...).  InvalidTileProgram, with the nearest name, for another."""
    found = BY_NAME.get(name) or (INDEX if name == "index" else None)
    if name in _SMALLER_THAN_A_BYTE:
        raise InvalidTileProgram(
            f"elements of {name} take 4 bits; here elements take whole bytes",
            help="keep two in an int8 element, and take them apart by shifts",
        )
    if found is None:
        raise InvalidTileProgram(
            f"no element type is called '{name}'", help=did_you_mean(name, BY_NAME) or f"known: {', '.join(BY_NAME)}"
        )
    return found


def of_numpy(dtype: np.dtype[Any]) -> TileType:
    """The element type whose arrays have this dtype."""
    found = _BY_NUMPY.get(np.dtype(dtype))
    if found is None:
        raise InvalidTileProgram(f"no element type of the kernel language has numpy's dtype {dtype}")
    return found


_RANK = {"bool": 0, "index": 1, "int": 2, "uint": 2, "float": 3}


def common(a: TileType, b: TileType) -> TileType:
    """The type in which an operation on both is done: floats over integers, integers over index, wide over narrow.

    Of two 16-bit floats that differ it is float32; of integers of one width and different sign, the unsigned one.
    """
    if a is b:
        return a
    if _RANK[a.kind] != _RANK[b.kind]:
        return a if _RANK[a.kind] > _RANK[b.kind] else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if a.is_float:
        return FLOAT32
    return a if a.kind == "uint" else b
