"""Every pass on the way to machine code keeps every fusion's results, and so does the machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import assert_close, check_passes, fusion_of, simulate
from fusion_corpus import CASES, inputs_of

import warpsmith as ws
from warpsmith.arrays import Array
from warpsmith.devices import device
from warpsmith.dtypes import by_name
from warpsmith.emitters import emit
from warpsmith.hlo.evaluator import evaluate_with_bounds
from warpsmith.numerics.bounds import bound


@pytest.mark.parametrize("name", CASES)
def test_every_pass_keeps_the_results(name: str) -> None:
    """As emitted: within the interpreter's bounds.  After each pass: sound IR, text that reads back, the same bits."""
    counts = check_passes(CASES[name], "cpu")
    assert counts.simulated >= 5


@pytest.mark.parametrize("name", CASES)
def test_machine_code_gives_the_interpreters_results(name: str) -> None:
    case = CASES[name]
    module = case.module()
    arrays = inputs_of(case, module, seed=1)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    outputs = ws.compile(module)(*arrays)
    assert_close(outputs, expected, bounds, module, f"{name} on the CPU")
    for output in outputs:
        if output.dtype == np.bool_:
            assert (np.ascontiguousarray(output).view(np.uint8) <= 1).all(), "a pred that is neither 0 nor 1"


SOURCES = {"f64": np.float64, "f32": np.float32, "s64": np.int64, "u64": np.uint64, "s32": np.int32, "u32": np.uint32}
# Integers past 2^10, where a midpoint has neighbours: f8e4m3fn ends at 448.
PAIRS = [(s, t) for t in ("bf16", "f16", "f8e5m2") for s in SOURCES] + [("f64", "f8e4m3fn"), ("f32", "f8e4m3fn")]


def _midpoints(target: np.dtype[Any]) -> tuple[Array, Array]:
    """The finite values of a narrow type (but the last), and the points halfway to the next ones."""
    bits = np.arange(1 << 8 * target.itemsize, dtype=np.uint32).astype(f"u{target.itemsize}")
    with np.errstate(all="ignore"):
        values = bits.view(target).astype(np.float64)
        finite = np.unique(values[np.isfinite(values)])
    return finite, (finite[:-1] + finite[1:]) / 2


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_conversion_rounds_once(source: str, target: str) -> None:
    """Numbers just beside a midpoint go to the nearer value; a first rounding to f32 or f64 would lose the side."""
    dtype, wide = by_name(target).numpy, np.dtype(SOURCES[source])
    values, middle = _midpoints(dtype)
    if wide.kind == "f":
        kept = np.isfinite(middle.astype(wide)) & (middle.astype(wide).astype(np.float64) == middle)
        below, above = (np.nextafter(middle[kept].astype(wide), wide.type(end)) for end in (-np.inf, np.inf))
    else:
        info = np.iinfo(wide)
        kept = (np.abs(middle) > 2**10) & (middle % 1 == 0)
        kept &= (middle > float(info.min)) & (middle < float(info.max) * 0.99)
        whole = middle[kept].astype(wide)
        below, above = whole - wide.type(1), whole + wide.type(1)
    count = int(kept.sum())
    assert count
    expected = np.concatenate([values[:-1][kept], values[1:][kept]])
    shape = f"[{2 * count}]"
    text = f"HloModule m\nf {{ x = {source}{shape} parameter(0)\n ROOT r = {target}{shape} convert(x) }}"
    module = ws.parse_hlo(text)
    inputs = np.concatenate([below, above])
    (machine,) = ws.compile(module)(inputs)
    (reference,) = ws.evaluate(module, inputs)
    kernel = emit(fusion_of(module), device("sm_90"))
    (simulated,) = simulate(kernel.module, kernel, [inputs])
    for found in (machine, reference, simulated):
        np.testing.assert_array_equal(found.astype(np.float64), expected)
