"""Error bounds: no kernel that keeps its ops' documented errors may step outside, and exact ops have no error.

The kernels here are the interpreter itself with functions pushed off their results by random whole ulps, and numpy
sums in random order.
"""

from __future__ import annotations

import numpy as np
import pytest
from hlo.erring import push_ulps, pushed
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name
from warpsmith.hlo.evaluator import evaluate, evaluate_with_bounds, within_bounds
from warpsmith.hlo.evaluator.arithmetic import floats
from warpsmith.hlo.text.parser import parse_hlo


def _exact(opcode: str, dtype: DType) -> float:
    return 0


def _check(text: str, arrays: list[Array], dtype: str, seeds: int = 3) -> list[Array]:
    """Bounds of a module, after kernels of three seeds were found inside them."""
    module = parse_hlo(text)
    outputs, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=push_ulps)
    for mine, reference in zip(outputs, evaluate(module, *arrays), strict=True):
        np.testing.assert_array_equal(mine.view(np.uint8), reference.view(np.uint8))
    rows = [leaf.dtype for leaf in module.entry.root.shape.leaves()]
    for seed in range(seeds):
        with pushed(dtype, seed):
            kernel = evaluate(module, *arrays)
        for got, want, bound, row in zip(kernel, outputs, bounds, rows, strict=True):
            inside = within_bounds(got, want, bound, row)
            at = np.flatnonzero(~inside.reshape(-1))[:3]
            assert inside.all(), (
                text,
                *((a.reshape(-1)[at], a.dtype) for a in arrays),
                *(got.reshape(-1)[at], want.reshape(-1)[at], bound.reshape(-1)[at]),
            )
    return bounds


def _one(lines: list[str], count: int, dtype: str) -> str:
    t = f"{dtype}[{count}]"
    body = [f"x = {t} parameter(0)", f"y = {t} parameter(1)", *[line.replace("= T ", f"= {t} ") for line in lines]]
    return "HloModule m\nENTRY e {\n  " + "\n  ".join([*body[:-1], "ROOT " + body[-1]]) + "\n}\n"


UNARY = [*floats.WIDE_UNARY, *floats.EXACT_UNARY]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "atan2", "remainder"]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("opcode", [*UNARY, *BINARY])
def test_errors_pass_through_each_op(opcode: str, dtype: str) -> None:
    """tanh and exp, off by two ulp each, and then the op: small, large and special arguments."""
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [rng.standard_normal(300), rng.standard_normal(300) * 20, [0, 1, -1, 88, -88, np.inf, -np.inf, np.nan]]
    )
    with np.errstate(all="ignore"):
        x = x.astype(by_name(dtype).numpy)
    y = rng.permutation(x)
    last = f"r = T {opcode}(b)" if opcode in UNARY else f"r = T {opcode}(a, b)"
    for lines in (["a = T sine(y)", "b = T tanh(x)"], ["a = T tanh(y)", "b = T exponential(x)"]):
        _check(_one([*lines, last], len(x), dtype), [x, y], dtype)


@st.composite
def _programs(draw: st.DrawFn) -> list[str]:
    """Up to nine lines of random ops on x, y and earlier results, preds and bf16 on the way."""
    names = ["x", "y"]
    lines: list[str] = []
    for number in range(draw(st.integers(2, 9))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        kind = draw(st.sampled_from(["unary", "binary", "binary", "select", "narrow", "clamp"]))
        name = f"v{number}"
        if kind == "unary":
            lines.append(f"{name} = T {draw(st.sampled_from(UNARY))}({a})")
        elif kind == "binary":
            lines.append(f"{name} = T {draw(st.sampled_from(BINARY))}({a}, {b})")
        elif kind == "select":
            direction = draw(st.sampled_from(["LT", "GE", "EQ"]))
            lines.append(f"c{number} = PRED compare({a}, {b}), direction={direction}")
            lines.append(f"{name} = T select(c{number}, {b}, {draw(st.sampled_from(names))})")
        elif kind == "narrow":
            lines.append(f"n{number} = BF convert({a})")
            lines.append(f"{name} = T convert(n{number})")
        else:
            lines.append(f"{name} = T clamp({a}, {b}, {draw(st.sampled_from(names))})")
        names.append(name)
    return lines


@settings(deadline=None, max_examples=100)
@given(_programs(), st.integers(0, 1000))
def test_errors_pass_through_random_programs(lines: list[str], seed: int) -> None:
    """No chain of ops lets a kernel out of its bounds."""
    count = 64
    rng = np.random.default_rng(seed)
    x, y = (np.concatenate([rng.standard_normal(60) * 3, [0, 1, -2, np.inf]]).astype(np.float32) for _ in range(2))
    lines = [line.replace("PRED", f"pred[{count}]").replace("BF", f"bf16[{count}]") for line in lines]
    _check(_one(lines, count, "f32"), [x, rng.permutation(y)], "f32", seeds=2)


def test_exactly_rounded_ops_have_no_error() -> None:
    """Whatever the ops: without an inexact one every kernel must agree bit for bit."""
    lines = [
        *("a = T add(x, y)", "b = T multiply(a, x)", "c = T divide(b, y)", "d = T sqrt(c)", "e = T floor(b)"),
        *("f = T maximum(d, e)", "g = T reverse(f), dimensions={0}", "r = T subtract(g, x)"),
    ]
    x, y = (np.random.default_rng(seed).standard_normal(1000).astype(np.float32) for seed in range(2))
    _, (bound,) = evaluate_with_bounds(parse_hlo(_one(lines, 1000, "f32")), x, y, op_ulp_bound=push_ulps)
    assert not bound.any()


def test_an_inexact_op_has_just_its_documented_error() -> None:
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    text = "HloModule m\nENTRY e {\n x = f32[1000] parameter(0)\n ROOT r = f32[1000] tanh(x)\n}"
    (result,), (bound,) = evaluate_with_bounds(parse_hlo(text), x, op_ulp_bound=lambda opcode, dtype: 1)
    np.testing.assert_array_equal(bound, np.spacing(np.abs(result)).astype(np.float64))


def test_a_comparison_is_open_only_where_the_error_reaches() -> None:
    """tanh(x) < y: open where y lies within two ulp of tanh(x), settled elsewhere."""
    x = np.linspace(-2, 2, 401, dtype=np.float32)
    near = np.arange(401) % 4 == 0
    y = np.where(near, np.tanh(x.astype(np.float64)).astype(np.float32), np.float32(0.3))
    text = _one(["t = T tanh(x)", "r = P compare(t, y), direction=LT"], 401, "f32").replace(
        "P compare", "pred[401] compare"
    )
    _, (bound,) = evaluate_with_bounds(parse_hlo(text), x, y, op_ulp_bound=push_ulps)
    assert np.isinf(bound[near]).sum() >= near.sum() - 1  # tanh(0) is exact
    assert not bound[~near].any()


def test_a_choice_left_open_is_bounded_by_both_sides() -> None:
    """select between 3 and 5 on an open comparison: off by 2 at most, not by anything."""
    text = """HloModule m
    ENTRY e {
      x = f32[2] parameter(0)
      t = f32[2] tanh(x)
      u = f32[2] parameter(1)
      c = pred[2] compare(t, u), direction=GT
      k3 = f32[] constant(3)
      k5 = f32[] constant(5)
      a = f32[2] broadcast(k3), dimensions={}
      b = f32[2] broadcast(k5), dimensions={}
      ROOT r = f32[2] select(c, a, b)
    }"""
    x = np.array([0.5, 0.5], np.float32)
    tanh = np.tanh(x.astype(np.float64)).astype(np.float32)
    _, (bound,) = evaluate_with_bounds(parse_hlo(text), x, tanh * np.float32([1, 0.9]), op_ulp_bound=push_ulps)
    assert 2.0 <= bound[0] < 2.001
    assert bound[1] == 0


def test_truncation_is_open_only_at_whole_numbers() -> None:
    """convert to s32 of 4 * exp(x): one off where the result lies at an integer."""
    text = """HloModule m
    ENTRY e {
      x = f32[3] parameter(0)
      e = f32[3] exponential(x)
      k = f32[] constant(4)
      b = f32[3] broadcast(k), dimensions={}
      m = f32[3] multiply(e, b)
      ROOT r = s32[3] convert(m)
    }"""
    x = np.array([0.0, 0.1, np.log(2)], np.float32)
    _, (bound,) = evaluate_with_bounds(parse_hlo(text), x, op_ulp_bound=push_ulps)
    assert bound.tolist() == [1, 0, 1]


def _sum_module(dtype: str, rows: int, count: int, op: str) -> str:
    return f"""HloModule m
    f {{ a = {dtype}[] parameter(0)  b = {dtype}[] parameter(1)  ROOT r = {dtype}[] {op}(a, b) }}
    ENTRY e {{
      x = {dtype}[{rows},{count}] parameter(0)
      z = {dtype}[] constant({1 if op == "multiply" else 0})
      ROOT r = {dtype}[{rows}] reduce(x, z), dimensions={{1}}, to_apply=f
    }}"""


@pytest.mark.parametrize("op", ["add", "multiply"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_sums_hold_for_any_order(dtype: str, op: str) -> None:
    """Float32 partial sums in order, reversed, shuffled and as a tree, cancellation included."""
    rows, count = 40, 1000
    rng = np.random.default_rng(0)
    scale = 1.0 if op == "add" else 0.02
    x = (rng.standard_normal((rows, count)) * scale + (0 if op == "add" else 1)).astype(by_name(dtype).numpy)
    (want,), (bound,) = evaluate_with_bounds(parse_hlo(_sum_module(dtype, rows, count, op)), x, op_ulp_bound=_exact)
    assert np.isfinite(bound).all()
    wide = x.astype(np.float32)
    ufunc = np.add if op == "add" else np.multiply
    orders = [np.arange(count), np.arange(count)[::-1], rng.permutation(count)]
    kernels = [ufunc.accumulate(wide[:, order], axis=1, dtype=np.float32)[:, -1] for order in orders]
    tree = wide
    while tree.shape[1] > 1:
        half = tree.shape[1] // 2
        tree = np.concatenate([ufunc(tree[:, :half], tree[:, half : 2 * half]), tree[:, 2 * half :]], axis=1)
    kernels.append(tree[:, 0])
    for kernel in kernels:
        assert within_bounds(kernel.astype(x.dtype), want, bound, by_name(dtype)).all()
    # The bound is of use: smaller than the sum of magnitudes by far.
    assert (bound < 0.02 * np.abs(wide).sum(axis=1)).all()


def test_dots_hold_for_any_order() -> None:
    """Float32 products and partial sums, with and without FMA-like wide products."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((9, 300)).astype(np.float32), rng.standard_normal((300, 7)).astype(np.float32)
    text = """HloModule m
    ENTRY e {
      x = f32[9,300] parameter(0)
      y = f32[300,7] parameter(1)
      ROOT r = f32[9,7] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    (want,), (bound,) = evaluate_with_bounds(parse_hlo(text), a, b, op_ulp_bound=_exact)
    order = rng.permutation(300)
    products = a[:, order, None] * b[order][None]
    kernel = np.add.accumulate(products, axis=1, dtype=np.float32)[:, -1]
    assert within_bounds(kernel, want, bound, by_name("f32")).all()
    assert within_bounds(a @ b, want, bound, by_name("f32")).all()
    assert (bound < 5e-3).all()


def test_softmax_of_a_kernel_stays_inside() -> None:
    """max, subtract, exp off by two ulp, sum in float32 in any order, divide."""
    text = """HloModule m
    mx { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
    ad { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    ENTRY e {
      x = f32[16,257] parameter(0)
      i = f32[] constant(-inf)
      m = f32[16] reduce(x, i), dimensions={1}, to_apply=mx
      b = f32[16,257] broadcast(m), dimensions={0}
      s = f32[16,257] subtract(x, b)
      e = f32[16,257] exponential(s)
      z = f32[] constant(0)
      t = f32[16] reduce(e, z), dimensions={1}, to_apply=ad
      d = f32[16,257] broadcast(t), dimensions={0}
      ROOT r = f32[16,257] divide(e, d)
    }"""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((16, 257)) * 4).astype(np.float32)
    x[:, 5] = -np.inf
    (want,), (bound,) = evaluate_with_bounds(parse_hlo(text), x, op_ulp_bound=push_ulps)
    shifted = x - x.max(axis=1, keepdims=True)
    for _ in range(5):
        e = np.exp(shifted.astype(np.float64)).astype(np.float32)
        e = e + (rng.integers(-2, 3, e.shape) * np.spacing(e)).astype(np.float32) * (e > 0)
        total = np.add.accumulate(e[:, rng.permutation(257)], axis=1, dtype=np.float32)[:, -1:]
        assert within_bounds(e / total, want, bound, by_name("f32")).all()
    finite = np.isfinite(bound)
    assert finite.all()
    assert (bound <= 1e-4 * want + 1e-9).all()


def test_integers_and_selecting_combiners_are_exact() -> None:
    """argmax over floats, sums of integers: no order changes them."""
    text = """HloModule m
    arg {
      a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
      g = pred[] compare(a, b), direction=GE
      v = f32[] select(g, a, b)  k = s32[] select(g, i, j)  ROOT r = (f32[], s32[]) tuple(v, k)
    }
    ENTRY e {
      x = f32[5,70] parameter(0)
      i = s32[5,70] iota(), iota_dimension=1
      z = f32[] constant(-inf)
      n = s32[] constant(-1)
      ROOT r = (f32[5], s32[5]) reduce(x, i, z, n), dimensions={1}, to_apply=arg
    }"""
    x = np.random.default_rng(0).standard_normal((5, 70)).astype(np.float32)
    _, bounds = evaluate_with_bounds(parse_hlo(text), x, op_ulp_bound=push_ulps)
    assert not any(bound.any() for bound in bounds)
    inexact = text.replace("x = f32[5,70] parameter(0)", "p = f32[5,70] parameter(0)\n x = f32[5,70] tanh(p)")
    _, bounds = evaluate_with_bounds(parse_hlo(inexact), x, op_ulp_bound=push_ulps)
    assert all(np.isinf(bound).all() for bound in bounds)  # which one wins is open


def test_chunks_change_no_bound() -> None:
    """A large array's bounds are those of its pieces."""
    lines = ["a = T tanh(x)", "b = T multiply(a, y)", "c = T subtract(b, x)", "r = T exponential(c)"]
    rng = np.random.default_rng(0)
    count = 300_001
    x, y = (rng.standard_normal(count).astype(np.float32) for _ in range(2))
    _, (whole,) = evaluate_with_bounds(parse_hlo(_one(lines, count, "f32")), x, y, op_ulp_bound=push_ulps)
    part = slice(65_000, 66_000)
    _, (piece,) = evaluate_with_bounds(parse_hlo(_one(lines, 1000, "f32")), x[part], y[part], op_ulp_bound=push_ulps)
    np.testing.assert_array_equal(whole[part], piece)


def test_complex_results_whose_modulus_is_no_number() -> None:
    """|1.5e308 + 1.4e308j| is more than any float64, though both parts aren't; beside an infinity nothing bounds."""
    text = "HloModule m\nENTRY e { x = c128[4] parameter(0)  y = c128[4] parameter(1)  ROOT r = c128[4] divide(x, y) }"
    x = np.array([1.5e308 + 1.4e308j, 1e241 + 1e308j, complex(np.nan, np.inf), 3e-320 + 0j])
    y = np.array([1, 0.5, 1, 1], np.complex128)
    (result,), (bound,) = evaluate_with_bounds(parse_hlo(text), x, y, op_ulp_bound=lambda opcode, dtype: 8.0)
    np.testing.assert_array_equal(result[:2], [x[0], complex(2e241, np.inf)])
    step = np.spacing(2.0**1023)  # of either part
    assert 9 * step <= bound[0] <= 100 * step
    assert np.isinf(bound[1])
    assert bound[2] == 0
    assert 9 * 5e-324 <= bound[3] <= 100 * 5e-324
    for off, inside in ((0, True), (8 * step, True), (-8 * step * 1j, True), (1e295, False)):
        here = np.array([x[0] + off])
        assert within_bounds(here, result[:1], bound[:1], by_name("c128")).all() == inside
