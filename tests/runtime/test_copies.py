"""Copies hold every byte, whichever way their size makes them go."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.runtime.copies import copied

MIB = 1 << 20


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1, MIB + 4095, 3 * MIB + 127, 16 * MIB - 1, 16 * MIB + 65])
@pytest.mark.parametrize("start", [0, 3], ids=["aligned", "anywhere"])
def test_every_byte_arrives(size: int, start: int) -> None:
    """Wrong: a stretch that no core takes, or the rest behind the last whole one."""
    whole = np.random.default_rng(size).integers(0, 256, size + start, dtype=np.uint8)
    before = whole.copy()
    found = copied(whole[start:])
    np.testing.assert_array_equal(found, before[start:])
    assert not np.shares_memory(found, whole)
    np.testing.assert_array_equal(whole, before)


@pytest.mark.parametrize("side", [64, 1024, 2100])
def test_an_array_in_another_order_keeps_its_elements(side: int) -> None:
    array = np.arange(side * side, dtype=np.float32).reshape(side, side).T
    found = copied(array)
    np.testing.assert_array_equal(found, array)
    assert found.flags.c_contiguous
