"""scan: a step for each slice, in order or backwards, as XLA:CPU runs it."""

from __future__ import annotations

import numpy as np
import pytest
from hlo import oracle

from warpsmith import compile, parse_hlo
from warpsmith.hlo.evaluator import evaluate

MODULE = """HloModule m
step {
  a = f32[4] parameter(0)
  c = f32[4] parameter(1)
  n = f32[4] subtract(a, c)
  o = f32[4] multiply(a, c)
  ROOT t = (f32[4], f32[4]) tuple(o, n)
}
ENTRY e {
  a = f32[3,4] parameter(0)
  c = f32[4] parameter(1)
  ROOT s = (f32[3,4], f32[4]) scan(a, c), dimensions={0}, num_carries=1, is_reverse=REVERSE, to_apply=step
}
"""
A = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
C = np.full(4, 2, np.float32)


@pytest.mark.parametrize("reverse", [False, True])
def test_results_and_carries_follow_the_order_of_the_slices(reverse: bool) -> None:
    """Wrong: a carry goes to the wrong slice, or a row of the results is not where its slice was."""
    module = parse_hlo(MODULE.replace("REVERSE", str(reverse).lower()))
    carry, rows = C, np.empty_like(A)
    for i in (2, 1, 0) if reverse else (0, 1, 2):
        rows[i], carry = A[i] * carry, A[i] - carry
    for found in (evaluate(module, A, C), compile(module)(A, C)):
        np.testing.assert_array_equal(found[0], rows)
        np.testing.assert_array_equal(found[1], carry)


def test_slices_come_out_of_the_dimension_and_go_back_into_it() -> None:
    """Wrong: results of a scan along the last dimension are stacked along the first."""
    text = """HloModule m
step { a = f32[3] parameter(0)  b = s32[3] parameter(1)  k = s32[] parameter(2)
  x = f32[3] convert(b)  y = f32[3] multiply(a, x)  one = s32[] constant(1)  j = s32[] add(k, one)
  ROOT t = (f32[3], s32[]) tuple(y, j) }
ENTRY e { a = f32[3,4] parameter(0)  b = s32[3,4] parameter(1)  k = s32[] parameter(2)
  ROOT s = (f32[3,4], s32[]) scan(a, b, k), dimensions={1}, num_carries=1, to_apply=step }
"""
    a, b = A.T[:3, [0, 1, 2, 0]].copy(), np.arange(12, dtype=np.int32).reshape(3, 4)
    rows, count = evaluate(parse_hlo(text), a, b, np.int32(5))
    np.testing.assert_array_equal(rows, a * b.astype(np.float32))
    assert count == 9


@pytest.mark.skipif(not oracle.available(), reason=oracle.REASON)
@pytest.mark.parametrize("reverse", ["false", "true"])
def test_scans_agree_with_xla(reverse: str) -> None:
    """Wrong: operands, or results, come in another order than XLA's."""
    text = MODULE.replace("REVERSE", reverse)
    (wanted,) = oracle.run_all([(text, [A, C])])
    assert not isinstance(wanted, str)
    for mine, theirs in zip(evaluate(parse_hlo(text), A, C), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
