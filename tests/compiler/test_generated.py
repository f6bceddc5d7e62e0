"""Generated inputs lead to outputs that a comparison can tell from wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.compiler.generated import Draw, draw, random_inputs
from warpsmith.hlo.evaluator import evaluate_with_limits
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile

REDUCERS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
mul { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] multiply(a, b) }
"""
CASES = {
    "sum of exp": (
        "x = f32[8,4096] add(p, p)  y = f32[8,4096] exponential(x)  z = f32[] constant(0)"
        " ROOT s = f32[8] reduce(y, z), dimensions={1}, to_apply=add",
        "f32[8,4096]",
        Profile.NARROW,
    ),
    "product": (
        "one = f32[] constant(1)  ROOT s = f32[64] reduce(p, one), dimensions={1}, to_apply=mul",
        "f32[64,1000]",
        Profile.NEAR_ONE,
    ),
    "log": ("ROOT s = f32[640] log(p)", "f32[640]", Profile.MIXTURE),
    "sum of exp of a large multiple": (
        "c = f32[] constant(1000)  b = f32[8,64] broadcast(c), dimensions={}  x = f32[8,64] multiply(p, b)"
        " y = f32[8,64] exponential(x)  z = f32[] constant(0)"
        " ROOT s = f32[8] reduce(y, z), dimensions={1}, to_apply=add",
        "f32[8,64]",
        Profile.SMALL,
    ),
    "zeros on purpose": (
        "z = f32[] constant(0)  ROOT s = f32[64] broadcast(z), dimensions={}",
        "f32[64]",
        Profile.MIXTURE,
    ),
    "mostly -inf on purpose": (
        "i = s32[64] iota(), iota_dimension=0  n = s32[] constant(60)  m = s32[64] broadcast(n), dimensions={}"
        " c = pred[64] compare(i, m), direction=GE  z = f32[] constant(-inf)  y = f32[64] broadcast(z), dimensions={}"
        " ROOT s = f32[64] select(c, p, y)",
        "f32[64]",
        Profile.MIXTURE,
    ),
    "half zeros": (
        "z = f32[] constant(0)  y = f32[640] broadcast(z), dimensions={}  ROOT s = f32[640] maximum(p, y)",
        "f32[640]",
        Profile.MIXTURE,
    ),
    "sparse": (
        "j = s32[640] parameter(1)  i = s32[640,300] iota(), iota_dimension=1"
        " k = s32[640,300] broadcast(j), dimensions={0}  c = pred[640,300] compare(i, k), direction=EQ"
        " ROOT s = f32[640,300] convert(c)",
        "f32[]",
        None,
    ),
}


def drawn(body: str, shape: str, seed: int = 0) -> Draw:
    module = parse_hlo(f"HloModule m\n{REDUCERS}\nENTRY e {{ p = {shape} parameter(0)  {body} }}")
    return draw(module, seed, lambda arrays: evaluate_with_limits(module, *arrays, op_ulp_bound=bound))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_inputs_are_as_wide_as_outputs_allow(case: str, seed: int) -> None:
    """A match would be one of infinities and of zeros, or ordinary modules would lose the values that find bugs."""
    body, shape, profile = CASES[case]
    found = drawn(body, shape, seed)
    assert not found.vacuous
    assert profile in (found.profile, None)


@pytest.mark.parametrize(
    "body",
    [
        "c = f32[] constant(1e30)  b = f32[64] broadcast(c), dimensions={}  x = f32[64] multiply(p, b)"
        " ROOT s = f32[64] exponential(x)",
        "a = f32[64] abs(p)  n = f32[64] negate(a)  ROOT s = f32[64] log(n)",
        "e = f32[64] exponential(p)  c = f32[] constant(1e30)  b = f32[64] broadcast(c), dimensions={}"
        " x = f32[64] multiply(e, b)  ROOT s = f32[64] exponential(x)",
    ],
)
def test_outputs_that_nothing_makes_finite_are_vacuous(body: str) -> None:
    """A match of infinities with infinities would be called one."""
    assert drawn(body, "f32[64]").vacuous == [0]


def test_what_cannot_be_evaluated_has_inputs_all_the_same() -> None:
    """Whoever asks for inputs would get the error of an evaluation that they didn't ask for."""
    module = parse_hlo(
        'ENTRY e { p = f32[4] parameter(0)  ROOT c = f32[4] custom-call(p), custom_call_target="nowhere" }'
    )
    (array,) = random_inputs(module)
    assert array.shape == (4,)
    assert array.dtype == np.float32
