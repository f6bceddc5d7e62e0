"""Inputs are the same for a seed, differ between parameters, and reach what they should."""

from __future__ import annotations

import numpy as np
import pytest
from work import calls_of

from warpsmith.dtypes import BY_NAME, by_name
from warpsmith.errors import ArgumentMismatch, UsageError
from warpsmith.numerics.bounds import bound, table
from warpsmith.numerics.inputs import Profile, edge_values, indices, random_array
from warpsmith.numerics.modes import DIFFERENCES, Mode, mode

ARRAYS = [row.name for row in BY_NAME.values() if row.is_array_element]
FLOATS = [row.name for row in BY_NAME.values() if row.is_float]


@pytest.mark.parametrize("count", [100, 300_000], ids=["direct", "pooled"])
@pytest.mark.parametrize("name", ARRAYS)
def test_same_seed_same_array(name: str, count: int) -> None:
    """And another seed or another parameter gives another."""
    dtype = by_name(name)
    first = random_array(dtype, (count,), seed=7, parameter=2).tobytes()
    assert random_array(dtype, (count,), seed=7, parameter=2).tobytes() == first
    assert random_array(dtype, (count,), seed=8, parameter=2).tobytes() != first
    assert random_array(dtype, (count,), seed=7, parameter=3).tobytes() != first


@pytest.mark.parametrize("name", ARRAYS)
def test_shape_and_dtype_are_as_asked(name: str) -> None:
    dtype = by_name(name)
    for shape in ((), (0, 3), (2, 3, 5)):
        array = random_array(dtype, shape)
        assert (array.shape, array.dtype) == (shape, dtype.numpy)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_mixture_reaches_edges_subnormals_and_every_magnitude(name: str) -> None:
    """A share of each: an eighth of edge values, half near one."""
    values = random_array(by_name(name), (40_000,), seed=1).astype(np.float64)
    assert np.isnan(values).sum() > 50
    assert np.isposinf(values).sum() > 50
    assert np.isneginf(values).sum() > 50
    assert ((values == 0) & np.signbit(values)).sum() > 50
    finite = np.abs(values[np.isfinite(values) & (values != 0)])
    tiny = float(by_name(name).numpy.type(2.0 ** (2 - (1 << (by_name(name).exponent - 1)))))
    assert (finite < tiny).sum() > 50
    assert 0.4 < ((finite > 1e-2) & (finite < 5)).mean() < 0.85


@pytest.mark.parametrize("name", FLOATS)
def test_finite_and_tame_profiles_hold_no_inf_or_nan(name: str) -> None:
    """A single NaN would make a whole reduction NaN, and its check empty."""
    for profile in (Profile.FINITE, Profile.TAME):
        values = random_array(by_name(name), (5000,), profile=profile).astype(np.float64)
        assert np.isfinite(values).all()
        if profile is Profile.TAME:
            assert np.abs(values).max() <= 64


def test_sum_of_tame_f16_inputs_stays_finite() -> None:
    values = random_array(by_name("f16"), (4096, 16), profile=Profile.TAME)
    assert np.isfinite(values.astype(np.float32).sum(axis=0)).all()


@pytest.mark.parametrize("name", [n for n in ARRAYS if by_name(n).is_integer])
def test_integers_reach_both_ends(name: str) -> None:
    dtype = by_name(name)
    values = random_array(dtype, (3000,)).astype(object)
    edges = edge_values(dtype).astype(object)
    assert min(values) == min(edges)
    assert max(values) == max(edges)
    assert 0 in values


def test_edge_values_are_neighbours_of_where_things_change() -> None:
    edges = edge_values(by_name("f32"))
    for value in (
        0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        2.0**-149,
        2.0**-126,
        3.4028234663852886e38,
        1 + 2.0**-23,
        1 - 2.0**-24,
    ):
        assert (edges == np.float32(value)).any()
    assert np.isnan(edges).any()
    assert np.signbit(edges[edges == 0]).any()


def test_large_arrays_take_no_python_work_an_element() -> None:
    """A benchmark makes millions of elements in every run."""

    def make(count: int) -> int:
        return calls_of(lambda: random_array(by_name("bf16"), (count,)))

    make(1000)
    assert make(1_000_000) < 2 * make(100_000)


@pytest.mark.parametrize("name", ["s8", "u8", "s32", "u64"])
def test_indices_lie_in_and_out_of_range(name: str) -> None:
    found = indices((4000,), by_name(name), 100, seed=1).astype(object)
    inside = sum(0 <= v < 100 for v in found)
    assert 0.75 < inside / 4000 < 0.95
    only = indices((4000,), by_name(name), 100, seed=1, in_range=True).astype(object)
    assert all(0 <= v < 100 for v in only)


def test_unique_and_ordered_indices_are_so() -> None:
    """A scatter that was promised unique indices must get them."""
    found = indices((64, 1), by_name("s32"), 100, unique=True, ordered=True).ravel()
    assert np.unique(found).size == 64
    assert (np.diff(found) > 0).all()
    assert np.unique(indices((100,), by_name("s32"), 100, unique=True, in_range=True)).size == 100


def test_types_without_values_are_refused() -> None:
    with pytest.raises(ArgumentMismatch):
        random_array(by_name("token"), (1,))


def test_bounds_are_zero_for_exact_ops_and_one_for_16_bit_functions() -> None:
    f32, bf16 = by_name("f32"), by_name("bf16")
    assert bound("add", f32) == 0
    assert bound("sqrt", f32) == 0
    assert bound("tanh", bf16) == 1
    assert 1 <= bound("tanh", f32) <= 4
    assert all(0 <= ulp <= 16 for _, row in table() for ulp in row.values())
    assert max(row["f32"] for _, row in table()) <= 4


def test_modes_are_found_by_name_and_differ_by_listed_rows() -> None:
    assert mode("strict") is Mode.STRICT
    with pytest.raises(UsageError, match="strict"):
        mode("strickt")
    assert len({row.name for row in DIFFERENCES}) == len(DIFFERENCES)
