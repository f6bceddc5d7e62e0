"""The reference interpreter on the project's known-trouble cases (cases/*.hlo, cases/cases.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

FOLDER = Path(__file__).parent / "cases"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text())
ZERO_OF_EITHER_SIGN = {"negzero-reduce-max"}
NO_VALUES = {
    "index-64bit": "compile-only: four billion elements",
    "elided-constant": "the parser refuses it (test_hlo_errors)",
}


def _array(described: dict[str, Any]) -> np.ndarray[Any, np.dtype[Any]]:
    name: str = described["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    numbers = [float(each) if isinstance(each, str) else each for each in described["values"]]
    with np.errstate(all="ignore"):
        wide = np.array(numbers, np.float64 if any(isinstance(each, float) for each in numbers) else None)
        return wide.astype(dtype).reshape(described["shape"])


@pytest.mark.parametrize("case", [each for each in CASES if each["id"] not in NO_VALUES], ids=lambda case: case["id"])
def test_case_gives_its_expected_values(case: dict[str, Any]) -> None:
    """Each case names the symptom of the bug that it guards against."""
    module = parse_hlo((FOLDER / f"{case['id']}.hlo").read_text(), f"{case['id']}.hlo")
    found = evaluate(module, *[_array(each) for each in case["inputs"]])
    if case["expected"] is None:  # grid-limit: 2.4e12 elements, which a splat holds in one
        assert [each.shape for each in found] == [leaf.dims for leaf in module.entry.root.shape.leaves()]
        assert all(set(each.strides) == {0} for each in found)
        return
    for mine, described in zip(found, case["expected"], strict=True):
        expected = _array(described)
        assert (mine.dtype, mine.shape) == (expected.dtype, expected.shape)
        a, b = mine.astype(np.float64), expected.astype(np.float64)
        if case["tolerance"] is not None:
            np.testing.assert_allclose(a, b, rtol=case["tolerance"])
            continue
        np.testing.assert_array_equal(a, b, err_msg=case["symptom"])
        if case["id"] not in ZERO_OF_EITHER_SIGN:
            assert (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all(), case["symptom"]


def test_no_case_is_left_out_by_mistake() -> None:
    """A new case file without an entry here would go unseen."""
    assert {path.stem for path in FOLDER.glob("*.hlo")} == {case["id"] for case in CASES}
    assert set(NO_VALUES) <= {case["id"] for case in CASES}
