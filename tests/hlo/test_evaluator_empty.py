"""Ops on arrays of no element, and on scalars: the interpreter, native code and XLA agree."""

from __future__ import annotations

import numpy as np
import pytest
from hlo import oracle

import warpsmith as ws
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.text.literals import SPLAT_LIMIT

_WINDOW = "dim_labels=b01f_01io->b01f"

CASES = {
    "convolution of no image": (
        ["f32[0,4,4,2]", "f32[3,3,2,5]"],
        f"f32[0,2,2,5] convolution(p0, p1), window={{size=3x3}}, {_WINDOW}",
    ),
    "convolution of padding": (
        ["f32[2,0,4,2]", "f32[3,3,2,5]"],
        f"f32[2,2,2,5] convolution(p0, p1), window={{size=3x3 pad=2_2x0_0}}, {_WINDOW}",
    ),
    "convolution to no place": (
        ["f32[2,2,4,2]", "f32[3,3,2,5]"],
        f"f32[2,0,2,5] convolution(p0, p1), window={{size=3x3}}, {_WINDOW}",
    ),
    "convolution over no feature": (
        ["f32[2,4,4,0]", "f32[3,3,0,5]"],
        f"f32[2,2,2,5] convolution(p0, p1), window={{size=3x3}}, {_WINDOW}",
    ),
    "convolution to no feature": (
        ["f32[2,4,4,2]", "f32[3,3,2,0]"],
        f"f32[2,2,2,0] convolution(p0, p1), window={{size=3x3}}, {_WINDOW}",
    ),
    "convolution of groups of padding": (
        ["f32[4,0,4,2]", "f32[3,3,1,4]"],
        f"f32[4,1,2,4] convolution(p0, p1), window={{size=3x3 pad=1_2x0_0}}, {_WINDOW}, feature_group_count=2",
    ),
    "bitcast-convert to bytes": (["f32[0,4]"], "u8[0,4,4] bitcast-convert(p0)"),
    "bitcast-convert to bytes of no column": (["f32[4,0]"], "u8[4,0,4] bitcast-convert(p0)"),
    "bitcast-convert of bytes": (["u8[0,4]"], "f32[0] bitcast-convert(p0)"),
    "bitcast-convert of bytes of no column": (["u8[2,0,4]"], "f32[2,0] bitcast-convert(p0)"),
    "convert of a complex scalar": (["c64[]"], "f32[] convert(p0)"),
    **{
        f"random {dtype}[] by {algorithm}": (
            ["u64[2]"],
            f"(u64[2], {dtype}[]) rng-bit-generator(p0), algorithm={algorithm}",
        )
        for algorithm in ("rng_three_fry", "rng_philox")
        for dtype in ("u64", "u32", "u8")
    },
}


def _module(parameters: list[str], root: str) -> str:
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters)]
    return "\n".join(["HloModule m\n", "ENTRY e {", *lines, f"  ROOT r = {root}", "}\n"])


def _inputs(module: ws.HloModule) -> list[np.ndarray]:
    shapes = [each.array_shape for each in module.entry.parameters]
    return [np.arange(1, shape.elements + 1).reshape(shape.dims).astype(shape.dtype.numpy) for shape in shapes]


@pytest.mark.parametrize("name", CASES)
def test_dims_and_values_hold_where_nothing_is_to_do(name: str) -> None:
    """Numpy can't say how long the rest of an empty array is, and makes a row of a scalar."""
    module = ws.parse_hlo(_module(*CASES[name]))
    arrays = _inputs(module)
    wanted = ws.evaluate(module, *arrays)
    found = ws.compile(module)(*arrays)
    for value, native, leaf in zip(wanted, found, module.entry.root.shape.leaves(), strict=True):
        assert isinstance(leaf, Shape)
        assert np.shape(value) == np.shape(native) == leaf.dims
        np.testing.assert_array_equal(np.asarray(value), np.asarray(native))
        if name.startswith("convolution"):
            assert not np.asarray(value).any()  # a sum of nothing


@pytest.mark.skipif(not oracle.available(), reason=oracle.REASON)
def test_xla_gives_the_same() -> None:
    """The rule for a scalar of random bits is XLA's, and nobody else's."""
    texts = [_module(*case) for case in CASES.values()]
    jobs = [(text, _inputs(ws.parse_hlo(text))) for text in texts]
    compared = 0
    for (text, arrays), theirs in zip(jobs, oracle.run_all(jobs), strict=True):
        if isinstance(theirs, str):
            continue  # what XLA:CPU refuses says nothing
        compared += 1
        for ours, their in zip(ws.evaluate(ws.parse_hlo(text), *arrays), theirs, strict=True):
            np.testing.assert_array_equal(np.asarray(ours), their, err_msg=text)
    assert compared >= len(CASES) - 2


@pytest.mark.skipif(not oracle.available(), reason=oracle.REASON)
def test_constants_are_read_as_xla_reads_them() -> None:
    """A module that came from elsewhere would silently mean something else."""
    values = [
        *(("f32[4]", "7"), ("s32[2,3]", "7"), ("pred[3]", "true"), ("s4[3]", "5"), ("f32[2,3]{0,1}", "7")),
        *(("bf16[3]", "-nan"), ("f32[1,1]", "7"), ("u8[3]", "0"), (f"s8[{SPLAT_LIMIT + 1}]", "0")),
    ]
    texts = [f"HloModule m\n\nENTRY e {{\n  ROOT c = {shape} constant({value})\n}}\n" for shape, value in values]
    printed = [str(ws.parse_hlo(text)) for text in texts]
    answers = oracle.run_all([(text, []) for text in (*texts, *printed)])
    for text, theirs, again in zip(texts, answers[: len(texts)], answers[len(texts) :], strict=True):
        (ours,) = ws.evaluate(ws.parse_hlo(text))
        assert not isinstance(theirs, str), theirs
        assert not isinstance(again, str), again
        np.testing.assert_array_equal(np.asarray(ours).astype(np.float64), theirs[0].astype(np.float64), err_msg=text)
        np.testing.assert_array_equal(theirs[0].astype(np.float64), again[0].astype(np.float64))
