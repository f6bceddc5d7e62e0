"""The verifier refuses each way to break an op's rules, and says which rule it was.

The IR is written in generic form, which holds what the pretty form can't say.
"""

from __future__ import annotations

import pytest

from warpsmith.errors import InvalidIr
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.parser import parse_module

ARGS = (
    "%c: i1, %x: f32, %y: f64, %k: i32, %i: index, %t: tensor<4x8xf32>, %u: tensor<8xf32>, %m: memref<8xf32>, "
    "%v: vector<4xf32>, %w: vector<8xf32>, %b: vector<4xi1>"
)
MAP = '#xla_gpu.indexing_map<"(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 1]">'
CONSTRAINED = '#xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 9], d0 mod 4 in [0, 1]">'


def within(body: str) -> str:
    """A module with `body` in a function."""
    return (
        "func.func private @f32_to_f32(f32) -> f32\nfunc.func private @add(f32, f32) -> f32\n"
        'memref.global "private" constant @table : memref<4xf32> = dense<1.0>\n'
        f"func.func @f({ARGS}) {{\n{body}\nreturn\n}}"
    )


# Body, and a part of the cause or of the rule.
CASES = {
    "operand count": ('%0 = "arith.addf"(%x) : (f32) -> f32', "has 1 operands"),
    "result count": ('%0:2 = "arith.addf"(%x, %x) : (f32, f32) -> (f32, f32)', "2 results"),
    "mixed types": ('%0 = "arith.addf"(%x, %y) : (f32, f64) -> f32', "types f32 and f64"),
    "integers in a float op": ('%0 = "arith.addf"(%k, %k) : (i32, i32) -> i32', "where a float is needed"),
    "floats in an integer op": ('%0 = "arith.addi"(%x, %x) : (f32, f32) -> f32', "where an integer or index is needed"),
    "mixed shapes": ('%0 = "arith.extf"(%v) : (vector<4xf32>) -> f64', "one shape"),
    "predicate missing": ('%0 = "arith.cmpi"(%k, %k) : (i32, i32) -> i1', "attribute 'predicate' is missing"),
    "predicate range": ('%0 = "arith.cmpi"(%k, %k) {predicate = 10 : i64} : (i32, i32) -> i1', "predicates are 0 to 9"),
    "predicate kind": ('%0 = "arith.cmpi"(%k, %k) {predicate = "slt"} : (i32, i32) -> i1', "no integer"),
    "comparison result": ('%0 = "arith.cmpi"(%k, %k) {predicate = 1 : i64} : (i32, i32) -> i32', "i1 is needed"),
    "constant type": ('%0 = "arith.constant"() {value = 1 : i32} : () -> i64', "a value of type i32"),
    "constant kind": ('%0 = "arith.constant"() {value = "x"} : () -> i64', "no constant"),
    "cast not wider": ('%0 = "arith.extf"(%y) : (f64) -> f32', "wider"),
    "cast not narrower": ('%0 = "arith.trunci"(%k) : (i32) -> i64', "narrower"),
    "cast kind": ('%0 = "arith.sitofp"(%x) : (f32) -> f32', "a cast from f32 to f32"),
    "bitcast width": ('%0 = "arith.bitcast"(%x) : (f32) -> i64', "same number of bits"),
    "index cast": ('%0 = "arith.index_cast"(%k) : (i32) -> i64', "one side is index"),
    "select condition": ('%0 = "arith.select"(%b, %x, %x) : (vector<4xi1>, f32, f32) -> f32', "a condition of type"),
    "select values": ('%0 = "arith.select"(%c, %x, %y) : (i1, f32, f64) -> f32', "the two values"),
    "call of nothing": ("%0 = func.call @nobody(%x) : (f32) -> f32", "@nobody isn't defined"),
    "call of near name": ("%0 = func.call @f32_to_f23(%x) : (f32) -> f32", "did you mean 'f32_to_f32'"),
    "call arguments": ("%0 = xla_gpu.pure_call @f32_to_f32(%y) : (f64) -> f32", "the arguments are (f64)"),
    "call results": ("%0 = xla_gpu.pure_call @f32_to_f32(%x) : (f32) -> f64", "the results are (f64)"),
    "call of a global": ("%0 = func.call @table(%x) : (f32) -> f32", "only a function can be called"),
    "global type": ("%0 = memref.get_global @table : memref<5xf32>", "of another type"),
    "for bounds": (
        '"scf.for"(%i, %i, %k) ({\n^bb0(%j: index):\n"scf.yield"() : () -> ()\n}) : (index, index, i32) -> ()',
        "the upper bound and the step",
    ),
    "for yield": (
        '%0 = "scf.for"(%i, %i, %i, %x) ({\n^bb0(%j: index, %a: f32):\n"scf.yield"(%y) : (f64) -> ()\n}) '
        ": (index, index, index, f32) -> f32",
        "the values given",
    ),
    "for arguments": (
        '"scf.for"(%i, %i, %i) ({\n^bb0(%j: i32):\n"scf.yield"() : () -> ()\n}) : (index, index, index) -> ()',
        "the arguments of the body",
    ),
    "if without else": (
        '%0 = "scf.if"(%c) ({\n"scf.yield"(%x) : (f32) -> ()\n}, {\n}) : (i1) -> f32',
        "an else gives the results",
    ),
    "if yield": (
        '%0 = "scf.if"(%c) ({\n"scf.yield"(%x) : (f32) -> ()\n}, {\n"scf.yield"() : () -> ()\n}) : (i1) -> f32',
        "the values given",
    ),
    "if condition": ('"scf.if"(%k) ({\n"scf.yield"() : () -> ()\n}, {\n}) : (i32) -> ()', "where an i1 is needed"),
    "wrong terminator": (
        '"scf.if"(%c) ({\n"xla_gpu.yield"() : () -> ()\n}, {\n}) : (i1) -> ()',
        "it ends in scf.yield",
    ),
    "while": (
        '"scf.while"() ({\n"scf.yield"() : () -> ()\n}, {\n"scf.yield"() : () -> ()\n}) : () -> ()',
        "doesn't end in scf.condition",
    ),
    "switch regions": (
        '"scf.index_switch"(%i) ({\n"scf.yield"() : () -> ()\n}) {cases = array<i64: 1>} : (index) -> ()',
        "1 regions for 1 cases",
    ),
    "switch twice": (
        "scf.index_switch %i\ncase 1 {\n}\ncase 1 {\n}\ndefault {\n}",
        "a case twice",
    ),
    "branch values": ("cf.br ^bb1(%x : f32)\n^bb1(%a: f64):", "the values for a block"),
    "segments": (
        '"cf.cond_br"(%c)[^bb1, ^bb1] {operandSegmentSizes = array<i32: 1, 1, 0>} : (i1) -> ()\n^bb1:',
        "their sum is the number of operands",
    ),
    "extract rank": ('%0 = "tensor.extract"(%t, %i) : (tensor<4x8xf32>, index) -> f32', "one index a dimension: 2"),
    "extract result": ('%0 = "tensor.extract"(%u, %i) : (tensor<8xf32>, index) -> f64', "'result' has type f64"),
    "extract index": ('%0 = "tensor.extract"(%u, %k) : (tensor<8xf32>, i32) -> f32', "'indices' has type i32"),
    "extract of a memref": (
        '%0 = "tensor.extract"(%m, %i) : (memref<8xf32>, index) -> f32',
        "where a tensor is needed",
    ),
    "insert scalar": ('%0 = "tensor.insert"(%y, %u, %i) : (f64, tensor<8xf32>, index) -> tensor<8xf32>', "'scalar'"),
    "load of a tensor": ('%0 = "memref.load"(%u, %i) : (tensor<8xf32>, index) -> f32', "where a memref is needed"),
    "elements": ('%0 = "tensor.from_elements"(%x) : (f32) -> tensor<2xf32>', "1 elements for tensor<2xf32>"),
    "vector position": ("%0 = vector.extract %v[4] : f32 from vector<4xf32>", "positions are 0 to 3"),
    "vector part": (
        '%0 = "vector.extract"(%v) {static_position = array<i64: 1>} : (vector<4xf32>) -> f64',
        "where f32",
    ),
    "vector gaps": (
        '%0 = "vector.extract"(%v, %i) {static_position = array<i64: 1>} : (vector<4xf32>, index) -> f32',
        "1 dynamic positions",
    ),
    "shuffle mask": ("%0 = vector.shuffle %v, %v [0, 8] : vector<4xf32>, vector<4xf32>", "a mask outside 0 to 7"),
    "broadcast": ("%0 = vector.broadcast %y : f64 to vector<4xf32>", "a broadcast from f64"),
    "vector load element": ("%0 = vector.load %m[%i] : memref<8xf32>, vector<4xf64>", "the vector's elements"),
    "mask length": (
        "%0 = vector.maskedload %m[%i], %b, %w : memref<8xf32>, vector<4xi1>, vector<8xf32> into vector<8xf32>",
        "'mask' has type vector<4xi1>",
    ),
    "transfer indices": (
        "%0 = vector.transfer_read %t[%i], %x {in_bounds = [true]} : tensor<4x8xf32>, vector<4xf32>",
        "1 indices for tensor<4x8xf32>",
    ),
    "slice": (
        "%0 = vector.extract_strided_slice %v {offsets = [3], sizes = [2], strides = [1]}"
        " : vector<4xf32> to vector<2xf32>",
        "a slice of 2 at 3 in 4",
    ),
    "loop dims": (
        '%0 = "xla_gpu.loop"(%t) ({\n^bb0(%a: index, %r: index, %o: tensor<4x8xf32>):\n'
        '"xla_gpu.yield"(%o) : (tensor<4x8xf32>) -> ()\n'
        f"}}) {{map = {MAP}, operandSegmentSizes = array<i32: 0, 1>}} : (tensor<4x8xf32>) -> tensor<4x8xf32>",
        "0 dims for a map with 1",
    ),
    "loop arguments": (
        '%0 = "xla_gpu.loop"(%i, %t) ({\n^bb0(%a: index, %o: tensor<4x8xf32>):\n'
        '"xla_gpu.yield"(%o) : (tensor<4x8xf32>) -> ()\n'
        f"}}) {{map = {MAP}, operandSegmentSizes = array<i32: 1, 1>}} : (index, tensor<4x8xf32>) -> tensor<4x8xf32>",
        "symbols, map results",
    ),
    "apply with constraints": (f"%0 = xla_gpu.apply_indexing {CONSTRAINED}(%i)", "a map with constraints"),
    "apply operands": (f'%0 = "xla_gpu.apply_indexing"(%i) {{map = {MAP}}} : (index) -> index', "1 dims and 1 symbols"),
    "atomic argument": (
        '%0 = "xla_gpu.atomic_rmw"(%u, %i) ({\n^bb0(%a: f64):\n"xla_gpu.yield"(%a) : (f64) -> ()\n}) '
        ": (tensor<8xf32>, index) -> tensor<8xf32>",
        "it takes the current value",
    ),
    "atomic yield": (
        '%0 = "xla_gpu.atomic_rmw"(%u, %i) ({\n^bb0(%a: f32):\n"xla_gpu.yield"(%y) : (f64) -> ()\n}) '
        ": (tensor<8xf32>, index) -> tensor<8xf32>",
        "the values given",
    ),
    "sync": ('%0 = "xla_gpu.sync_threads"(%u) : (tensor<8xf32>) -> tensor<9xf32>', "the results"),
    "shuffle distance": ("%0 = xla_gpu.shuffle_reduce(%x) to 12 combiner=@add : f32", "a power of two"),
    "combiner": ("%0 = xla_gpu.shuffle_reduce(%x) to 16 combiner=@f32_to_f32 : f32", "the values combined"),
}


@pytest.mark.parametrize("name", CASES)
def test_broken_rule_is_named(name: str) -> None:
    body, wanted = CASES[name]
    module = parse_module(within(body), "bad.mlir")
    with pytest.raises(InvalidIr) as caught:
        verify(module)
    assert wanted in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.line >= 4


def test_error_names_op_place_text_and_rule() -> None:
    text = within('%0 = "tensor.extract"(%t, %i) : (tensor<4x8xf32>, index) -> f32')
    with pytest.raises(InvalidIr) as caught:
        verify(parse_module(text, "bad.mlir"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("bad.mlir:5:1: error[WS0601]: tensor.extract: 1 indices for tensor<4x8xf32>, in '")
    assert lines[1] == "  help: one index a dimension: 2"


def test_error_names_the_hlo_instruction() -> None:
    text = within('%0 = "arith.addf"(%x, %y) : (f32, f64) -> f32 loc("add.7"("m.hlo":9:3))')
    with pytest.raises(InvalidIr, match=r"arith\.addf \(from add\.7\)") as caught:
        verify(parse_module(text))
    assert str(caught.value).startswith("m.hlo:9:3: ")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("func.func @f() {\nreturn\n}\nfunc.func @f() {\nreturn\n}", "@f is defined twice"),
        ("func.func @f(%x: f32) -> f64 {\nreturn %x : f32\n}", "the values returned"),
        (
            '"func.func"() ({\n^bb0(%x: f32):\n"func.return"() : () -> ()\n}) '
            '{sym_name = "f", function_type = () -> ()} : () -> ()',
            "the arguments of the body",
        ),
        (
            '"func.func"() ({\n}) {sym_name = "f", function_type = () -> (), arg_attrs = [{}]} : () -> ()',
            "no array of 0",
        ),
        ("llvm.func @f() -> i32 {\nllvm.return\n}", "the values returned"),
        ('"memref.global"() {sym_name = "g", type = f32} : () -> ()', "no memref"),
    ],
)  # fmt: skip
def test_broken_top_level_op_is_named(text: str, wanted: str) -> None:
    with pytest.raises(InvalidIr, match="error") as caught:
        verify(parse_module(text))
    assert wanted in str(caught.value)


def test_unregistered_ops_pass_only_when_asked() -> None:
    module = parse_module('"foo.bar"() : () -> ()', allow_unregistered=True)
    with pytest.raises(InvalidIr, match="no dialect has this op"):
        verify(module)
    verify(module, allow_unregistered=True)
