"""Values that a fusion would compute over and over are computed once, and only these."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith import compile, evaluate, parse_hlo
from warpsmith.hlo.module import HloModule
from warpsmith.hlo_passes.recomputation_splitter import split_recomputed

HEAD = """HloModule m
largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
total { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
"""
R, C = 512, 1024


def fusion(body: str, result: str, parameters: str = "x = f32[512,1024] parameter(0)") -> str:
    return f"""{HEAD}body {{
  {parameters}
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  {body}
}}
ENTRY e {{
  p = f32[512,1024] parameter(0)
  ROOT f = {result} fusion(p), kind=kLoop, calls=body
}}
"""


SOFTMAX = """m = f32[512] reduce(x, low), dimensions={1}, to_apply=largest
  mb = f32[512,1024] broadcast(m), dimensions={0}
  e = f32[512,1024] exponential(f32[512,1024] subtract(x, mb))
  s = f32[512] reduce(e, zero), dimensions={1}, to_apply=total
  sb = f32[512,1024] broadcast(s), dimensions={0}
  """
LAYER_NORM = """n = f32[] constant(1024)
  nb = f32[512] broadcast(n), dimensions={}
  s = f32[512] reduce(x, zero), dimensions={1}, to_apply=total
  mean = f32[512] divide(s, nb)
  mb = f32[512,1024] broadcast(mean), dimensions={0}
  d = f32[512,1024] subtract(x, mb)
  q = f32[512] reduce(f32[512,1024] multiply(d, d), zero), dimensions={1}, to_apply=total
  v = f32[512] rsqrt(f32[512] divide(q, nb))
  vb = f32[512,1024] broadcast(v), dimensions={0}
  ROOT r = f32[512,1024] multiply(d, vb)"""
TWO_ROOTS = SOFTMAX + "r = f32[512,1024] divide(e, sb)\n  ROOT t = (f32[512,1024], f32[512]) tuple(r, m)"

CASES = {
    "softmax": (fusion(SOFTMAX + "ROOT r = f32[512,1024] divide(e, sb)", "f32[512,1024]"), 3),
    "layer norm": (fusion(LAYER_NORM, "f32[512,1024]"), 3),
    # The maximum is a result as well: the kernel has it anyway, but the quotient asks for it a thousand times.
    "two roots": (fusion(TWO_ROOTS, "(f32[512,1024], f32[512])"), 2),
    "column sums": (
        fusion(
            "s = f32[1024] reduce(x, zero), dimensions={0}, to_apply=total\n"
            "  sb = f32[512,1024] broadcast(s), dimensions={1}\n  ROOT r = f32[512,1024] divide(x, sb)",
            "f32[512,1024]",
        ),
        2,
    ),
}


def fusions(module: HloModule) -> int:
    return sum(each.opcode == "fusion" for each in module.entry)


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_whole_fusion(name: str) -> None:
    """A part would read the wrong value, or one that isn't there yet."""
    text, parts = CASES[name]
    module = parse_hlo(text)
    split = split_recomputed(module)
    assert fusions(split) >= parts
    x = np.random.default_rng(0).uniform(0.5, 2, (R, C)).astype(np.float32)
    expected = evaluate(module, x)
    for mine in (evaluate(split, x), compile(module)(x)):
        for a, b in zip(mine, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "body",
    [
        "ROOT r = f32[512] reduce(x, zero), dimensions={1}, to_apply=total",
        "s = f32[512] reduce(x, zero), dimensions={1}, to_apply=total\n  ROOT r = f32[512] exponential(s)",
        "e = f32[512,1024] exponential(x)\n  ROOT r = f32[512] reduce(e, zero), dimensions={1}, to_apply=total",
    ],
)
def test_what_is_computed_once_an_element_stays(body: str) -> None:
    """Every reduction with an epilogue would become two kernels."""
    module = parse_hlo(fusion(body, "f32[512]"))
    assert split_recomputed(module) is module


def test_small_repeats_stay() -> None:
    """A few element operations would be traded for a launch."""
    text = CASES["softmax"][0].replace("512", "4").replace("1024", "16")
    module = parse_hlo(text)
    assert split_recomputed(module) is module


def test_fusions_of_a_loop_are_split_as_well() -> None:
    """A training step's loop would keep its quadratic kernels."""
    text = (
        CASES["softmax"][0].split("ENTRY")[0]
        + """
step { s = (s32[], f32[512,1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[512,1024] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[512,1024] fusion(x), kind=kLoop, calls=body
  ROOT t = (s32[], f32[512,1024]) tuple(n, y) }
more { s = (s32[], f32[512,1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT }
ENTRY e { p = f32[512,1024] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[512,1024]) tuple(zero, p)
  w = (s32[], f32[512,1024]) while(t), condition=more, body=step
  ROOT r = f32[512,1024] get-tuple-element(w), index=1 }
"""
    )
    module = parse_hlo(text)
    assert len(split_recomputed(module).computations) == len(module.computations) + 2
    x = np.random.default_rng(1).normal(size=(R, C)).astype(np.float32)
    np.testing.assert_allclose(compile(module)(x)[0], evaluate(module, x)[0], rtol=1e-5)
