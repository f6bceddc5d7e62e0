"""How far random evaluations lie apart: what estimates of modules and of tile programs are made of."""

from __future__ import annotations

import numpy as np

from warpsmith.numerics.spread import Spread


def test_the_largest_distance_of_each_element_counts() -> None:
    """Wrong: an estimate from the last evaluation, or from the mean."""
    spread = Spread(np.array([1.0, 2.0, np.nan, np.inf]))
    spread.add(np.array([1.5, 2.0, np.nan, np.inf]))
    spread.add(np.array([0.75, 2.0, np.nan, np.inf]), more=np.array([0.0, 0.125, 0.0, 0.0]))
    assert spread.largest.tolist() == [0.5, 0.125, 0.0, 0.0]


def test_what_is_no_number_in_one_evaluation_says_nothing() -> None:
    """Wrong: a NaN that some roundings lead to, compared as if it were sure."""
    spread = Spread(np.array([1.0, np.nan, np.inf]))
    spread.add(np.array([np.nan, 1.0, 3.0]))
    assert spread.largest.tolist() == [np.inf, np.inf, np.inf]


def test_discrete_results_are_the_same_or_open() -> None:
    """Wrong: an index that is off by one counted as close."""
    spread = Spread(np.array([3.0, 4.0]), discrete=True)
    spread.add(np.array([3.0, 5.0]))
    assert spread.largest.tolist() == [0.0, np.inf]
