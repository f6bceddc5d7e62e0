"""Bad IR text is refused with the place, the cause and a next step, and never in another way."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir.op_samples import our_text, upstream_text
from ir.test_text_seeds import SNIPPETS

from warpsmith.errors import IrSyntaxError, WarpsmithError
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module

FUNC = "func.func @f(%x: f32, %i: index, %t: tensor<4xf32>) {\n"

# Text, line, column, a part of the cause, a part of the help.
CASES = {
    "unknown op": (FUNC + "%0 = arith.addff %x, %x : f32\n", 2, 6, "unknown op 'arith.addff'", "arith.addf"),
    "unknown dialect": ("foo.bar", 1, 1, "unknown op 'foo.bar'", ""),
    "generic unknown op": ('"foo.bar"() : () -> ()', 1, 1, "unknown op 'foo.bar'", ""),
    "undefined value": (FUNC + "%0 = arith.addf %x, %y : f32\nreturn\n}", 2, 21, "'%y' is used, but not defined", ""),
    "near name": (FUNC + "%abc = arith.negf %x : f32\n%0 = arith.negf %abd : f32\nreturn\n}", 3, 17, "'%abd'", "%abc"),
    "wrong type": (FUNC + "%0 = arith.addf %x, %i : f32\n", 2, 21, "'%i' is of type index, but is used as f32", ""),
    "twice": (FUNC + "%x = arith.negf %x : f32\n", 2, 1, "'%x' is defined twice", "line 1"),
    "missing type": (FUNC + "%0 = arith.negf %x\nreturn\n}", 3, 1, "expected ':'", ""),
    "number of results": (FUNC + "%0:2 = arith.negf %x : f32\n", 2, 8, "1 result(s), but 2 are named", ""),
    "number of operands": (FUNC + "%0 = arith.addf %x : f32\n", 2, 6, "arith.addf takes 2 operand(s), not 1", ""),
    "open region": (FUNC + "return\n", 2, 7, "the text ends inside a region", "'}' is missing"),
    "open string": ('"foo', 1, 1, "expected", "string"),
    "unknown type": (FUNC + "%0 = arith.negf %x : f33\n", 2, 22, "unknown type 'f33'", "f32"),
    "signed type": (FUNC + "%0 = arith.negf %x : si32\n", 2, 22, "'si32' has a sign", "i32"),
    "dynamic shape": ("func.func @f(%t: tensor<?xf32>) {", 1, 18, "a dynamic dimension", "static"),
    "open type": ("func.func @f(%t: tensor<4xf32", 1, 18, "isn't closed", ""),
    "memref layout": ("func.func @f(%t: memref<4xf32, strided<[2]>>) {", 1, 18, "a memref layout", "row-major"),
    "predicate": (FUNC + "%0 = arith.cmpf less, %x, %x : f32\n", 2, 17, "unknown predicate 'less'", "olt"),
    "integer for a float": (FUNC + "%0 = arith.constant 1 : f32\n", 2, 21, "is an integer, but the type is f32", "1.0"),
    "float for an integer": (FUNC + "%0 = arith.constant 1.0 : i32\n", 2, 21, "is a float, but the type is i32", ""),
    "out of range": (FUNC + "%0 = arith.constant 300 : i8\n", 2, 21, "300 doesn't fit i8", ""),
    "attribute twice": ("gpu.barrier {a, a}", 1, 17, "attribute 'a' is given twice", ""),
    "undefined alias": ("gpu.barrier {a = #mop}\n#map = unit", 1, 18, "undefined attribute alias '#mop'", "#map"),
    "cyclic alias": ("gpu.barrier {a = #a}\n#a = [#b]\n#b = [#a]", 2, 6, "nested more than", ""),
    "bad map": ('gpu.barrier {m = #xla_gpu.indexing_map<"(d0) -> (d0 +)">}', 1, 18, "bad indexing map", ""),
    "runtime variable": (
        'gpu.barrier {m = #xla_gpu.indexing_map<"(){r} -> (r), domain: r in [0, 1]">}',
        1, 18, "runtime variables", "a dimension",
    ),
    "dims of a map": (
        FUNC + '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 1]">(%i, %i)\n',
        2, 29, "2 dims and 0 symbols, but the map has 1 and 0", "",
    ),
    "undefined block": (FUNC + "cf.br ^bb7\n}", 2, 7, "block '^bb7' is used, but not defined", ""),
    "block twice": (FUNC + "cf.br ^a\n^a:\ncf.br ^a\n^a:\nreturn\n}", 5, 1, "block '^a' is defined twice", ""),
    "ragged dense": ("gpu.barrier {a = dense<[[1, 2], [3]]> : tensor<2x2xi32>}", 1, 33, "an element of shape [1]", ""),
    "dense shape": ("gpu.barrier {a = dense<[1, 2]> : tensor<3xi32>}", 1, 23, "shape [2] for tensor<3xi32>", ""),
    "dense bytes": ('gpu.barrier {a = dense<"0x123"> : tensor<3xi32>}', 1, 24, "the bytes given", "4 bytes an element"),
    "deep attribute": ("gpu.barrier {a = " + "[" * 2000, 1, 98, "nested more than", ""),
    "deep regions": ("func.func @f(%c: i1) {" + "scf.if %c {" * 3000, 1, 902, "nested more than", ""),
    "nested symbol": ("gpu.barrier {a = @x::@y}", 1, 20, "a nested symbol reference", "one name"),
    "resources": ("{-# dialect_resources: {} #-}", 1, 1, "a resource section", "dense"),
    "no pretty form": ("llvm.intr.masked.load", 1, 22, "expected ':'", ""),
    "escape": ('gpu.barrier {a = "\\q"}', 1, 18, "unknown escape", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_has_place_cause_and_help(name: str) -> None:
    text, line, column, cause, help = CASES[name]
    with pytest.raises(IrSyntaxError) as caught:
        parse_module(text, "bad.mlir")
    error = caught.value
    assert cause in error.cause
    assert error.span is not None
    assert (error.span.file, error.span.line, error.span.column) == ("bad.mlir", line, column)
    assert help in (error.help or "")


def test_error_shows_the_line_and_carets_under_the_token() -> None:
    with pytest.raises(IrSyntaxError) as caught:
        parse_module(FUNC + "%0 = arith.addff %x, %x : f32\n", "bad.mlir")
    assert str(caught.value) == (
        "bad.mlir:2:6: error[WS0501]: unknown op 'arith.addff'\n"
        "  2 | %0 = arith.addff %x, %x : f32\n"
        "    |      ^^^^^^^^^^^\n"
        "  help: did you mean 'arith.addf'?"
    )


def test_unregistered_op_is_let_in_only_when_asked() -> None:
    text = '"foo.bar"() : () -> ()'
    with pytest.raises(IrSyntaxError):
        parse_module(text)
    assert parse_module(text, allow_unregistered=True).body.first is not None


_TEXTS = [*SNIPPETS.values(), our_text(), *(print_module(parse_module(t), generic=True) for t in SNIPPETS.values())]
_TOKEN = re.compile(r"\s+|[\w.%#@^]+|.", re.DOTALL)
_PIECES = [_TOKEN.findall(t) for t in _TEXTS]
_WORDS = sorted(
    {w for p in _PIECES for w in p}
    | {'"', "<", ">", "{", "}", "dense", "array", "loc", "-", "0x", "::", "é", "\x00", "!", "#", "%"}
)


def check_refusal(text: str) -> None:
    """Reading, verifying and printing do no more than raise one of our errors."""
    try:
        module = parse_module(text)
    except WarpsmithError:
        return
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed
    with contextlib.suppress(WarpsmithError):
        verify(module)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_mutated_text_is_read_or_refused_in_order(data: st.DataObject) -> None:
    pieces = list(data.draw(st.sampled_from(_PIECES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(pieces) - 1)))
        match data.draw(st.integers(0, 3)):
            case 0:
                del pieces[at : at + 1]
            case 1:
                pieces[at : at + 1] = [data.draw(st.sampled_from(_WORDS))]
            case 2:
                pieces.insert(at, data.draw(st.sampled_from(_WORDS)))
            case _:
                pieces = pieces[:at] or pieces
    check_refusal("".join(pieces))


@settings(deadline=None, max_examples=100)
@given(st.text(alphabet='%#@^!"<>{}()[]:=->,. \n0123456789abxefinq_\\/', max_size=60))
def test_noise_is_refused_in_order(text: str) -> None:
    check_refusal(text)


def test_every_prefix_of_a_line_of_each_op_is_refused_in_order() -> None:
    lines = [line for line in upstream_text().splitlines() if line.startswith("%")][::7]
    for line in lines:
        for cut in range(0, len(line), 5):
            check_refusal(FUNC + line[:cut] + "\nreturn\n}")
