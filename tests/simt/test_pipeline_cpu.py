"""Every pass on the way to machine code keeps every fusion's results, and so does the machine code."""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_close, check_passes
from fusion_corpus import CASES, inputs_of

import warpsmith as ws
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
