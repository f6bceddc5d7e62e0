"""Random modules survive text; random text never does worse than raise a WarpsmithError."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.dtypes import BY_NAME, DType, Kind
from warpsmith.errors import WarpsmithError
from warpsmith.hlo import Literal, Shape, TupleShape, parse_hlo, print_module
from warpsmith.hlo.attributes import (
    FrontendAttributes,
    OpMetadata,
    PaddingConfig,
    PaddingDim,
    SliceDim,
    Window,
    WindowDim,
)
from warpsmith.hlo.builder import ComputationBuilder, build_module, reducer
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import Layout, SplitConfig
from warpsmith.hlo.text.style import PrintStyle
from warpsmith.hlo.verifier import verify_module

HERE = Path(__file__).parent.parent / "hlo"
SEEDS = [path.read_text() for path in sorted((HERE / "xla_text").glob("*.hlo")) if path.stat().st_size < 4000]
SEEDS += [path.read_text() for path in sorted((HERE / "cases").glob("*.hlo"))]
ELEMENTS = [dtype for dtype in BY_NAME.values() if dtype.is_array_element]
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,8}", fullmatch=True)
INTS = st.integers(-(2**62), 2**62)


@st.composite
def layouts(draw: st.DrawFn, rank: int) -> Layout | None:
    if draw(st.booleans()):
        return None
    order = tuple(draw(st.permutations(range(rank))))
    if draw(st.integers(0, 3)):
        return Layout(order)
    tiles = st.tuples(st.integers(1, 128), st.integers(1, 8))
    return Layout(
        order,
        tiles=tuple(draw(st.lists(tiles, max_size=2))),
        tail_padding=draw(st.integers(1, 4)),
        element_bits=draw(st.sampled_from([0, 4, 32])),
        memory_space=draw(st.integers(0, 5)),
        splits=(SplitConfig(0, (1, 2)),) if rank and draw(st.booleans()) else (),
        metadata_bytes=draw(st.sampled_from([0, 8])),
    )


@st.composite
def shapes(draw: st.DrawFn, dtype: DType | None = None) -> Shape:
    dims = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    return Shape(dtype or draw(st.sampled_from(ELEMENTS)), dims, draw(layouts(len(dims))))


@st.composite
def literals(draw: st.DrawFn, shape: Shape) -> Literal:
    """Any bits at all that are a value of the type."""
    dtype, count = shape.dtype, shape.elements
    if dtype.kind is Kind.PRED or dtype.bits < 8:
        small = (
            st.integers(0, (1 << min(dtype.bits, 2 if dtype.bits == 2 else 4)) - 1)
            if dtype.bits < 8
            else st.integers(0, 1)
        )
        raw = np.array(draw(st.lists(small, min_size=count, max_size=count)), np.int64)
        if dtype.is_float:
            values = raw.astype(np.uint8).view(dtype.numpy)
        else:
            low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
            values = (raw + low).astype(np.int8).astype(dtype.numpy)
    else:
        data = draw(st.binary(min_size=count * dtype.bits // 8, max_size=count * dtype.bits // 8))
        values = np.frombuffer(data, dtype.numpy)
    return Literal.of(values.reshape(shape.dims), shape)


WINDOWS = st.lists(
    st.builds(
        WindowDim, st.integers(1, 3), st.integers(1, 3), st.integers(-2, 2), st.integers(-2, 2), st.integers(1, 2)
    ),
    max_size=3,
)
ATTRIBUTES: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "reverse": {"dimensions": st.lists(st.integers(0, 9), max_size=4).map(tuple)},
    "slice": {"slice": st.lists(st.builds(SliceDim, INTS, INTS, st.integers(1, 3)), max_size=3).map(tuple)},
    "get-dimension-size": {"dimensions": st.tuples(st.integers(0, 9))},
    "custom-call": {
        "custom_call_target": st.text(),
        "window": WINDOWS.map(tuple).map(Window),
        "custom_call_has_side_effect": st.booleans(),
        "operand_layout_constraints": st.lists(shapes(), max_size=2).map(tuple),
    },
    "negate": {
        "metadata": st.lists(st.tuples(NAMES, st.one_of(st.text(), INTS)), max_size=3).map(tuple).map(OpMetadata),
        "frontend_attributes": st.lists(st.tuples(NAMES, st.text()), max_size=3).map(tuple).map(FrontendAttributes),
        "backend_config": st.text(),
    },
    "rng-get-and-update-state": {"delta": INTS},
}
PADS = st.lists(
    st.builds(PaddingDim, st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 3)), min_size=1, max_size=3
)


@st.composite
def modules(draw: st.DrawFn) -> HloModule:
    """Modules that parse, whether or not their shapes mean anything."""
    builder = ComputationBuilder(draw(NAMES))
    for number in range(draw(st.integers(1, 3))):
        builder.parameter(number, draw(shapes()), draw(NAMES))
    made: list[HloInstruction] = list(builder.build().instructions)
    for _ in range(draw(st.integers(0, 6))):
        opcode = draw(st.sampled_from(["constant", "add", "tuple", "pad", "reduce", *ATTRIBUTES]))
        name, shape = draw(NAMES), draw(shapes())
        pick = st.sampled_from(made)
        if opcode == "constant":
            made.append(builder.constant(draw(literals(shape)), name))
        elif opcode == "tuple":
            made.append(builder.tuple(draw(st.lists(pick, max_size=7)), name))
        elif opcode == "add":
            made.append(builder.add("add", shape, [draw(pick), draw(pick)], name=name))
        elif opcode == "pad":
            padding = PaddingConfig(tuple(draw(PADS)))
            made.append(builder.add("pad", shape, [draw(pick), draw(pick)], {"padding": padding}, name=name))
        elif opcode == "reduce":
            called = reducer(f"{name}.sum{len(made)}", "add", Shape(BY_NAME["f32"]))
            attributes: dict[str, object] = {"dimensions": (0,), "to_apply": called}
            made.append(builder.add("reduce", shape, [draw(pick), draw(pick)], attributes, name=name))
        else:
            values = {key: draw(strategy) for key, strategy in ATTRIBUTES[opcode].items()}
            operands = [] if opcode.startswith("rng") else [draw(pick)]
            made.append(builder.add(opcode, shape, operands, values, name=name))
    entry = builder.build(draw(st.sampled_from(made)))
    return build_module(draw(NAMES), entry, {"is_scheduled": True} if draw(st.booleans()) else None)


@pytest.mark.slow
@settings(deadline=None, max_examples=120)
@given(modules(), st.booleans(), st.booleans(), st.booleans())
def test_any_module_survives_text_in_any_style(module: HloModule, percent: bool, shaped: bool, program: bool) -> None:
    text = print_module(module, PrintStyle(percent=percent, operand_shapes=shaped, program_shape=program))
    again = parse_hlo(text)
    assert again == module
    assert print_module(again, PrintStyle(percent=percent, operand_shapes=shaped, program_shape=program)) == text


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_any_literal_survives_text_bit_for_bit(data: st.DataObject) -> None:
    literal = data.draw(shapes().flatmap(literals))
    builder = ComputationBuilder("e")
    builder.constant(literal)
    assert parse_hlo(str(build_module("m", builder.build()))).entry.root.literal == literal


PIECES = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "%",
    '"',
    "/*",
    "*/",
    "//",
    "ROOT ",
    "ENTRY ",
    "\n",
    "x",
    "-1",
    "f32[2]",
]
PIECES += [
    "constant(",
    "...",
    "nan",
    "1e999",
    "999999999999999999999",
    "<=",
    "?",
    "*",
    "metadata={",
    "\\",
    "é",
    "\ud800",
]


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_text_is_read_or_refused_but_never_crashes(seed: str, data: st.DataObject) -> None:
    text = seed
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        piece = data.draw(st.one_of(st.sampled_from(PIECES), st.just(""), st.text(max_size=4)))
        text = text[:start] + piece + text[start + length :]
    try:
        module = parse_hlo(text)
        verify_module(module)
    except WarpsmithError as error:
        str(error)
        return
    assert parse_hlo(str(module)) == module


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_at_all_is_read_or_refused(text: str) -> None:
    try:
        parse_hlo(text)
    except WarpsmithError as error:
        str(error)


def test_shapes_of_tuples_survive_text() -> None:
    inner = TupleShape((Shape(BY_NAME["f32"], (2,), Layout((0,))), TupleShape(), Shape(BY_NAME["token"])))
    builder = ComputationBuilder("e")
    builder.parameter(0, TupleShape((inner,) * 7))
    module = build_module("m", builder.build())
    assert parse_hlo(str(module)) == module
