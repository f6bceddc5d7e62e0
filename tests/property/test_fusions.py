"""Random fusions keep their results on every stage of both targets, and in machine code.

The reference is the interpreter, which shares no code with emitters, passes, or simulator.  An example prints as the
text of its module.  The simulator checks every access before the machine code runs, so that a bad one is a failure
here and no crash.
"""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_close, check_passes
from fusion_corpus import Case, inputs_of
from hypothesis import given, note, settings
from hypothesis import strategies as st
from random_fusions import random_fusion

import warpsmith as ws
from warpsmith.hlo.evaluator import evaluate_with_bounds
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile


@st.composite
def cases(draw: st.DrawFn, most_ops: int = 10) -> Case:
    """A fusion; its inputs hold edge values unless floats are added up."""
    found = random_fusion(draw(st.randoms(use_true_random=False)), most_ops)
    profile = Profile.TAME if found.has_sums else Profile.MIXTURE
    return Case("random", found.text, profile, tuple(found.indices.items()))


@pytest.mark.slow
@settings(max_examples=20)
@given(cases(), st.integers(0, 1000), st.sampled_from(["sm_80", "sm_90", "sm_100"]))
def test_every_pass_for_gpus_keeps_the_results(case: Case, seed: int, target: str) -> None:
    note(case.text)
    check_passes(case, target, seed=seed)


@pytest.mark.slow
@settings(max_examples=20)
@given(cases(), st.integers(0, 1000), st.sampled_from([128, 256, 512]))
def test_every_pass_for_cpus_keeps_the_results(case: Case, seed: int, vector_bits: int) -> None:
    note(case.text)
    check_passes(case, "cpu", vector_bits=vector_bits, seed=seed)


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(16), st.integers(0, 1000))
def test_machine_code_gives_the_interpreters_results(case: Case, seed: int) -> None:
    note(case.text)
    module = case.module()
    arrays = inputs_of(case, module, seed)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    executable = ws.compile(module, cache=False)
    assert_close(executable(*arrays), expected, bounds, module, "on the CPU")
    out = [np.empty_like(each) for each in expected]
    assert_close(executable(*arrays, out=out), expected, bounds, module, "on the CPU, into arrays of the caller's")
