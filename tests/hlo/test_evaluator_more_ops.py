"""Ops that few programs hold: select-and-scatter, batch norms, transforms, factorisations, topk, collectives of one.

Expected values come from XLA:CPU where it is there, and from definitions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hlo import oracle

from warpsmith.arrays import Array
from warpsmith.errors import InvalidHlo, StepLimit, UnsupportedHlo
from warpsmith.hlo.evaluator import Value, evaluate, evaluate_with_bounds
from warpsmith.hlo.evaluator.values import leaves
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound

needs_xla = pytest.mark.skipif(not oracle.available(), reason=oracle.REASON)


def entry(*lines: str, before: str = "") -> str:
    return f"HloModule m\n{before}\nENTRY e {{\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"


def normal(*dims: int, seed: int = 0, dtype: str = "float32") -> Array:
    rng = np.random.default_rng([seed, *dims])
    values = rng.standard_normal(dims)
    return (values + 1j * rng.standard_normal(dims) if dtype.startswith("complex") else values).astype(dtype)


def positive_definite(*batch: int, size: int, dtype: str = "float32") -> Array:
    a = normal(*batch, size, size, dtype=dtype)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + size * np.eye(size)).astype(dtype)


Job = tuple[str, Sequence[Array]]


def agree_with_xla(jobs: Sequence[Job], tolerance: float) -> None:
    """Within `tolerance` of the largest number of each array; integers exactly."""
    for (text, arrays), theirs in zip(jobs, oracle.run_all(jobs), strict=True):
        assert not isinstance(theirs, str), theirs
        for mine, xla in zip(evaluate(parse_hlo(text), *arrays), theirs, strict=True):
            assert (mine.dtype, mine.shape) == (xla.dtype, xla.shape), text
            if mine.dtype.kind in "biu":
                assert (mine == xla).all(), text
            else:
                scale = max(1.0, float(np.max(np.abs(xla), where=np.isfinite(xla), initial=0)))
                np.testing.assert_allclose(mine, xla, rtol=0, atol=tolerance * scale, err_msg=text)


SCALARS = """ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
lower {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] minimum(a, b)
}
"""


def scatter_windows(window: str, source: str, scatter: str = "add", select: str = "ge") -> str:
    return entry(
        "x = f32[6,7] parameter(0)",
        f"s = {source} parameter(1)",
        "z = f32[] constant(0.5)",
        f"ROOT r = f32[6,7] select-and-scatter(x, s, z), window={window}, select={select}, scatter={scatter}",
        before=SCALARS,
    )


@pytest.mark.slow
@needs_xla
def test_select_and_scatter_agrees_with_xla() -> None:
    """Windows that overlap, that leave gaps, that reach into the padding; sums and another combiner."""
    x = normal(6, 7)
    jobs: list[Job] = [
        (scatter_windows("{size=2x2 stride=2x2}", "f32[3,3]"), [x, normal(3, 3)]),
        (scatter_windows("{size=3x3 stride=1x2}", "f32[4,3]"), [x, normal(4, 3)]),
        (scatter_windows("{size=3x2 stride=2x2 pad=1_1x0_1}", "f32[3,4]"), [x, normal(3, 4)]),
        (scatter_windows("{size=3x3 stride=1x2}", "f32[4,3]", "lower"), [x, normal(4, 3)]),
    ]
    agree_with_xla(jobs, 1e-6)


def test_of_equal_elements_a_window_picks_the_first() -> None:
    """In row-major order, as `select` with GE says; XLA:CPU walks padded windows another way."""
    text = scatter_windows("{size=3x7 stride=3x7}", "f32[2,1]")
    (r,) = evaluate(parse_hlo(text), np.zeros((6, 7), np.float32), np.array([[1], [2]], np.float32))
    assert (r[0, 0], r[3, 0]) == (1.5, 2.5)
    assert (r == 0.5).sum() == 40


@pytest.mark.slow
@needs_xla
def test_batch_norms_agree_with_xla() -> None:
    """The mean, the biased variance, and all three gradients; features first, last and between."""
    jobs: list[Job] = []
    for feature, dims in ((3, (2, 4, 4, 5)), (1, (3, 5, 4)), (0, (5, 6))):
        x, n = ",".join(map(str, dims)), dims[feature]
        arrays = [normal(*dims), normal(n, seed=1), normal(n, seed=2)]
        common = f"epsilon=0.001, feature_index={feature}"
        parameters = [f"x = f32[{x}] parameter(0)", f"a = f32[{n}] parameter(1)", f"b = f32[{n}] parameter(2)"]
        shapes = f"(f32[{x}], f32[{n}], f32[{n}])"
        jobs.append((entry(*parameters, f"ROOT r = {shapes} batch-norm-training(x, a, b), {common}"), arrays))
        more = [f"m = f32[{n}] parameter(3)", f"v = f32[{n}] parameter(4)"]
        given = [*arrays, normal(n, seed=3), np.abs(normal(n, seed=4))]
        line = f"ROOT r = f32[{x}] batch-norm-inference(x, a, b, m, v), {common}"
        jobs.append((entry(*parameters, *more, line), given))
        more = [f"v = f32[{n}] parameter(3)", f"g = f32[{x}] parameter(4)"]
        given = [arrays[0], arrays[1], arrays[2], np.abs(normal(n, seed=4)), normal(*dims, seed=5)]
        line = f"ROOT r = {shapes} batch-norm-grad(x, a, b, v, g), {common}"
        jobs.append((entry(*parameters, *more, line), given))
    agree_with_xla(jobs, 3e-6)


def transform(kind: str, operand: str, result: str, sizes: str) -> str:
    return entry(f"x = {operand} parameter(0)", f"ROOT r = {result} fft(x), fft_type={kind}, fft_length={{{sizes}}}")


@pytest.mark.slow
@needs_xla
def test_transforms_agree_with_xla() -> None:
    """All four kinds, one to three dimensions, odd and even lengths, both precisions."""
    jobs: list[Job] = [
        (transform("FFT", "c64[3,8]", "c64[3,8]", "8"), [normal(3, 8, dtype="complex64")]),
        (transform("FFT", "c64[2,3,4,5]", "c64[2,3,4,5]", "3,4,5"), [normal(2, 3, 4, 5, dtype="complex64")]),
        (transform("IFFT", "c64[7]", "c64[7]", "7"), [normal(7, dtype="complex64")]),
        (transform("RFFT", "f32[2,6,9]", "c64[2,6,5]", "6,9"), [normal(2, 6, 9)]),
        (transform("IRFFT", "c64[4,5]", "f32[4,8]", "8"), [normal(4, 5, dtype="complex64")]),
        (transform("IRFFT", "c64[4,5]", "f32[4,9]", "4,9"), [normal(4, 5, dtype="complex64")]),
        (transform("RFFT", "f64[12]", "c128[7]", "12"), [normal(12, dtype="float64")]),
    ]
    agree_with_xla(jobs, 2e-6)


@pytest.mark.slow
@needs_xla
def test_factorisations_agree_with_xla() -> None:
    """Both triangles; every side, transpose and diagonal of a solve; batches; complex numbers."""
    jobs: list[Job] = []
    for dtype, name in (("float32", "f32"), ("complex64", "c64")):
        a = positive_definite(3, size=4, dtype=dtype)
        for lower in ("true", "false"):
            inside = np.tril(a) if lower == "true" else np.triu(a)
            line = f"ROOT r = {name}[3,4,4] cholesky(a), lower={lower}"
            jobs.append((entry(f"a = {name}[3,4,4] parameter(0)", line), [inside]))
        for left, dims in (("true", (3, 4, 2)), ("false", (3, 2, 4))):
            for lower in ("true", "false"):
                for unit in ("true", "false"):
                    for transpose in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
                        shape = f"{name}[{','.join(map(str, dims))}]"
                        how = f"left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={transpose}"
                        text = entry(
                            f"a = {name}[3,4,4] parameter(0)",
                            f"b = {shape} parameter(1)",
                            f"ROOT r = {shape} triangular-solve(a, b), {how}",
                        )
                        jobs.append((text, [a / np.float32(8), normal(*dims, dtype=dtype)]))
    chosen = [*jobs[:4], *jobs[4::5]]  # XLA compiles each in a tenth of a second
    agree_with_xla(chosen, 2e-5)


def test_every_solve_solves() -> None:
    """op(A) x = b and x op(A) = b, by multiplying back; the other triangle and a unit diagonal aren't read."""
    rng = np.random.default_rng(1)
    for left in (True, False):
        for lower in (True, False):
            for unit in (True, False):
                for transpose in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
                    full = rng.standard_normal((2, 5, 5)) + 1j * rng.standard_normal((2, 5, 5)) + 6 * np.eye(5)
                    b = rng.standard_normal((2, 5, 3) if left else (2, 3, 5)).astype(np.complex128)
                    flags = f"left_side={left}, lower={lower}, unit_diagonal={unit}".lower()
                    shape = f"c128[{','.join(map(str, b.shape))}]"
                    text = entry(
                        "a = c128[2,5,5] parameter(0)",
                        f"b = {shape} parameter(1)",
                        f"ROOT r = {shape} triangular-solve(a, b), {flags}, transpose_a={transpose}",
                    )
                    (x,) = evaluate(parse_hlo(text), full, b)
                    a = np.tril(full) if lower else np.triu(full)
                    if unit:
                        a = a - a * np.eye(5) + np.eye(5)
                    turned = {"NO_TRANSPOSE": a, "TRANSPOSE": a.swapaxes(1, 2), "ADJOINT": a.conj().swapaxes(1, 2)}
                    product = turned[transpose] @ x if left else x @ turned[transpose]
                    np.testing.assert_allclose(product, b, rtol=1e-10, atol=1e-10)


def test_a_matrix_that_isnt_positive_definite_has_no_cholesky_factor() -> None:
    """NaN for that matrix of the batch, not for its neighbours."""
    a = np.stack([np.eye(3), -np.eye(3)]).astype(np.float32)
    (r,) = evaluate(parse_hlo(entry("a = f32[2,3,3] parameter(0)", "ROOT r = f32[2,3,3] cholesky(a), lower=true")), a)
    assert (r[0] == np.eye(3)).all()
    assert np.isnan(r[1]).any()


# --------------------------------------------------------------------------------------------------------- custom calls
def lapack(name: str, shapes: str, operands: Sequence[tuple[str, Array]], config: str = "") -> list[Array]:
    lines = [f"p{i} = {shape} parameter({i})" for i, (shape, _) in enumerate(operands)]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    line = (
        f'ROOT r = {shapes} custom-call({names}), custom_call_target="lapack_{name}_ffi", backend_config={{{config}}}'
    )
    return evaluate(parse_hlo(entry(*lines, line)), *[array for _, array in operands])


def test_lu_factors_and_pivots_give_the_matrix_back() -> None:
    """P A = L U with every |L| at most 1, which makes the pivots the largest; rows move as the pivots say."""
    a = normal(2, 5, 4)
    factors, pivots, info = lapack("sgetrf", "(f32[2,5,4], s32[2,4], s32[2])", [("f32[2,5,4]", a)])
    assert not info.any()
    for matrix, packed, swaps in zip(a, factors, pivots, strict=True):
        lower, upper = np.tril(packed, -1)[:, :4] + np.eye(5, 4), np.triu(packed)[:4]
        assert (np.abs(lower) <= 1).all()
        moved = matrix.copy()
        for row, other in enumerate(swaps - 1):
            moved[[row, other]] = moved[[other, row]]
        np.testing.assert_allclose(lower @ upper, moved, atol=1e-5)


def test_a_singular_matrix_says_where() -> None:
    _, _, info = lapack("sgetrf", "(f32[3,3], s32[3], s32[])", [("f32[3,3]", np.diag([1, 0, 2]).astype(np.float32))])
    assert info == 2


@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (3, 5), (4, 4), (1, 1)])
@pytest.mark.parametrize(("letter", "product", "dtype"), [("s", "sorgqr", "float32"), ("z", "zungqr", "complex128")])
def test_reflectors_give_an_orthogonal_factor(rows: int, columns: int, letter: str, product: str, dtype: str) -> None:
    """Q* Q = 1, Q R = A."""
    name, least = {"float32": "f32", "complex128": "c128"}[dtype], min(rows, columns)
    a = normal(rows, columns, dtype=dtype)
    packed, taus = lapack(
        f"{letter}geqrf", f"({name}[{rows},{columns}], {name}[{least}])", [(f"{name}[{rows},{columns}]", a)]
    )
    given = [(f"{name}[{rows},{least}]", np.ascontiguousarray(packed[:, :least])), (f"{name}[{least}]", taus)]
    (q,) = lapack(product, f"{name}[{rows},{least}]", given)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(least), atol=2e-6)
    np.testing.assert_allclose(q @ np.triu(packed)[:least], a, atol=5e-6)


def test_eigenvectors_are_orthonormal_and_in_order() -> None:
    a = positive_definite(size=5)
    vectors, values, info = lapack(
        "ssyevd", "(f32[5,5], f32[5], s32[])", [("f32[5,5]", np.tril(a))], "mode = 86 : ui8, uplo = 76 : ui8"
    )
    assert not info
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=2e-6)
    np.testing.assert_allclose(vectors * values @ vectors.T, a, rtol=1e-5, atol=1e-5)


def test_a_factor_leaves_the_other_triangle_as_it_was() -> None:
    a = positive_definite(size=4)
    for letter, code in (("l", 76), ("u", 85)):
        factor, info = lapack("spotrf", "(f32[4,4], s32[])", [("f32[4,4]", a)], f"uplo = {code} : ui8")
        assert not info
        kept = np.triu if letter == "l" else np.tril
        assert (kept(factor, 1 if letter == "l" else -1) == kept(a, 1 if letter == "l" else -1)).all()
        part = np.tril(factor) if letter == "l" else np.triu(factor).T
        np.testing.assert_allclose(part @ part.T, a, rtol=1e-5)


def test_an_unknown_custom_call_is_refused_with_the_nearest_known_one() -> None:
    text = entry("x = f32[4] parameter(0)", 'ROOT r = f32[4] custom-call(x), custom_call_target="lapack_sgetrf"')
    with pytest.raises(UnsupportedHlo, match="'lapack_sgetrf'") as caught:
        evaluate(parse_hlo(text), normal(4))
    assert "did you mean 'lapack_sgetrf_ffi'?" in str(caught.value)


@pytest.mark.parametrize(("target", "reads"), [("lapack_sorgqr_ffi", "2 operands"), ("Sharding", "1 operand,")])
def test_a_custom_call_with_too_few_operands_is_refused_by_count(target: str, reads: str) -> None:
    operands = "x" if reads[0] == "2" else ""
    text = entry(
        "x = f32[4,4] parameter(0)",
        f'ROOT r = f32[4,4] custom-call({operands}), custom_call_target="{target}"',
    )
    with pytest.raises(InvalidHlo, match=f"'{target}' reads {reads}"):
        evaluate(parse_hlo(text), normal(4, 4))


def test_markers_give_their_operand() -> None:
    text = entry("x = f32[4] parameter(0)", 'ROOT r = f32[4] custom-call(x), custom_call_target="Sharding"')
    x = normal(4)
    assert (evaluate(parse_hlo(text), x)[0] == x).all()


# ----------------------------------------------------------------------------------------------------------------- topk
@pytest.mark.parametrize(("largest", "expected"), [(True, [5, 3, 0, 4]), (False, [6, 2, 1, 7])])
def test_topk_ranks_in_total_order_first_come_first(largest: bool, expected: list[int]) -> None:
    """NaN is the greatest, -NaN the least, +0 above -0; of equal numbers the first counts."""
    x = np.array([7, -0.0, -np.inf, np.inf, 7, np.nan, -np.nan, -0.0, 0.0], np.float32)
    x[6] = np.copysign(np.nan, -1)
    text = entry(
        "x = f32[9] parameter(0)", f"ROOT r = (f32[4], s32[4]) topk(x), k=4, largest={'true' if largest else 'false'}"
    )
    values, places = evaluate(parse_hlo(text), x)
    assert places.tolist() == expected
    assert values.view(np.uint32).tolist() == x[expected].view(np.uint32).tolist()


def test_topk_of_integers_has_no_overflow() -> None:
    x = np.array([[3, -128, 127], [0, 127, -128]], np.int8)
    values, _ = evaluate(parse_hlo(entry("x = s8[2,3] parameter(0)", "ROOT r = (s8[2,2], s32[2,2]) topk(x), k=2")), x)
    assert values.tolist() == [[127, 3], [127, 0]]


# -------------------------------------------------------------------------------------------------------------- devices
ALONE = [
    "ROOT r = f32[4] all-reduce(x), replica_groups={{0}}, to_apply=add",
    "ROOT r = f32[4] all-gather(x), replica_groups={{0}}, dimensions={0}",
    "ROOT r = f32[4] reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=add",
    "ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,0}}",
    "ROOT r = f32[4] collective-broadcast(x), replica_groups={{0}}",
    "ROOT r = f32[4] all-to-all(x), replica_groups={{0}}, dimensions={0}",
    "ROOT r = f32[4] opt-barrier(x)",
    "s = f32[4] all-reduce-start(x), replica_groups={{0}}, to_apply=add\n  ROOT r = f32[4] all-reduce-done(s)",
    "s = (f32[4], f32[4]) all-gather-start(x), replica_groups={{0}}, dimensions={0}\n"
    "  ROOT r = f32[4] all-gather-done(s)",
    "s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}\n"
    "  ROOT r = f32[4] collective-permute-done(s)",
    "s = (f32[4], f32[4], u32[]) copy-start(x)\n  ROOT r = f32[4] copy-done(s)",
]


@pytest.mark.parametrize("lines", ALONE, ids=[each.split("(x)")[0].split()[-1] for each in ALONE])
def test_communication_among_one_device_changes_nothing(lines: str) -> None:
    x = normal(4)
    module = parse_hlo(entry("x = f32[4] parameter(0)", lines, before=SCALARS))
    assert (evaluate(module, x)[0] == x).all()
    _, bounds = evaluate_with_bounds(module, x, op_ulp_bound=bound)
    assert not bounds[0].any()


def test_an_asynchronous_call_gives_what_its_computation_does() -> None:
    text = entry(
        "x = f32[4] parameter(0)",
        "s = ((f32[4]), f32[4], s32[]) async-start(x), calls=negated",
        "u = ((f32[4]), f32[4], s32[]) async-update(s)",
        "ROOT r = f32[4] async-done(u)",
        before="negated {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n",
    )
    x = normal(4)
    assert (evaluate(parse_hlo(text), x)[0] == -x).all()


def test_the_only_device_is_number_0() -> None:
    text = entry("a = u32[] partition-id()", "b = u32[] replica-id()", "ROOT r = (u32[], u32[]) tuple(a, b)")
    assert [int(each) for each in evaluate(parse_hlo(text))] == [0, 0]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("ROOT r = f32[4] all-reduce(x), replica_groups={{0,1},{2,3}}, to_apply=add", "among 2 devices"),
        ("ROOT r = f32[4] all-reduce(x), replica_groups=[2,4]<=[8], to_apply=add", "among 4 devices"),
        ("ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}", "sends to other devices"),
        ("t = token[] after-all()\n  ROOT r = token[] outfeed(x, t)", "talks to the outside"),
    ],
)
def test_what_needs_others_is_refused_by_name(lines: str, why: str) -> None:
    with pytest.raises(UnsupportedHlo, match=why):
        evaluate(parse_hlo(entry("x = f32[4] parameter(0)", lines, before=SCALARS)), normal(4))


# ----------------------------------------------------------------------------------------------------- loops and traces
ENDLESS = """HloModule endless
always {
  s = s32[] parameter(0)
  ROOT r = pred[] constant(true)
}
same {
  ROOT s = s32[] parameter(0)
}
ENTRY e {
  x = s32[] parameter(0)
  ROOT r = s32[] while(x), condition=always, body=same
}
"""


def test_an_endless_loop_ends_at_the_step_limit() -> None:
    """As an error that says how many steps and where; the bounds' evaluation too."""
    module = parse_hlo(ENDLESS)
    with pytest.raises(StepLimit, match="more than 1000 instructions") as caught:
        evaluate(module, np.int32(0), step_limit=1000)
    assert "while loop" in str(caught.value)
    with pytest.raises(StepLimit):
        evaluate_with_bounds(module, np.int32(0), op_ulp_bound=bound, step_limit=1000)


COUNTING = """HloModule counting
less {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
next {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[] get-tuple-element(s), index=1
  y = f32[] exponential(x)
  ROOT t = (s32[], f32[]) tuple(j, y)
}
ENTRY e {
  i = s32[] constant(0)
  x = f32[] parameter(0)
  s = (s32[], f32[]) tuple(i, x)
  ROOT l = (s32[], f32[]) while(s), condition=less, body=next
}
"""


def test_errors_pass_through_loops_round_by_round() -> None:
    """The counter stays exact; exp(exp(exp(x))) has a bound that holds its neighbours and not much more."""
    (count, value), (exact, error) = evaluate_with_bounds(parse_hlo(COUNTING), np.float32(0.5), op_ulp_bound=bound)
    assert count == 3
    assert not exact.any()
    assert abs(float(value) - np.exp(np.exp(np.exp(0.5)))) <= float(error)
    assert float(error) < 1e-4 * float(value)


def test_a_condition_that_an_error_leaves_open_leaves_the_result_open() -> None:
    text = """HloModule open
less {
  x = f32[] parameter(0)
  n = f32[] constant(2.71828175)
  ROOT r = pred[] compare(x, n), direction=LT
}
next {
  x = f32[] parameter(0)
  ROOT y = f32[] add(x, x)
}
ENTRY e {
  x = f32[] parameter(0)
  y = f32[] exponential(x)
  ROOT l = f32[] while(y), condition=less, body=next
}
"""
    _, (error,) = evaluate_with_bounds(parse_hlo(text), np.float32(1), op_ulp_bound=bound)
    assert np.isinf(error)
    _, (error,) = evaluate_with_bounds(parse_hlo(text), np.float32(2), op_ulp_bound=bound)
    assert np.isfinite(error)


def test_a_trace_sees_each_value_of_each_round_and_no_reducers_scalars() -> None:
    seen: list[float] = []

    def note(instruction: HloInstruction, value: Value) -> None:
        if instruction.name == "y":
            seen.append(float(next(leaves(value))))

    evaluate(parse_hlo(COUNTING), np.float32(0), trace=note)
    once = np.float32(np.exp(1.0))
    assert seen == [1.0, float(once), float(np.float32(np.exp(np.float64(once))))]
    names: list[str] = []
    text = entry(
        "x = f32[4] parameter(0)",
        "z = f32[] constant(0)",
        "ROOT total = f32[] reduce(x, z), dimensions={0}, to_apply=lower",
        before=SCALARS,
    )
    evaluate(parse_hlo(text), normal(4), trace=lambda one, _: names.append(one.name))
    assert names == ["z", "total"]
