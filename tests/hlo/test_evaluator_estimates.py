"""Estimates of a kernel's error, where a sure bound is of no use: kernels lie inside, wrong ones don't."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest
from hlo.erring import push_ulps, pushed
from hlo.jax_programs import dump
from hlo.jax_programs.dump import Dump

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name
from warpsmith.hlo import HloModule, parse_hlo
from warpsmith.hlo.evaluator import (
    estimate_errors,
    evaluate,
    evaluate_with_bounds,
    evaluate_with_limits,
    within_bounds,
)
from warpsmith.hlo.evaluator.bounds import estimate
from warpsmith.hlo.evaluator.interpreter import array_leaves
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile, random_array

LAYERS, WIDTH, ROWS = 10, 32, 8


def _network(layers: int = LAYERS) -> str:
    """Residual layers of normalisation, product and tanh, as deep networks have."""
    lines = ["HloModule deep", "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }"]
    lines += ["ENTRY e {", f"  x0 = f32[{ROWS},{WIDTH}] parameter(0)", "  zero = f32[] constant(0)"]
    lines += [f"  count = f32[] constant({WIDTH})", f"  n = f32[{ROWS}] broadcast(count), dimensions={{}}"]
    for i in range(layers):
        t, r = f"f32[{ROWS},{WIDTH}]", f"f32[{ROWS}]"
        lines += [
            f"  w{i} = f32[{WIDTH},{WIDTH}] parameter({i + 1})",
            f"  sq{i} = {t} multiply(x{i}, x{i})",
            f"  s{i} = {r} reduce(sq{i}, zero), dimensions={{1}}, to_apply=add",
            f"  m{i} = {r} divide(s{i}, n)",
            f"  v{i} = {r} rsqrt(m{i})",
            f"  b{i} = {t} broadcast(v{i}), dimensions={{0}}",
            f"  y{i} = {t} multiply(x{i}, b{i})",
            f"  d{i} = {t} dot(y{i}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            f"  t{i} = {t} tanh(d{i})",
            f"  {'ROOT ' if i == layers - 1 else ''}x{i + 1} = {t} add(x{i}, t{i})",
        ]
    return "\n".join([*lines, "}"])


def _kernel(x: Array, weights: Sequence[Array], seed: int, bias: float = 0.0) -> Array:
    """The network in float32, sums in an order of their own, functions off by up to two ulp; `bias` spoils tanh."""
    rng = np.random.default_rng(seed)
    for weight in weights:
        order = rng.permutation(WIDTH)
        total = np.add.accumulate((x * x)[:, order], axis=1, dtype=np.float32)[:, -1:]
        scale = (1 / np.sqrt((total / np.float32(WIDTH)).astype(np.float64))).astype(np.float32)
        y = x * scale
        d = np.zeros((len(x), WIDTH), np.float32)
        for k in order:
            d = d + y[:, k : k + 1] * weight[k]
        t = (np.tanh(d.astype(np.float64)) * (1 + bias)).astype(np.float32)
        x = x + t + (rng.integers(-2, 3, t.shape) * np.spacing(t)).astype(np.float32)
    return x


@lru_cache(maxsize=1)
def _deep() -> tuple[HloModule, Array, tuple[Array, ...]]:
    rng = np.random.default_rng(0)
    weights = tuple((rng.standard_normal((WIDTH, WIDTH)) * 0.5).astype(np.float32) for _ in range(LAYERS))
    return parse_hlo(_network()), rng.standard_normal((ROWS, WIDTH)).astype(np.float32), weights


def test_a_deep_network_has_useful_limits() -> None:
    """Where the sure bound has outgrown the values, the estimate is a small part of them."""
    module, x, weights = _deep()
    (output,), (sure,) = evaluate_with_bounds(module, x, *weights, op_ulp_bound=push_ulps)
    outputs, (limit,), (estimated,) = evaluate_with_limits(module, x, *weights, op_ulp_bound=push_ulps)
    np.testing.assert_array_equal(outputs[0], output)
    assert (sure > 0.1 * np.abs(output)).mean() > 0.9
    assert estimated.mean() > 0.9
    assert (limit <= sure).all()
    assert (limit < 1e-2 * np.abs(output).max()).all()
    assert np.median(limit) < 1e-4 * np.abs(output).max()


def test_kernels_stay_inside_and_wrong_ones_do_not() -> None:
    module, x, weights = _deep()
    outputs, (limit,), _ = evaluate_with_limits(module, x, *weights, op_ulp_bound=push_ulps)
    for seed in range(40):
        assert within_bounds(_kernel(x, weights, seed), outputs[0], limit, by_name("f32")).all(), seed
    assert not within_bounds(_kernel(x, weights, 0, bias=1e-3), outputs[0], limit, by_name("f32")).all()


def test_a_function_that_is_always_off_in_one_direction_stays_inside() -> None:
    """Its errors line up, and those of independent draws would not."""
    module, x, weights = _deep()
    outputs, (limit,), _ = evaluate_with_limits(module, x, *weights, op_ulp_bound=push_ulps)
    for bias in (2.0**-23, -(2.0**-23)):
        assert within_bounds(_kernel(x, weights, 1, bias=bias), outputs[0], limit, by_name("f32")).all()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_erring_interpreters_stay_inside(dtype: str) -> None:
    """Every function at its documented error, at each type, followed by sums and roundings."""
    t, r = f"{dtype}[40,30]", f"{dtype}[40]"
    text = f"""HloModule m
    add {{ a = {dtype}[] parameter(0)  b = {dtype}[] parameter(1)  ROOT r = {dtype}[] add(a, b) }}
    ENTRY e {{
      x = {t} parameter(0)
      y = {t} parameter(1)
      a = {t} tanh(x)
      b = {t} exponential(y)
      c = {t} subtract(b, a)
      d = {t} sine(c)
      n = bf16[40,30] convert(d)
      w = {t} convert(n)
      g = {t} multiply(w, a)
      z = {dtype}[] constant(0)
      s = {r} reduce(g, z), dimensions={{1}}, to_apply=add
      ROOT l = {r} logistic(s)
    }}"""
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal((40, 30)).astype(by_name(dtype).numpy) for _ in range(2))
    module = parse_hlo(text)
    outputs = evaluate(module, x, y)
    (limit,) = estimate_errors(module, x, y, outputs=outputs, op_ulp_bound=push_ulps)
    assert (limit > 0).all()
    for seed in range(30):
        with pushed(dtype, seed):
            (kernel,) = evaluate(module, x, y)
        assert within_bounds(kernel, outputs[0], limit, by_name(dtype)).all(), seed


def test_exact_ops_are_estimated_exact() -> None:
    text = "HloModule m\nENTRY e {\n x = f32[9] parameter(0)\n y = f32[9] sqrt(x)\n ROOT r = f32[9] divide(y, x)\n}"
    x = np.linspace(0.1, 1, 9, dtype=np.float32)
    module = parse_hlo(text)
    (limit,) = estimate_errors(module, x, outputs=evaluate(module, x), op_ulp_bound=bound)
    assert not limit.any()


def test_a_discrete_result_in_doubt_has_no_limit() -> None:
    """floor(4 * exp(0)) as an integer may be 3 or 4."""
    text = """HloModule m
    ENTRY e {
      x = f32[2] parameter(0)
      e = f32[2] exponential(x)
      k = f32[] constant(4)
      b = f32[2] broadcast(k), dimensions={}
      m = f32[2] multiply(e, b)
      ROOT r = s32[2] convert(m)
    }"""
    module, x = parse_hlo(text), np.array([0.0, 0.1], np.float32)
    (limit,) = estimate_errors(module, x, outputs=evaluate(module, x), op_ulp_bound=push_ulps)
    assert limit.tolist() == [np.inf, 0]


def test_an_op_without_a_rule_leaves_everything_open() -> None:
    """A reduction whose combiner is several float ops: its order is open, and no rule says what that does."""
    text = """HloModule m
    f {
      a = f32[] parameter(0)  b = f32[] parameter(1)
      c = f32[] multiply(a, b)  ROOT r = f32[] add(c, b)
    }
    ENTRY e {
      x = f32[3,4] parameter(0)
      z = f32[] constant(0)
      ROOT r = f32[3] reduce(x, z), dimensions={1}, to_apply=f
    }"""
    module, x = parse_hlo(text), np.ones((3, 4), np.float32)
    (limit,) = estimate_errors(module, x, outputs=evaluate(module, x), op_ulp_bound=bound)
    assert np.isinf(limit).all()


def test_estimates_repeat_themselves() -> None:
    module, x, weights = _deep()
    outputs = evaluate(module, x, *weights)
    first, again = (estimate_errors(module, x, *weights, outputs=outputs, op_ulp_bound=bound, runs=2) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])


# Training steps of real programs

STEPS = ("mlp_sgd_step", "conv_net_gradient", "transformer_adam_step")
needs_jax = pytest.mark.skipif(not dump.available(), reason=dump.REASON)


@pytest.fixture(scope="module")
def steps(pytestconfig: pytest.Config) -> list[tuple[Dump, HloModule]]:
    return [(d, parse_hlo(d.text)) for d in dump.load(pytestconfig.cache) if d.name in STEPS]


def _useful(outputs: Sequence[Array], limits: Sequence[Array]) -> float:
    """The part of the float elements whose limit is below a hundredth of them (of NaN and zeros: 0)."""
    good = count = 0
    for output, limit in zip(outputs, limits, strict=True):
        if output.dtype.kind == "f":
            size = np.where(np.isnan(output), 0.0, np.abs(output).astype(np.float64))
            good += int(((limit < 1e-2 * size) | (limit == 0)).sum())
            count += output.size
    return good / count


@pytest.mark.slow
@needs_jax
def test_training_steps_have_useful_limits(steps: list[tuple[Dump, HloModule]]) -> None:
    for each, module in steps:
        outputs, limits, _ = evaluate_with_limits(module, *each.inputs, op_ulp_bound=bound)
        assert _useful(outputs, limits) >= 0.95, each.id
        if each.name != "transformer_adam_step":  # its state holds variances: random ones are negative
            leaves = [leaf for p in module.entry.parameters for leaf in array_leaves(p.shape)]
            tame = [random_array(s.dtype, s.dims, parameter=i, profile=Profile.TAME) for i, s in enumerate(leaves)]
            outputs, limits, _ = evaluate_with_limits(module, *tame, op_ulp_bound=bound)
            assert _useful(outputs, limits) >= 0.95, each.id


XLA_ULPS = 8
"""XLA:CPU's own functions are off by at most so many ulp (`test_evaluator_xla`)."""


FLUSHED = 2.0**-126
"""XLA:CPU takes f32 numbers below it for zeros."""


def _xla_ulps(opcode: str, dtype: DType) -> float:
    return max(bound(opcode, dtype), XLA_ULPS) if bound(opcode, dtype) else 0


@pytest.mark.slow
@needs_jax
def test_what_jax_computes_lies_inside(steps: list[tuple[Dump, HloModule]]) -> None:
    for each, module in steps:
        outputs, limits, _ = evaluate_with_limits(module, *each.inputs, op_ulp_bound=_xla_ulps)
        types = [leaf.dtype for leaf in module.entry.root.shape.leaves()]
        for theirs, ours, limit, dtype in zip(each.outputs, outputs, limits, types, strict=True):
            assert within_bounds(theirs, ours, limit + FLUSHED, dtype).all(), each.id


MISTAKES = (
    ("constant(1e-05)", "constant(0.0001)"),  # the normalisation's epsilon
    ("constant(0.044715)", "constant(0.0447)"),  # GELU's cubic term
    ("constant(0.797884583)", "constant(0.798)"),
    (" tanh(", " logistic("),
    (" rsqrt(", " sqrt("),
    ("constant(0.999)", "constant(0.9991)"),  # the decay of Adam's second moment
)


@pytest.mark.slow
@needs_jax
@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_small_mistakes_in_a_transformer_step_are_outside(
    steps: list[tuple[Dump, HloModule]], right: str, wrong: str
) -> None:
    """With sure bounds alone nearly any result would pass."""
    (each,) = [d for d, _ in steps if d.id == "transformer_adam_step-before"]
    assert right in each.text
    module, mistaken = parse_hlo(each.text), parse_hlo(each.text.replace(right, wrong))
    outputs, limits, _ = evaluate_with_limits(module, *each.inputs, op_ulp_bound=bound)
    types = [leaf.dtype for leaf in module.entry.root.shape.leaves()]
    found = evaluate(mistaken, *each.inputs)
    inside = [within_bounds(*four).all() for four in zip(found, outputs, limits, types, strict=True)]
    assert not all(inside)


def test_large_results_keep_their_sure_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take many evaluations of millions of elements isn't done."""
    module, x, weights = _deep()
    inputs = [x, *weights]
    assert any(each.any() for each in evaluate_with_limits(module, *inputs, op_ulp_bound=bound)[2])
    monkeypatch.setattr(estimate, "_MOST_ELEMENTS", ROWS * WIDTH - 1)
    outputs, limits, estimated = evaluate_with_limits(module, *inputs, op_ulp_bound=bound)
    assert not any(each.any() for each in estimated)
    sure = evaluate_with_bounds(module, *inputs, op_ulp_bound=bound)
    for mine, theirs in zip((*outputs, *limits), (*sure[0], *sure[1]), strict=True):
        np.testing.assert_array_equal(mine, theirs)
