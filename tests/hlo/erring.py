"""Kernels that err: the interpreter with its functions pushed off their results by random whole ulps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name
from warpsmith.hlo.evaluator.arithmetic import floats
from warpsmith.hlo.evaluator.arithmetic.formats import round_once
from warpsmith.hlo.evaluator.ops import elementwise
from warpsmith.numerics.functions.table import BY_OPCODE

PUSH = 2
"""By how many ulp the functions of the kernels under test are off."""


def push_ulps(opcode: str, dtype: DType) -> float:
    """The documented error of such kernels."""
    return PUSH if opcode in floats.WIDE_UNARY or opcode in floats.WIDE_BINARY else 0


@contextmanager
def pushed(dtype: str, seed: int) -> Iterator[None]:
    """The interpreter's functions, each result off its right value by up to PUSH numbers of `dtype`.

    Where the contract says that a function is exact, it is.
    """
    rng = np.random.default_rng(seed)
    row = by_name(dtype)

    def push(opcode: str, function: Callable[..., Array]) -> Callable[..., Array]:
        exact_from = BY_OPCODE[opcode].exact_from if row.bits != 32 else np.inf

        def pushed(*arrays: Array) -> Array:
            right = round_once(function(*arrays), row)
            codes = right.view(f"i{right.dtype.itemsize}").astype(np.int64)
            lowest = -(1 << (row.bits - 1))
            places = np.where(codes < 0, lowest - codes, codes) + rng.integers(-PUSH, PUSH, codes.shape, endpoint=True)
            moved = np.where(places < 0, lowest - places, places).astype(f"i{right.dtype.itemsize}").view(right.dtype)
            free = np.isfinite(right) & np.isfinite(moved) & ~(np.abs(arrays[0]) >= exact_from)
            return np.where(free, moved, right).astype(np.float64)

        return pushed

    unary, binary, tables = dict(floats.WIDE_UNARY), dict(floats.WIDE_BINARY), dict(elementwise._tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(floats, "WIDE_UNARY", {name: push(name, function) for name, function in unary.items()})
        patch.setattr(floats, "WIDE_BINARY", {name: push(name, function) for name, function in binary.items()})
        patch.setattr(elementwise, "_tables", {})
        yield
    assert elementwise._tables == tables
