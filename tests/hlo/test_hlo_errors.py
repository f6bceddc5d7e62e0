"""Bad HLO text is refused at the place where it is wrong, with the cause and the next step."""

from __future__ import annotations

import pytest

from warpsmith.errors import (
    BadAttribute,
    BadLiteral,
    DuplicateName,
    HloSyntaxError,
    InvalidHlo,
    UnknownDType,
    UnknownName,
    UnknownOpcode,
    WarpsmithError,
)
from warpsmith.hlo import parse_hlo

# Each text marks the place of its error with `@` in front; the mark is taken out before parsing.
MALFORMED: list[tuple[str, type[WarpsmithError], str, str]] = [
    ("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] @tahn(x) }", UnknownOpcode, "'tahn'", "'tanh'"),
    ("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] @frobnicate }", UnknownOpcode, "'frobnicate'", ""),
    ("ENTRY e { x = @f33[2] parameter(0) }", UnknownDType, "'f33'", "'f32'"),
    ("ENTRY e { x = (f32[2], @bf61[]) parameter(0) }", UnknownDType, "'bf61'", "'bf16'"),
    ("ENTRY e { input = f32[2] parameter(0) ROOT y = f32[2] negate(@inptu) }", UnknownName, "'inptu'", "'input'"),
    ("ENTRY e { %x = f32[2] parameter(0) ROOT %y = f32[2] add(%x, @%w) }", UnknownName, "'w'", ""),
    (
        "ENTRY e { y = f32[2] negate(@x) x = f32[2] parameter(0) }",
        InvalidHlo,
        "before it is defined",
        "after its operands",
    ),
    ("ENTRY e { y = f32[2] negate(@y) }", InvalidHlo, "'y' uses itself", ""),
    ("ENTRY e { x = f32[2] parameter(0) @x = f32[2] negate(x) }", DuplicateName, "instruction 'x'", "line 1"),
    ("c { x = f32[] parameter(0) }\n@c { x = f32[] parameter(0) }", DuplicateName, "computation 'c'", "line 1"),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] @add(x) }", HloSyntaxError, "add takes 2 operands, 'y' has 1", ""),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] @tanh(x, x) }", HloSyntaxError, "takes 1 operand", ""),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] @iota(x), iota_dimension=0 }", HloSyntaxError, "no operands", ""),
    (
        "b { x = f32[] parameter(0) }\nENTRY e { x = f32[] parameter(0) y = f32[] fusion(x), kind=kLoop, calls=@bb }",
        UnknownName,
        "unknown computation 'bb'",
        "'b'",
    ),
    ("a { x = f32[] parameter(0) y = f32[] call(x), to_apply=@a }", InvalidHlo, "calls itself", "no recursion"),
    (
        "a { x = f32[] parameter(0) y = f32[] call(x), to_apply=b }\n"
        "b { x = f32[] parameter(0) y = f32[] call(x), to_apply=@a }",
        InvalidHlo,
        "'a' calls itself through 'b'",
        "no recursion",
    ),
    ("ENTRY @e { x = f32[] parameter(0) y = f32[] parameter(2) }", InvalidHlo, "none with number 1", "without gaps"),
    (
        "ENTRY e { x = f32[] parameter(0) @y = f32[] parameter(0) }",
        InvalidHlo,
        "two parameters with number 0",
        "repeats",
    ),
    ("ENTRY e { x = f32[] parameter(@-1) }", HloSyntaxError, "can't be negative", ""),
    ("ENTRY e { x = f32[2,3]@{0,0} parameter(0) }", InvalidHlo, "layout {0,0} isn't a permutation", "{1,0}"),
    ("ENTRY e { x = f32[2,3]@{1} parameter(0) }", InvalidHlo, "layout {1} isn't a permutation", "{1,0}"),
    ("ENTRY e { x = f32[2]{0:@Q(3)} parameter(0) }", HloSyntaxError, "expected a layout field", "T, L"),
    ("ENTRY e { x = f32[@-2] parameter(0) }", HloSyntaxError, "negative", "<=N"),
    ("ENTRY e { x = f32[2,@] parameter(0) }", HloSyntaxError, "expected a dimension", ""),
    ("ENTRY e { x = f32@(2) parameter(0) }", HloSyntaxError, "expected '[' after element type 'f32'", ""),
    ("ENTRY e { x = f32[2] constant({1, 2@, 3}) }", BadLiteral, "has 2 elements, at least 3 are given", ""),
    ("ENTRY e { x = f32[2,2] constant({{1, 2}, {3@}}) }", BadLiteral, "dimension 1 of f32[2,2] has 2 elements, 1", ""),
    ("ENTRY e { x = f32[2] constant({@{1}, 2}) }", BadLiteral, "expected an element", ""),
    ("ENTRY e { x = s32[2] constant({1, @1.5}) }", BadLiteral, "'1.5' isn't an integer", ""),
    ("ENTRY e { x = u8[] constant(@256) }", BadLiteral, "out of the range of u8, [0, 255]", ""),
    ("ENTRY e { x = f16[] constant(@65520) }", BadLiteral, "out of the range of f16, [-65504, 65504]", ""),
    ("ENTRY e { x = f32[] constant(@abc) }", BadLiteral, "'abc' isn't a number", ""),
    ("ENTRY e { x = pred[] constant(@maybe) }", BadLiteral, "isn't a pred", ""),
    ("ENTRY e { x = c64[] constant(@1) }", BadLiteral, "(real, imaginary)", ""),
    ("ENTRY e { x = f8e4m3fn[] constant(@nan(0x1)) }", BadLiteral, "NaN payload", ""),
    ("ENTRY e { x = token[] constant(@0) }", BadLiteral, "can't be of type token[]", ""),
    ("ENTRY e { x = f32[] constant(1 @}", HloSyntaxError, "')' after a constant's value", ""),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x), @dimensions={0} }",
        BadAttribute,
        "'dimensions'",
        "known here",
    ),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), @dimension={0} }",
        BadAttribute,
        "unknown attribute of reverse",
        "'dimensions'",
    ),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] @reverse(x) }",
        BadAttribute,
        "needs the attribute 'dimensions'",
        "",
    ),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimensions={0}, @dimensions={0} }",
        BadAttribute,
        "given twice",
        "",
    ),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimensions=@0 }", BadAttribute, "in braces", ""),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] reverse(x), dimensions={0@ }", HloSyntaxError, "", ""),
    ("ENTRY e { x = f32[2] iota(), iota_dimension=@zero }", HloSyntaxError, "expected an integer", ""),
    ("ENTRY e { x = f32[2] parameter(0) y = pred[2] compare(x, x), direction=@LESS }", BadAttribute, "EQ, NE, LT", ""),
    (
        "ENTRY e { x = f32[2] parameter(0) y = pred[2] compare(x, x), direction=@TL }",
        BadAttribute,
        "EQ, NE, LT",
        "'LT'",
    ),
    (
        "b { x = f32[] parameter(0) }\nENTRY e { x = f32[] parameter(0) y = f32[] fusion(x), kind=@kLopo, calls=b }",
        BadAttribute,
        "kLoop, kInput",
        "'kLoop'",
    ),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] convolution(x, x), window={@szie=2}, dim_labels=0_0->0 }",
        BadAttribute,
        "a window field",
        "'size'",
    ),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[1] slice(x), slice={@0:1} }", BadAttribute, "[start:limit]", ""),
    (
        "ENTRY e { x = f32[2] parameter(0) z = f32[] constant(0) y = f32[2] pad(x, z), padding=@1 }",
        BadAttribute,
        "padding",
        "",
    ),
    (
        "a { x = f32[] parameter(0) y = f32[] parameter(1) r = f32[] add(x, y) }\n"
        "ENTRY e { x = f32[2] parameter(0) z = f32[] constant(0) "
        "y = f32[2] reduce-window(x, z), window=@{size=2 stride=1x1}, to_apply=a }",
        BadAttribute,
        "'stride' has 2 dimensions, 'size' has 1",
        "",
    ),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x), @}", HloSyntaxError, "an attribute (name=value)", ""),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x) garbage @}", HloSyntaxError, "'=' after 'garbage'", ""),
    ("ENTRY e { x = f32[2] parameter(0) }\n@)", HloSyntaxError, "a computation's name", ""),
    ("ENTRY e { x = f32[2] parameter(0)@", HloSyntaxError, "the text ends inside computation 'e'", "}"),
    ("ENTRY e { x @: f32[2] parameter(0) }", HloSyntaxError, "expected '=' after 'x'", ""),
    ("ENTRY @e { }", HloSyntaxError, "has no instruction", ""),
    ("ENTRY e { ROOT x = f32[2] parameter(0) ROOT @y = f32[2] negate(x) }", HloSyntaxError, "two ROOT", ""),
    (
        "ENTRY e { x = f32[] parameter(0) }\nENTRY @d { x = f32[] parameter(0) }",
        InvalidHlo,
        "both marked ENTRY",
        "one entry",
    ),
    (
        "ENTRY e { x = f32[2] parameter(0) y = @reshape(x) }",
        HloSyntaxError,
        "'y' has no result shape",
        "f32[...] reshape(",
    ),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] abs(@constant(1)) }",
        HloSyntaxError,
        "has no result shape",
        "f32[...] constant(",
    ),
    ("ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(x@; }", HloSyntaxError, "',' or ')' after an operand", ""),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[2] negate(@f32[3] x) }",
        InvalidHlo,
        "written as f32[3] but is f32[2]",
        "",
    ),
    (
        'ENTRY e { x = f32[] parameter(0) y = f32[2] negate(x), backend_config=@"abc }',
        HloSyntaxError,
        "isn't closed",
        "",
    ),
    ("ENTRY e { x = f32[] parameter(0) y = f32[] negate(x), sharding=@{a", HloSyntaxError, "never closed", ""),
    ("ENTRY e { x = f32[] parameter(0) @/* }", HloSyntaxError, "comment isn't closed", "*/"),
    (
        "HloModule m, @is_schduled=true\nENTRY e { x = f32[] parameter(0) }",
        BadAttribute,
        "header field",
        "'is_scheduled'",
    ),
    ("HloModule m\n@", HloSyntaxError, "no computation", "ENTRY"),
    ("ENTRY e (x: f32[2]) -> @f32[3] { x = f32[2] parameter(0) }", InvalidHlo, "ends in f32[3]", ""),
    (
        "ENTRY e { x = f32[2] parameter(0) y = f32[3] @broadcast(x) }",
        InvalidHlo,
        "needs the attribute 'dimensions'",
        "",
    ),
    ("ENTRY e { x = f32[2] constant(@{1, 2, }", BadLiteral, "", ""),
    (
        "ENTRY e { x = f32[99999999999999999999999] parameter(0) }".replace("[9", "[@9", 1),
        HloSyntaxError,
        "64 bits",
        "",
    ),
    ("ENTRY e { x = f32[9999999999,9999999999] constant(@0) }", BadLiteral, "too large", ""),
]


def marked(text: str) -> tuple[str, int, int]:
    """The text without its `@`, and the line and column of what followed it."""
    before, _, after = text.partition("@")
    return before + after, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


@pytest.mark.parametrize(("text", "kind", "cause", "help_text"), MALFORMED, ids=range(len(MALFORMED)))
def test_the_error_names_place_cause_and_next_step(
    text: str, kind: type[WarpsmithError], cause: str, help_text: str
) -> None:
    clean, line, column = marked(text)
    with pytest.raises(WarpsmithError) as caught:
        parse_hlo(clean, "bad.hlo")
    error = caught.value
    assert type(error) is kind, str(error)
    assert error.span is not None
    if cause:
        assert (error.span.file, error.span.line, error.span.column) == ("bad.hlo", line, column), str(error)
    assert cause in error.cause
    assert help_text in (error.help or "")
    shown = str(error).splitlines()
    assert shown[0].startswith(f"bad.hlo:{error.span.line}:{error.span.column}: error[{kind.code}]: ")


def test_the_caret_stands_under_the_word() -> None:
    with pytest.raises(UnknownOpcode) as caught:
        parse_hlo("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  t = f32[4] tahn(x)\n}\n", "gelu.hlo")
    assert str(caught.value) == (
        "gelu.hlo:4:14: error[WS0203]: unknown opcode 'tahn'\n"
        "  4 |   t = f32[4] tahn(x)\n"
        "    |              ^^^^\n"
        "  help: did you mean 'tanh'?"
    )


@pytest.mark.parametrize("opening", ["(", "b(", "(f32[2], ("])
def test_deep_nesting_is_refused(opening: str) -> None:
    with pytest.raises(WarpsmithError):
        parse_hlo("ENTRY e { x = " + opening * 50_000)


@pytest.mark.parametrize("text", ["{" * 50_000, "{a=" * 50_000, "{{0}" * 10_000])
@pytest.mark.parametrize("attribute", ["sharding", "metadata", "frontend_attributes", "backend_config", "origin"])
def test_deep_nesting_in_attributes_is_refused(attribute: str, text: str) -> None:
    with pytest.raises(WarpsmithError):
        parse_hlo(f"ENTRY e {{ x = f32[] parameter(0), {attribute}={text}")
