"""Runs every case of tests/hlo/cases in the reference interpreter and prints a verdict for each.

    python bench/case_verdicts.py [--large]

A case's own answer is compared bit for bit (or within its tolerance).  Cases without one are checked by what they are
about: `CHECKS` has a row for each.  `--large` runs index-64bit too, which takes 8 GiB of memory.  Exit status 1 if a
verdict is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.errors import ElidedConstant
from warpsmith.hlo import HloModule, parse_hlo
from warpsmith.hlo.evaluator import evaluate

FOLDER = Path(__file__).parent.parent / "tests" / "hlo" / "cases"
Array = np.ndarray[Any, np.dtype[Any]]
Verdict = tuple[bool, str]

EITHER_ZERO = {"negzero-reduce-max": "numpy and HLO leave the sign of a zero open here"}


def described(row: dict[str, Any]) -> Array:
    """An array as cases.json writes it."""
    name: str = row["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    numbers = [float(each) if isinstance(each, str) else each for each in row["values"]]
    with np.errstate(all="ignore"):
        wide = np.array(numbers, np.float64 if any(isinstance(each, float) for each in numbers) else None)
        return wide.astype(dtype).reshape(row["shape"])


def compared(case: dict[str, Any], module: HloModule) -> Verdict:
    """The case's own answer."""
    found = evaluate(module, *[described(each) for each in case["inputs"]])
    elements = 0
    for mine, row in zip(found, case["expected"], strict=True):
        wanted = described(row)
        if (mine.dtype, mine.shape) != (wanted.dtype, wanted.shape):
            return False, f"{mine.dtype}{mine.shape} instead of {wanted.dtype}{wanted.shape}"
        wide = np.complex128 if mine.dtype.kind == "c" else np.float64
        a, b = mine.astype(wide), wanted.astype(wide)
        if case["tolerance"] is not None:
            same = np.isclose(a, b, rtol=case["tolerance"], atol=0, equal_nan=True)
        else:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            if case["id"] not in EITHER_ZERO and wide is np.float64:
                same &= (np.signbit(a) == np.signbit(b)) | np.isnan(a)
        if not same.all():
            at = int(np.flatnonzero(~same.reshape(-1))[0])
            return False, f"element {at}: {a.reshape(-1)[at]} instead of {b.reshape(-1)[at]}"
        elements += mine.size
    within = "bit for bit" if case["tolerance"] is None else f"within {case['tolerance']:g}"
    return True, f"{elements} elements {within}"


def refused(text: str) -> Verdict:
    try:
        evaluate(parse_hlo(text, "elided-constant.hlo"))
    except ElidedConstant as error:
        return True, f"refused: {str(error).splitlines()[0]}"
    return False, "accepted"


def splat(text: str) -> Verdict:
    """More elements than any memory: every one is there, in one number."""
    module = parse_hlo(text)
    found = evaluate(module)
    whole = all(each.shape == leaf.dims for each, leaf in zip(found, module.entry.root.shape.leaves(), strict=True))
    count = sum(each.size for each in found)
    held = sum(np.prod([n for n, s in zip(each.shape, each.strides, strict=True) if s]) for each in found)
    return whole and held == len(found), f"{count:.3g} elements in {int(held)}, value {found[0].flat[0]}"


def four_gigabytes(text: str) -> Verdict:
    """Values on both sides of 2^31 and 2^32 and a sample between: a pattern that no 32-bit index would find."""
    a = np.zeros(1 << 32, np.uint8)
    rng = np.random.default_rng(0)
    places = np.unique(np.concatenate([rng.integers(0, 1 << 32, 100_000), [0, 2**31 - 1, 2**31, 2**32 - 1]]))
    values = rng.integers(1, 256, places.size, dtype=np.uint8)
    a[places] = values
    b = np.array([7, 8, 9], np.uint8)
    (found,) = evaluate(parse_hlo(text), a, b)
    right = found.shape == (2**32 + 3,) and (found[places] == values).all() and found[2**32 :].tolist() == [7, 8, 9]
    zeros = int(np.count_nonzero(found)) == places.size + 3
    return bool(right and zeros), f"{found.size} elements: {places.size} samples, all others 0, the tail 7 8 9"


CHECKS: dict[str, Callable[[str], Verdict]] = {
    "elided-constant": refused,
    "grid-limit": splat,
    "index-64bit": four_gigabytes,
}
"""Cases without an answer of their own: what is checked instead."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--large", action="store_true", help="run index-64bit too (8 GiB)")
    large = parser.parse_args().large
    wrong = 0
    cases: list[dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
    for case in cases:
        name = case["id"]
        if name == "index-64bit" and not large:
            print(f"{name:26s} left out  --large runs it")
            continue
        text = (FOLDER / f"{name}.hlo").read_text(encoding="utf-8")
        start = perf_counter()
        check = CHECKS.get(name)
        right, what = check(text) if check else compared(case, parse_hlo(text, f"{name}.hlo"))
        wrong += not right
        seconds = perf_counter() - start
        print(
            f"{name:26s} {'right' if right else 'WRONG':8s}  {what}" + (f"  ({seconds:.1f} s)" if seconds > 1 else "")
        )
    print(f"{len(cases)} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
