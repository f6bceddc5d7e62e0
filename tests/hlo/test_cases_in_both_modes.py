"""The project's known-trouble cases (cases/*.hlo) as kernels on a CPU, in both numerics modes.

cases_xla.json holds what XLA 0.10.2 gives for each: `expected` is the value of cases.json; where XLA's differs it is
written out, with the reason; `not run` means unknown.  Most of those differences come from XLA's rewrites of HLO, which
the mode `xla` doesn't repeat: it takes fusions as they are written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.compiler import compile
from warpsmith.errors import ElidedConstant
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

FOLDER = Path(__file__).parent / "cases"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text())
ZERO_OF_EITHER_SIGN = {"negzero-reduce-max"}
UPSTREAM: dict[str, dict[str, Any]] = {
    row["id"]: row for row in json.loads((Path(__file__).parent / "cases_xla.json").read_text())
}
BY_ID = {case["id"]: case for case in CASES}
# Four billion elements, and 2.4e12: more than a test may allocate.  They are compiled for a GPU instead.
TOO_LARGE = ("grid-limit", "index-64bit")
RUN = [case for case in CASES if case["id"] not in (*TOO_LARGE, "elided-constant")]


def from_json(described: dict[str, Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of cases.json: numbers, or floats as text."""
    dtype = np.dtype(getattr(ml_dtypes, described["dtype"], None) or described["dtype"])
    numbers = [float(each) if isinstance(each, str) else each for each in described["values"]]
    with np.errstate(all="ignore"):
        wide = np.array(numbers, np.float64 if any(isinstance(each, float) for each in numbers) else None)
        return wide.astype(dtype).reshape(described["shape"])


def _agree(case: dict[str, Any], mine: Any, expected: Any) -> None:
    a, b = np.asarray(mine).astype(np.float64), np.asarray(expected).astype(np.float64)
    if case["tolerance"] is not None:
        np.testing.assert_allclose(a, b, rtol=case["tolerance"])
        return
    np.testing.assert_array_equal(a, b, err_msg=case["symptom"])
    if case["id"] not in ZERO_OF_EITHER_SIGN:
        assert (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all(), case["symptom"]


@pytest.mark.parametrize("numerics", ["strict", "xla"])
@pytest.mark.parametrize("case", RUN, ids=lambda case: case["id"])
def test_a_kernel_gives_the_expected_values(case: dict[str, Any], numerics: str) -> None:
    module = parse_hlo((FOLDER / f"{case['id']}.hlo").read_text())
    found = compile(module, "cpu", numerics=numerics, cache=False)(*[from_json(each) for each in case["inputs"]])
    for mine, described in zip(found, case["expected"], strict=True):
        _agree(case, mine, from_json(described))


@pytest.mark.parametrize("id", TOO_LARGE)
def test_a_case_too_large_to_run_compiles_for_a_gpu(id: str) -> None:
    """No index of 32 bits, no grid that the hardware refuses."""
    exe = compile(parse_hlo((FOLDER / f"{id}.hlo").read_text()), "sm_90", cache=False)
    for kernel in exe.kernels:
        assert 0 < kernel.grid[0] <= 2**31 - 1
        assert all(size <= 65535 for size in kernel.grid[1:])


@pytest.mark.parametrize("numerics", ["strict", "xla"])
def test_elided_constants_are_refused(numerics: str) -> None:
    """A module whose constant was left out would run on garbage."""
    module = parse_hlo((FOLDER / "elided-constant.hlo").read_text())
    with pytest.raises(ElidedConstant):
        compile(module, numerics=numerics)
    with pytest.raises(ElidedConstant):
        evaluate(module)


def test_every_case_says_what_xla_gives() -> None:
    """A case without a word on XLA, or a difference without a reason, would go unseen."""
    assert list(UPSTREAM) == list(BY_ID)
    for id, row in UPSTREAM.items():
        assert len(row["from"]) > 20, id
        if isinstance(row["xla"], list):
            assert len(row["reason"]) > 40, id
            (shape,) = {tuple(BY_ID[id]["expected"][0]["shape"])}
            assert len(row["xla"]) == int(np.prod(shape)), id


_FUSED = {
    "f8e4m3fn-overflow": "x = f32[6] parameter(0)  n = f8e4m3fn[6] convert(x)  ROOT r = f32[6] convert(n)",
    "narrowing-kept": "x = f32[2] parameter(0)  n = bf16[2] convert(x)  ROOT r = f32[2] convert(n)",
}


@pytest.mark.parametrize("id", _FUSED)
def test_in_a_fusion_xla_numerics_give_xlas_value(id: str) -> None:
    """Excess precision: XLA drops the pair of converts, and so does `xla`; `strict` rounds."""
    case = BY_ID[id]
    module = parse_hlo(f"HloModule m\nf {{ {_FUSED[id]} }}")
    x = from_json(case["inputs"][0])
    strict, xla = (compile(module, "cpu", numerics=mode, cache=False)(x)[0] for mode in ("strict", "xla"))
    _agree(case, strict, from_json(case["expected"][0]))
    theirs = np.array([float(value) for value in UPSTREAM[id]["xla"]], np.float32)
    _agree(case, xla, theirs)
    assert not np.array_equal(strict, xla, equal_nan=True)
