"""Large products and sorts on the host: numpy's results against the reference interpreter, in every form of the ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.arrays import Array
from warpsmith.hlo.evaluator import evaluate, evaluate_with_bounds, within_bounds
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.library.dot_and_convolution import library_function
from warpsmith.library.host import host_function
from warpsmith.library.sort import sort_function
from warpsmith.numerics.bounds import bound

NUMPY: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def normal(dims: Sequence[int], dtype: str = "f32", seed: int = 0) -> Array:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(NUMPY[dtype])


def shape(dtype: str, dims: Sequence[int]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


def agrees_within_bounds(module: HloModule, *arrays: Array) -> None:
    """The library's function of the root, element by element within the a-priori bound."""
    root = module.entry.root
    function = library_function(root)
    assert function is not None
    (actual,) = function(arrays)
    (expected,), (limit,) = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    assert np.isfinite(limit).all()
    assert within_bounds(actual, expected, limit, root.array_shape.dtype).all()


DOTS = [
    ((5, 7), (7, 3), "lhs_contracting_dims={1}, rhs_contracting_dims={0}", (5, 3)),
    ((7, 5), (3, 7), "lhs_contracting_dims={0}, rhs_contracting_dims={1}", (5, 3)),
    ((7,), (7,), "lhs_contracting_dims={0}, rhs_contracting_dims={0}", ()),
    ((4,), (3,), "", (4, 3)),
    (
        *((2, 5, 7), (7, 2, 3)),
        "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
        (2, 5, 3),
    ),
    ((5, 2, 3), (3, 4, 2), "lhs_contracting_dims={1,2}, rhs_contracting_dims={2,0}", (5, 4)),
    ((5, 0), (0, 3), "lhs_contracting_dims={1}, rhs_contracting_dims={0}", (5, 3)),
]


@pytest.mark.parametrize(("lhs", "rhs", "how", "result"), DOTS)
@pytest.mark.parametrize(
    "types", [("f32", "f32", "f32"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("f32", "f64", "f64")]
)
def test_dots(
    lhs: tuple[int, ...], rhs: tuple[int, ...], how: str, result: tuple[int, ...], types: tuple[str, str, str]
) -> None:
    a, b, c = types
    text = f"""HloModule m
ENTRY e {{
  x = {shape(a, lhs)} parameter(0)
  y = {shape(b, rhs)} parameter(1)
  ROOT r = {shape(c, result)} dot(x, y){", " + how if how else ""}
}}
"""
    agrees_within_bounds(parse_hlo(text), normal(lhs, a), normal(rhs, b, 1))


def test_an_algorithm_narrows_the_operands() -> None:
    """Else the results would be closer to the exact ones than the algorithm's are."""
    text = """HloModule m
ENTRY e {
  x = f32[4,64] parameter(0)
  y = f32[64,4] parameter(1)
  ROOT r = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_f32
}
"""
    agrees_within_bounds(parse_hlo(text), normal((4, 64)), normal((64, 4), seed=1))


def test_integers_and_complex_numbers_are_left_to_the_interpreter() -> None:
    """Which is exact."""
    text = """HloModule m
ENTRY e {
  x = s8[4,6] parameter(0)
  ROOT r = s32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""
    root = parse_hlo(text).entry.root
    assert library_function(root) is None
    x = np.full((4, 6), -128, np.int8)
    (r,) = host_function(root)([x, x])
    assert (r == 6 * 128 * 128).all()


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[HloModule, list[Array]]:
    """Any window, labels in any order, groups of features or of the batch."""
    space = draw(st.integers(1, 3))
    groups, batches = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]))
    batch = draw(st.integers(1, 3)) * batches
    kernel_in, made = draw(st.integers(1, 3)), draw(st.integers(1, 2)) * groups * batches
    window: list[dict[str, int]] = []
    sizes: list[int] = []
    outputs: list[int] = []
    for _ in range(space):
        dim = {
            "size": draw(st.integers(1, 3)),
            "stride": draw(st.integers(1, 3)),
            "low": draw(st.integers(-1, 3)),
            "high": draw(st.integers(-1, 3)),
            "lhs_dilate": draw(st.integers(1, 3)),
            "rhs_dilate": draw(st.integers(1, 2)),
            "rhs_reversal": draw(st.integers(0, 1)),
        }
        size = draw(st.integers(1, 6))
        reach = (dim["size"] - 1) * dim["rhs_dilate"] + 1
        padded = (size - 1) * dim["lhs_dilate"] + 1 + dim["low"] + dim["high"]
        if padded < reach:
            dim["high"] += reach - padded
            padded = reach
        window.append(dim)
        sizes.append(size)
        outputs.append((padded - reach) // dim["stride"] + 1)
    digits = [str(i) for i in range(space)]
    lhs, rhs, out = ("".join(draw(st.permutations([*letters, *digits]))) for letters in ("bf", "io", "bf"))
    lhs_dims = {"b": batch, "f": kernel_in * groups, **dict(zip(digits, sizes, strict=True))}
    rhs_dims = {"i": kernel_in, "o": made, **{d: w["size"] for d, w in zip(digits, window, strict=True)}}
    out_dims = {"b": batch // batches, "f": made, **dict(zip(digits, outputs, strict=True))}
    a, b, c = (
        [dims[label] for label in labels] for labels, dims in ((lhs, lhs_dims), (rhs, rhs_dims), (out, out_dims))
    )

    def joined(name: str) -> str:
        return f"{name}=" + "x".join(str(dim[name]) for dim in window)

    pads = "pad=" + "x".join(f"{dim['low']}_{dim['high']}" for dim in window)
    parts = " ".join(
        [*map(joined, ("size", "stride")), pads, *map(joined, ("lhs_dilate", "rhs_dilate", "rhs_reversal"))]
    )
    count = f", feature_group_count={groups}, batch_group_count={batches}"
    text = f"""HloModule m
ENTRY e {{
  x = {shape("f32", a)} parameter(0)
  k = {shape("f32", b)} parameter(1)
  ROOT r = {shape("f32", c)} convolution(x, k), window={{{parts}}}, dim_labels={lhs}_{rhs}->{out}{count}
}}
"""
    return parse_hlo(text), [normal(a), normal(b, seed=1)]


@settings(max_examples=60)
@given(convolutions())
def test_convolutions(case: tuple[HloModule, list[Array]]) -> None:
    module, arrays = case
    agrees_within_bounds(module, *arrays)


def test_a_convolution_in_parts_of_the_batch_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpsmith.library import dot_and_convolution as products

    text = """HloModule m
ENTRY e {
  x = f32[7,9,9,4] parameter(0)
  k = f32[3,3,4,5] parameter(1)
  ROOT r = f32[7,9,9,5] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}
"""
    module, arrays = parse_hlo(text), [normal((7, 9, 9, 4)), normal((3, 3, 4, 5), seed=1)]
    monkeypatch.setattr(products, "_UNFOLDED_BYTES", 2 * 9 * 9 * 36 * 4)
    agrees_within_bounds(module, *arrays)


# --------------------------------------------------------------------------------------------------------------- sorts
def test_a_convolution_whose_windows_are_mostly_padding_leaves_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: 900 zeros are multiplied for each 9 elements of an image, as gradients of kernels have it."""
    text = """HloModule m
ENTRY e {
  a = f32[8,16,3,3] parameter(0)
  b = f32[1,30,30,8] parameter(1)
  ROOT c = f32[16,32,32,1] convolution(a, b), window={size=30x30 pad=29_29x29_29}, dim_labels=fb01_o01i->b01f
}
"""
    made: list[int] = []
    matmul = np.matmul

    def counted(a: Array, b: Array) -> Array:
        made.append(a.size)
        return matmul(a, b)

    monkeypatch.setattr(np, "matmul", counted)
    agrees_within_bounds(parse_hlo(text), normal((8, 16, 3, 3)), normal((1, 30, 30, 8)))
    assert sum(made) <= 900 * 16 * 9 * 8


def sort_module(comparator: str, dims: str, types: Sequence[str], dimension: int) -> HloModule:
    parameters = "\n".join(f"  p{i} = {t}[{dims}] parameter({i})" for i, t in enumerate(types))
    shapes = ", ".join(f"{t}[{dims}]" for t in types)
    names = ", ".join(f"p{i}" for i in range(len(types)))
    result = f"({shapes})" if len(types) > 1 else shapes
    return parse_hlo(
        f"HloModule m\n{comparator}\nENTRY e {{\n{parameters}\n"
        f"  ROOT r = {result} sort({names}), dimensions={{{dimension}}}, is_stable=true, to_apply=less\n}}\n"
    )


def two(types: Sequence[str]) -> str:
    return "\n".join(
        f"  {side}{i} = {t}[] parameter({2 * i + place})"
        for i, t in enumerate(types)
        for place, side in enumerate(("a", "b"))
    )


COMPARATORS = {
    "descending integers": (
        ["s32", "f32"],
        "  ROOT r = pred[] compare(a0, b0), direction=GT",
    ),
    "unsigned": (["u8"], "  ROOT r = pred[] compare(a0, b0), direction=LT"),
    "total order": (["f32", "s32"], "  ROOT r = pred[] compare(a0, b0), direction=LT, type=TOTALORDER"),
    "descending total order": (["bf16"], "  ROOT r = pred[] compare(a0, b0), direction=GT, type=TOTALORDER"),
    "a function of the key": (
        ["s32", "s32"],
        "  x = s32[] abs(a0)\n  y = s32[] abs(b0)\n  ROOT r = pred[] compare(x, y), direction=LT",
    ),
    "two keys": (
        ["s8", "f32", "s32"],
        "  first = pred[] compare(a0, b0), direction=LT\n  same = pred[] compare(a0, b0), direction=EQ\n"
        "  second = pred[] compare(a1, b1), direction=GT, type=TOTALORDER\n  tie = pred[] and(same, second)\n"
        "  ROOT r = pred[] or(first, tie)",
    ),
    "bits of the key": (
        ["f32"],
        "  x = s32[] bitcast-convert(a0)\n  y = s32[] bitcast-convert(b0)\n"
        "  ROOT r = pred[] compare(x, y), direction=LT",
    ),
}


@pytest.mark.parametrize("name", COMPARATORS)
@pytest.mark.parametrize(("dims", "dimension"), [("57", 0), ("5,31", 1), ("31,5", 0), ("3,0", 1)])
def test_sorts_by_keys_are_the_interpreters(name: str, dims: str, dimension: int) -> None:
    """Many ties, NaNs, infinities and both zeros: order, and the order of equals, agree."""
    types, body = COMPARATORS[name]
    module = sort_module(f"less {{\n{two(types)}\n{body}\n}}\n", dims, types, dimension)
    function = sort_function(module.entry.root)
    assert function is not None
    sizes = [int(each) for each in dims.split(",")]
    rng = np.random.default_rng(7)
    arrays: list[Array] = []
    for t in types:
        if t in ("f32", "bf16"):
            special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1, 2, -1], NUMPY[t])
            arrays.append(special[rng.integers(0, len(special), sizes)])
        else:
            arrays.append(
                rng.integers(0 if t == "u8" else -3, 4, sizes).astype({"s32": "i4", "s8": "i1", "u8": "u1"}[t])
            )
    for mine, expected in zip(function(arrays), evaluate(module, *arrays), strict=True):
        assert mine.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "body",
    [
        "  ROOT r = pred[] compare(a0, b0), direction=LT",  # NaN isn't ordered
        "  ROOT r = pred[] compare(b0, a0), direction=LT, type=TOTALORDER",  # the sides are swapped
        "  x = f32[] negate(a0)\n  ROOT r = pred[] compare(x, b0), direction=LT, type=TOTALORDER",
        "  x = s32[] constant(1)\n  y = s32[] constant(2)\n  ROOT r = pred[] compare(x, y), direction=LT",
        "  ROOT r = pred[] compare(a0, b0), direction=LE, type=TOTALORDER",
    ],
)
def test_other_comparators_are_left_to_the_interpreter(body: str) -> None:
    """Whose merge sort asks the comparator itself."""
    module = sort_module(f"less {{\n{two(['f32'])}\n{body}\n}}\n", "9", ["f32"], 0)
    assert sort_function(module.entry.root) is None
    x = np.array([3, 1, 2, 9, 8, 7, 4, 6, 5], np.float32)
    assert (host_function(module.entry.root)([x])[0] == evaluate(module, x)[0]).all()
