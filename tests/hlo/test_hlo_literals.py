"""Constants are rounded once, and print as XLA prints them."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from warpsmith.dtypes import BY_NAME
from warpsmith.errors import BadLiteral
from warpsmith.hlo import Literal, Shape, TupleShape, parse_hlo, verify_module
from warpsmith.hlo.builder import ComputationBuilder, build_module
from warpsmith.hlo.shapes import array
from warpsmith.hlo.text.literals import SPLAT_LIMIT, literal_text


def read(shape: str, value: str) -> Literal:
    literal = parse_hlo(f"ENTRY e {{ c = {shape} constant({value}) }}").entry.root.literal
    assert literal is not None
    return literal


# Shape, text as written, text as XLA 0.10 (jaxlib 0.10.2) prints it back.
XLA_PRINTS = [
    ("f32[]", "nan", "nan"),
    ("f32[]", "-nan", "-nan"),
    ("f32[]", "nan(0x1)", "nan(0x1)"),
    ("f32[]", "-nan(0x1)", "-nan(0x1)"),
    ("f32[]", "nan(0x200001)", "nan(0x200001)"),
    ("f64[]", "nan(0x123)", "nan(0x123)"),
    ("bf16[]", "nan(0x60)", "nan(0x60)"),
    ("f16[]", "nan(0x201)", "nan(0x201)"),
    ("f8e5m2[]", "nan(0x3)", "nan(0x3)"),
    ("f8e4m3[]", "nan(0x5)", "nan(0x5)"),
    ("f8e3m4[]", "nan", "nan"),
    ("f8e4m3fn[]", "nan", "nan"),
    ("f8e4m3fnuz[]", "nan", "-nan"),
    ("f8e4m3b11fnuz[]", "nan", "-nan"),
    ("f8e8m0fnu[]", "nan", "nan"),
    ("f8e8m0fnu[]", "3", "4"),
    ("f4e2m1fn[]", "7", "6"),
    ("f32[]", "-inf", "-inf"),
    ("f32[]", "3.40282347e38", "3.40282347e+38"),
    ("f16[]", "65519", "65504"),
    ("f8e4m3fn[]", "460", "448"),
    ("f8e4m3fn[]", "inf", "nan"),
    ("f32[]", "0.3333333432674408", "0.333333343"),
    ("f32[]", "100000000", "1e+08"),
    ("f32[]", "16777217", "16777216"),
    ("f32[]", "1e-45", "1.4013e-45"),
    ("f32[]", "123456.7", "123456.703"),
    ("f32[]", "-0.0", "-0"),
    ("f64[]", "0.30000000000000004", "0.30000000000000004"),
    ("f64[]", "123456789012345678", "1.2345678901234568e+17"),
    ("f64[]", "123456789012345.6", "123456789012345.59"),
    ("f64[]", "5e-324", "4.94065645841247e-324"),
    ("bf16[]", "0.0447", "0.04468"),
    ("bf16[]", "123456", "1.234e+05"),
    ("f16[]", "0.7978845608", "0.79785"),
    ("f8e4m3fn[8]", "{0.1,0.3,1.1,3.3,5.7,0.017,0.5,6}", "{0.102, 0.312, 1.12, 3.25, 5.5, 0.0176, 0.5, 6}"),
    ("f8e5m2[8]", "{0.1,0.3,1.1,3.3,5.7,0.017,0.5,6}", "{0.094, 0.31, 1, 3.5, 6, 0.016, 0.5, 6}"),
    ("f8e3m4[8]", "{0.1,0.3,1.1,3.3,5.7,0.017,0.5,6}", "{0.0938, 0.297, 1.12, 3.25, 5.75, 0.0156, 0.5, 6}"),
    ("f8e5m2fnuz[8]", "{0.1,0.3,1.1,3.3,5.7,0.017,0.5,6}", "{0.094, 0.31, 1, 3.5, 6, 0.016, 0.5, 6}"),
    ("f4e2m1fn[8]", "{0.1,0.3,1.1,3.3,5.7,0.017,0.5,6}", "{0, 0.5, 1, 3, 6, 0, 0.5, 6}"),
    ("f8e8m0fnu[8]", "{0.1,0.3,1.1,3.3,5.7,0.017,0.5,6}", "{0.12, 0.25, 1, 4, 4, 0.016, 0.5, 8}"),
    ("pred[]", "1", "true"),
    ("pred[2]", "{true, false}", "{1, 0}"),
    ("s32[]", "-2147483648", "-2147483648"),
    ("u64[]", "18446744073709551615", "18446744073709551615"),
    ("s4[2]", "{-8,7}", "{-8, 7}"),
    ("s2[2]", "{-2,1}", "{-2, 1}"),
    ("u2[]", "3", "3"),
    ("c64[2]", "{(0.1,0.333333343),(1e10,-0.0)}", "{(0.1, 0.333333343), (1e+10, -0)}"),
    ("c128[]", "(0.1,0)", "(0.1, 0)"),
    ("f32[2,3]", "{{1,2,3},{4,5,6}}", "{ { 1, 2, 3 }, { 4, 5, 6 } }"),
    ("f32[2,1,2]", "{{{1,2}},{{3,4}}}", "{ { { 1, 2 } }, { { 3, 4 } } }"),
    ("s32[1,1]", "{{2}}", "{ {2} }"),
    ("f32[0]", "{}", "{}"),
    ("f32[2,0]", "{{},{}}", "{ {}, {} }"),
    ("f32[0,2]", "{}", "{  }"),
    ("f32[2,0,1,3]", "{{},{}}", "{ { /*i0=0*/ }, { /*i0=1*/ } }"),
    ("f32[1,2,1,2]", "{{{{1,2}},{{3,4}}}}", "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 3, 4 } } } }"),
    ("f32[4]", "0", "{0, 0, 0, 0}"),
    ("f32[2]", "{ 1, /*i=1*/ 2 }", "{1, 2}"),
    ("(f32[], s32[2])", "(1, {2,3})", "( 1, {2, 3} )"),
    ("((f32[]), s32[])", "((1), 2)", "( ( 1 ), 2 )"),
    ("()", "()", "(  )"),
]


@pytest.mark.parametrize(("shape", "written", "printed"), XLA_PRINTS, ids=[f"{s} {w}" for s, w, _ in XLA_PRINTS])
def test_literals_print_as_xla_prints_them(shape: str, written: str, printed: str) -> None:
    literal = read(shape, written)
    assert literal_text(literal) == printed
    assert read(shape, printed) == literal


NARROW = ["f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2", "f8e5m2fnuz", "f16", "bf16"]
BITS: dict[str, Any] = {"f32": np.uint32, "f16": np.uint16, "bf16": np.uint16}


def neighbours(name: str, rng: random.Random) -> tuple[Fraction, Fraction, int]:
    """Two adjacent positive finite values of a type, exact, and the bits of the lower."""
    numpy = BY_NAME[name].numpy
    bits = BITS.get(name, np.uint8)
    while True:
        pattern = rng.randrange(1, 1 << (BY_NAME[name].bits - 1))
        pair = np.array([pattern, pattern + 1], bits).view(numpy).astype(np.float64)
        if np.isfinite(pair).all() and 0 <= pair[0] < pair[1]:
            return Fraction(float(pair[0])), Fraction(float(pair[1])), pattern


def decimal(value: Fraction) -> str:
    """A binary fraction's exact decimal digits."""
    scale = value.denominator.bit_length() - 1
    digits = str(value.numerator * 5**scale)
    return f"{digits}e-{scale}"


@pytest.mark.parametrize("name", [*NARROW, "f32"])
def test_decimal_text_is_rounded_once_to_nearest_even(name: str) -> None:
    """A tie goes to the even neighbour; a text a hair off the tie doesn't, though its double may lie on it."""
    rng = random.Random(name)
    numpy, bits = BY_NAME[name].numpy, BITS.get(name, np.uint8)
    texts: list[str] = []
    expected: list[int] = []
    for _ in range(40):
        low, high, pattern = neighbours(name, rng)
        tie = (low + high) / 2
        hair = (high - low) / 2**80
        for value, wanted in (
            (low, pattern),
            (tie, pattern + (pattern & 1)),
            (tie - hair, pattern),
            (tie + hair, pattern + 1),
        ):
            texts.append(decimal(value))
            expected.append(wanted)
    literal = read(f"{name}[{len(texts)}]", "{" + ",".join(texts) + "}")
    assert literal.array.dtype == numpy
    assert literal.array.view(bits).tolist() == expected


@pytest.mark.parametrize("name", [*NARROW, "f8e8m0fnu", "f4e2m1fn"])
def test_every_value_of_a_narrow_type_survives_text(name: str) -> None:
    dtype = BY_NAME[name]
    count = 1 << dtype.bits
    values = np.arange(count).astype(BITS.get(name, np.uint8)).view(dtype.numpy)
    literal = Literal.of(values)
    again = read(f"{name}[{count}]", literal_text(literal))
    bits = BITS.get(name, np.uint8)
    assert again.array.view(bits).tolist() == values.view(bits).tolist()


def test_a_splat_takes_no_memory() -> None:
    literal = Literal.splat(array("f32", 1_000_000, 1_000_000), 0.25)
    assert literal.is_splat
    assert literal.array.shape == (1_000_000, 1_000_000)
    assert literal.array.strides == (0, 0)
    assert literal.item() == 0.25
    zeros = read("f32[1000000,1000000]", "0")
    assert zeros.is_splat
    assert literal_text(zeros) == "0"


def test_a_bare_number_is_the_first_element_as_xla_reads_it() -> None:
    """`f32[4] constant(7)` would be a splat here and [7, 0, 0, 0] in XLA."""
    assert read("f32[4]", "7").array.tolist() == [7, 0, 0, 0]
    assert read("s32[2,3]", "7").array.tolist() == [[7, 0, 0], [0, 0, 0]]
    assert read("pred[2]", "true").array.tolist() == [True, False]
    assert np.isnan(read("bf16[2]", "-nan").array.astype(np.float32)).tolist() == [True, False]
    assert read("f32[1,1]", "7").array.tolist() == [[7]]
    assert literal_text(read("f32[4]", "7")) == "{7, 0, 0, 0}"


@pytest.mark.parametrize("shape", ["f32[0]", "f32[3,0]", "c64[2]", "f32[4000000]"])
def test_a_bare_number_that_xla_refuses_or_that_would_fill_memory_is_refused(shape: str) -> None:
    """The error would be of no help without the form that fills an array."""
    with pytest.raises(BadLiteral) as caught:
        read(shape, "(1, 2)" if shape.startswith("c") else "7")
    assert "broadcast" in str(caught.value)


def test_a_splat_prints_in_full_while_that_is_sane() -> None:
    """Another reader would take the one number of a large splat for its first element."""
    assert literal_text(Literal.splat(array("s8", 3), 7)) == "{7, 7, 7}"
    assert literal_text(Literal.splat(array("s8", SPLAT_LIMIT + 1), 0)) == "0"
    assert len(literal_text(Literal.splat(array("s8", SPLAT_LIMIT + 1), 7))) > 3 * SPLAT_LIMIT


@pytest.mark.parametrize(
    ("name", "dims", "value"),
    [("f32", (1000, 1000, 1000), 7), ("f32", (1 << 21,), -0.0), ("c64", (1 << 21,), 0), ("f32", (1 << 21, 0), 0)],
)
def test_a_large_splat_prints_as_a_broadcast(name: str, dims: tuple[int, ...], value: float) -> None:
    """Every reader must see the same values in the module's text, which must stay short."""
    builder = ComputationBuilder("main")
    builder.add("negate", None, [builder.constant(Literal.splat(array(name, *dims), value), "c")])
    module = build_module("m", builder.build())
    text = str(module)
    assert len(text) < 400
    again = parse_hlo(text)
    verify_module(again)
    root = again.entry.root
    assert (root.name, root.opcode, root.operands[0].name) == ("negate", "negate", "c")
    whole = root.operands[0]
    assert whole.opcode == "broadcast"
    assert whole.shape.without_layout() == module.entry.root.shape.without_layout()
    literal = whole.operands[0].literal
    assert literal is not None
    assert literal.splat_value.tobytes() == np.asarray(value, literal.dtype.numpy).tobytes()


def test_an_array_of_equal_elements_is_a_splat_however_it_was_made() -> None:
    made = Literal.of(np.full((2, 3), 5, np.int32))
    assert made.is_splat
    assert made == read("s32[2,3]", "{{5,5,5},{5,5,5}}") == Literal.splat(array("s32", 2, 3), 5)


def test_literals_compare_bit_for_bit() -> None:
    assert read("f32[]", "nan") == read("f32[]", "nan")
    assert read("f32[]", "nan") != read("f32[]", "nan(0x1)")
    assert read("f32[2]", "{0, 1}") != read("f32[2]", "{-0.0, 1}")
    assert read("f32[2]{0}", "{0, 1}") != read("f32[2]", "{0, 1}")
    assert read("f32[]", "0") != read("s32[]", "0")


def test_arrays_are_copied_and_locked() -> None:
    source = np.array([1.0, 2.0], np.float32)
    literal = Literal.of(source)
    source[0] = 9
    assert literal.array.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        literal.array[0] = 3
    with pytest.raises(AttributeError):
        literal.shape = array("f32")


def test_elements_are_logical_whatever_the_layout() -> None:
    literal = read("s32[2,2]{0,1}", "{{1,2},{3,4}}")
    assert literal.array.tolist() == [[1, 2], [3, 4]]


def test_hexadecimal_floats_are_exact() -> None:
    assert read("f32[]", "0x1.8p+1").item() == 3.0
    assert read("f64[2]", "{0x1p-1074, -0x1.fffffffffffffp+1023}").array.tolist() == [
        5e-324,
        -math.ldexp(2 - 2**-52, 1023),
    ]


def test_a_tuple_value_has_elements() -> None:
    literal = read("(f32[], (s32[2], pred[]))", "(1, ({2, 3}, true))")
    assert isinstance(literal.shape, TupleShape)
    assert literal.elements[1].elements[0].array.tolist() == [2, 3]
    with pytest.raises(BadLiteral):
        _ = literal.array


def test_a_large_array_reads_and_prints_quickly() -> None:
    values = np.random.default_rng(0).standard_normal((300, 400)).astype(np.float32)
    literal = Literal.of(values)
    assert (read("f32[300,400]", literal_text(literal)).array == values).all()


def test_values_that_do_not_fit_their_shape_are_refused() -> None:
    with pytest.raises(BadLiteral):
        Literal.of(np.zeros(3, np.float32), array("f32", 4))
    with pytest.raises(BadLiteral):
        Literal.of(np.zeros(3, np.float32), Shape(BY_NAME["s32"], (3,)))
