"""Element types: the facts of every float format, held against ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.dtypes import BY_IR, BY_NAME, TF32, by_name
from warpsmith.errors import InternalError

FLOATS = [dtype for dtype in BY_NAME.values() if dtype.is_float]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_limits_are_those_of_ml_dtypes(dtype: Any) -> None:
    """If this failed, ranges, ulp bounds and generated inputs would be those of another format."""
    info: Any = ml_dtypes.finfo(dtype.numpy)
    form = dtype.format
    assert (form.most, form.least_normal, form.least) == (info.max, info.tiny, info.smallest_subnormal)
    assert (form.bits, form.mantissa, form.exponent) == (info.bits, info.nmant, info.iexp or form.exponent)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_codes_are_those_of_ml_dtypes(dtype: Any) -> None:
    """If this failed, a conversion by bits would give another number for an overflow, or no NaN for a NaN."""
    form = dtype.format
    word = f"u{dtype.numpy.itemsize}"
    largest, overflow, nan = np.array([form.largest, form.overflow, form.nan], word).view(dtype.numpy)
    assert float(largest) == form.most
    assert np.isnan(nan) or dtype.name == "f4e2m1fn"
    assert bool(np.isinf(overflow)) == form.has_infinity
    if not form.unsigned:
        minus_zero = np.array([form.sign], word).view(dtype.numpy)[0]
        assert bool(np.isnan(minus_zero)) != form.signed_zero


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_digits_tell_numbers_apart(dtype: Any) -> None:
    """If this failed, a printed constant could be read back as its neighbour."""
    rng = np.random.default_rng(7)
    # From 1 on: ml_dtypes itself rounds what is a little above 2^-127 up to 2^-126.
    codes = rng.integers(1, dtype.format.largest, 2000, dtype=np.uint64).astype(f"u{dtype.numpy.itemsize}")
    values = codes.view(dtype.numpy).astype(np.float64)
    texts = [f"{value:.{dtype.format.digits}g}" for value in values.tolist()]
    assert np.array_equal(np.array(texts, np.float64).astype(dtype.numpy).view(codes.dtype), codes)


def test_tf32_is_f32_with_the_mantissa_of_f16() -> None:
    """If this failed, the simulator would round a tensor core's operands at the wrong bit."""
    assert (TF32.exponent, TF32.mantissa) == (by_name("f32").exponent, by_name("f16").mantissa)
    assert TF32.least_exponent == -126


def test_only_floats_have_a_format() -> None:
    """If this failed, an integer type could be taken for a float of no bits."""
    with pytest.raises(InternalError, match="s32"):
        _ = by_name("s32").format
    assert set(BY_IR.values()) == set(FLOATS)
