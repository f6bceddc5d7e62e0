"""The verifier refuses HLO whose shapes, types or signatures don't fit, names the rule, and says where and why."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hlo.verifier_cases import BAD, GOOD, LINE, OPERANDS, module
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.errors import BadAttribute, InvalidHlo, UnknownOpcode, WarpsmithError, did_you_mean
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.builder import ComputationBuilder, build_module, reducer
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.shapes import Shape, TupleShape, array
from warpsmith.hlo.verifier import (
    MOST_NESTED,
    RULES,
    STATED,
    STATEMENTS,
    infer_shape,
    verify_instruction,
    verify_module,
)

# Rules of whole modules, and those that the parser keeps from text: tested below, not in the table.
ELSEWHERE = {
    *("opcode.known", "opcode.attributes", "constant.value", "parameter.number", "alias.once"),
    *("module.names", "module.nesting", "module.callees", "module.entry"),
    *("module.entry-layout", "module.counts"),
}


@pytest.mark.parametrize("line", GOOD, ids=range(len(GOOD)))
def test_hlo_that_fits_passes(line: str) -> None:
    verify_module(module(line))


@pytest.mark.parametrize(("rule", "line", "cause"), BAD, ids=[f"{rule}-{i}" for i, (rule, _, _) in enumerate(BAD)])
def test_hlo_that_does_not_fit_is_refused(rule: str, line: str, cause: str) -> None:
    with pytest.raises(InvalidHlo) as caught:
        verify_module(module(line))
    error = caught.value
    assert cause in error.cause
    assert error.rule == rule
    assert error.span is not None
    assert (error.span.line, error.span.column) == (LINE, 3)
    assert error.help
    assert str(error).splitlines()[0].endswith(f"(in 'x') [{rule}]")


def test_every_rule_has_a_case_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BAD} | ELSEWHERE == set(STATEMENTS)


def test_every_opcode_has_a_rule() -> None:
    assert set(RULES) == set(OPCODES)
    assert set(OPCODES) > STATED


@pytest.mark.parametrize("line", GOOD, ids=range(len(GOOD)))
def test_the_shape_is_inferred_without_looking_at_the_one_that_is_stated(line: str) -> None:
    """If a rule read the result's shape it would agree with nonsense."""
    made = module(line).entry.instructions[-1]
    if made.opcode in STATED:
        return
    blank = HloInstruction("y", made.opcode, TupleShape(), made.operands, made.attributes)
    assert infer_shape(blank).without_layout() == static(made.shape)


def static(shape: Shape | TupleShape) -> Shape | TupleShape:
    """Without layouts and dynamic marks, which inference leaves out."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(static, shape.elements)))
    return Shape(shape.dtype, shape.dims)


HEADERS = [
    ("module.counts", ", replica_count=0", "replica_count is 0"),
    ("module.entry-layout", ", entry_computation_layout={(f32[2])->f32[2]}", "has 1 parameters, the entry 2"),
    (
        "module.entry-layout",
        ", entry_computation_layout={(f32[3], f32[4])->(f32[2], f32[4])}",
        "gives 'x' f32[3], it is f32[2]",
    ),
    ("module.entry-layout", ", entry_computation_layout={(f32[2], f32[4])->f32[2]}", "ends in f32[2], the entry in"),
    ("alias.index", ", input_output_alias={ {2}: (0, {}, may-alias) }", "no such parts"),
    ("alias.index", ", input_output_alias={ {0}: (2, {}, may-alias) }", "no such parts"),
    ("alias.index", ", input_output_alias={ {0}: (0, {0}, may-alias) }", "no such parts"),
    ("alias.shape", ", input_output_alias={ {0}: (1, {}, may-alias) }", "joins f32[2] and f32[4]"),
    ("alias.once", ", input_output_alias={ {0}: (0, {}), {0}: (0, {}) }", "shares a part twice"),
    ("alias.index", ", buffer_donor={ (7, {}) }", "no such part"),
    ("alias.once", ", input_output_alias={ {0}: (0, {}) }, buffer_donor={ (0, {}) }", "shared or donated already"),
]
BODY = "\nENTRY e { x = f32[2] parameter(0)  y = f32[4] parameter(1)  ROOT t = (f32[2], f32[4]) tuple(x, y) }\n"


@pytest.mark.parametrize(("rule", "header", "cause"), HEADERS)
def test_a_header_that_does_not_fit_the_entry_is_refused(rule: str, header: str, cause: str) -> None:
    with pytest.raises(InvalidHlo) as caught:
        verify_module(parse_hlo(f"HloModule m{header}{BODY}", "h.hlo"))
    assert caught.value.rule == rule
    assert cause in caught.value.cause
    assert caught.value.span is not None


def test_a_header_that_fits_passes() -> None:
    header = (
        ", input_output_alias={ {0}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }, replica_count=2, "
        "entry_computation_layout={(f32[2]{0}, f32[4]{0})->(f32[2]{0}, f32[4]{0})}"
    )
    verify_module(parse_hlo(f"HloModule m{header}{BODY}"))


def test_layouts_bind_once_a_module_is_scheduled() -> None:
    """Before layout assignment XLA itself prints layouts that disagree."""
    line = "x = f32[2,3]{0,1} get-tuple-element(t), index=0"
    verify_module(module(line))
    with pytest.raises(InvalidHlo) as caught:
        verify_module(module(line, ", is_scheduled=true"))
    assert caught.value.rule == "result.layout"
    verify_module(module("x = f32[2,3]{1,0} get-tuple-element(t), index=0", ", is_scheduled=true"))


def test_a_dimension_of_size_1_may_lie_anywhere() -> None:
    text = (
        "b { p = f32[1,3]{0,1} parameter(0)  ROOT n = f32[1,3]{0,1} negate(p) }\n"
        "ENTRY e { x = f32[1,3]{1,0} parameter(0)  ROOT f = f32[1,3]{1,0} fusion(x), kind=kLoop, calls=b }"
    )
    verify_module(parse_hlo(text))


def test_unknown_sizes_fit_any() -> None:
    text = (
        "ENTRY e { x = f32[?,3] parameter(0)  y = f32[4,3] parameter(1)  a = f32[?,3] add(x, y)\n"
        "  c = f32[?,3] concatenate(a, y), dimensions={0}  ROOT t = f32[3,?] transpose(c), dimensions={1,0} }"
    )
    verify_module(parse_hlo(text))


def test_modules_made_in_code_are_checked_without_a_place() -> None:
    builder = ComputationBuilder("e")
    x = builder.parameter(0, array("f32", 4))
    zero = builder.parameter(1, array("f32"))
    attributes = {"dimensions": (0,), "to_apply": reducer("sum", "add", array("f32"))}
    builder.add("reduce", array("f32"), [x, zero], attributes)
    made = build_module("m", builder.build())
    verify_module(made)
    assert [each.name for each in made.computations] == ["sum", "e"]
    assert parse_hlo(str(made)) == made
    builder.add("negate", array("f32", 5), [x])
    with pytest.raises(InvalidHlo) as caught:
        verify_module(build_module("m", builder.build()))
    assert caught.value.span is None


def test_the_builder_infers_shapes() -> None:
    builder = ComputationBuilder("e")
    x = builder.parameter(0, array("f32", 2, 3))
    turned = builder.add("transpose", None, [x], {"dimensions": (1, 0)})
    assert turned.shape == array("f32", 3, 2)
    with pytest.raises(InvalidHlo, match="decide its shape"):
        builder.add("reshape", None, [turned])
    with pytest.raises(InvalidHlo, match="same sizes"):
        builder.add("add", None, [x, turned])


X = HloInstruction("x", "parameter", array("f32", 4), parameter_number=0)
MADE = [
    (HloInstruction("y", "negate", array("f32", 4), (X, X)), "opcode.operands"),
    (HloInstruction("y", "reverse", array("f32", 4), (X,)), "opcode.attributes"),
    (HloInstruction("y", "parameter", array("f32", 4)), "parameter.number"),
    (HloInstruction("y", "constant", array("f32", 4)), "constant.value"),
]


@pytest.mark.parametrize(("instruction", "rule"), MADE)
def test_what_the_parser_keeps_from_text_is_refused_in_code_too(instruction: HloInstruction, rule: str) -> None:
    with pytest.raises(InvalidHlo) as caught:
        verify_instruction(instruction)
    assert caught.value.rule == rule


def test_a_constant_holds_a_value_of_its_shape() -> None:
    literal = parse_hlo("ENTRY e { ROOT c = f32[2] constant({1, 2}) }").entry.root.literal
    with pytest.raises(InvalidHlo, match="holds a value of") as caught:
        verify_instruction(HloInstruction("c", "constant", array("f32", 3), literal=literal))
    assert caught.value.rule == "constant.value"


def test_an_unknown_opcode_and_an_attribute_of_the_wrong_kind_are_refused_in_code() -> None:
    with pytest.raises(UnknownOpcode) as unknown:
        verify_instruction(HloInstruction("y", "tahn", array("f32", 4), (X,)))
    assert unknown.value.help == "did you mean 'tanh'?"
    with pytest.raises(BadAttribute, match="dimensions"):
        verify_instruction(HloInstruction("y", "reverse", array("f32", 4), (X,), {"dimensions": 0}))


def test_a_called_computation_must_be_in_the_module() -> None:
    good = module("x = f32[2,3] fusion(p), kind=kLoop, calls=body")
    with pytest.raises(InvalidHlo, match="'body' is called but isn't in module") as caught:
        verify_module(HloModule("m", (good.entry,), good.entry))
    assert caught.value.rule == "module.callees"


def _nested(depth: int) -> str:
    """A module in which `depth` computations are called one from another, the entry the first."""
    x = "x = f32[2] parameter(0)"
    texts = [f"c{depth} {{ {x}  ROOT y = f32[2] negate(x) }}"]
    texts += [f"c{i} {{ {x}  ROOT y = f32[2] call(x), to_apply=c{i + 1} }}" for i in range(depth - 1, 1, -1)]
    return "\n".join([*texts, f"ENTRY e {{ {x}  ROOT y = f32[2] call(x), to_apply=c2 }}"])


def test_calls_nest_as_deep_as_python_can_follow() -> None:
    x = np.array([1, -2], np.float32)
    (found,) = evaluate(parse_hlo(_nested(MOST_NESTED)), x)
    assert (found == -x).all()
    with pytest.raises(InvalidHlo, match="more than 128 calls") as caught:
        verify_module(parse_hlo(_nested(MOST_NESTED + 1)))
    assert caught.value.rule == "module.nesting"
    assert caught.value.help


def test_names_are_distinct_and_nothing_calls_the_entry() -> None:
    one = parse_hlo("ENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] negate(x) }").entry
    with pytest.raises(InvalidHlo, match="two computations are called 'e'") as caught:
        verify_module(HloModule("m", (one, HloComputation("e", one.instructions, one.root)), one))
    assert caught.value.rule == "module.names"
    twice = HloComputation("e", (*one.instructions, HloInstruction("y", "abs", one.root.shape, (one.root,))), one.root)
    with pytest.raises(InvalidHlo, match="two instructions called 'y'") as caught:
        verify_module(HloModule("m", (twice,), twice))
    assert caught.value.rule == "module.names"
    text = (
        "c { x = f32[2] parameter(0)  ROOT y = f32[2] call(x), to_apply=e }\nENTRY e { ROOT x = f32[2] parameter(0) }"
    )
    with pytest.raises(InvalidHlo, match="the entry 'e' is called") as caught:
        verify_module(parse_hlo(text))
    assert caught.value.rule == "module.entry"


NUMBER = re.compile(r"(?<![\w.%])-?\d+(?![\w.])|(?<=[x_\[,{])\d+(?=[x_\],}])")
NUMBERS = ["-1", "0", "1", "2", "3", "5", "100", "2147483648", "4611686018427387904"]
TYPES = ["pred", "s4", "u8", "s32", "f8e5m2", "bf16", "f32", "f64", "c64", "token"]


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_damaged_hlo_is_refused_in_our_own_words_or_fits(data: st.DataObject) -> None:
    """No number, type or operand that someone could mistype makes a rule fall over."""
    line = data.draw(st.sampled_from([*GOOD, *(bad for _, bad, _ in BAD)]))
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(NUMBER.finditer(line))
        kind = data.draw(st.sampled_from(["number", "type", "operand"] if places else ["type", "operand"]))
        if kind == "number":
            place = data.draw(st.sampled_from(places))
            line = line[: place.start()] + data.draw(st.sampled_from(NUMBERS)) + line[place.end() :]
        elif kind == "type":
            line = re.sub(r"^x = \w+\[", f"x = {data.draw(st.sampled_from(TYPES))}[", line)
        else:
            other = data.draw(st.sampled_from(OPERANDS)).split(" =")[0]
            line = re.sub(r"(?<=[(, ])[a-z]\w{0,3}(?=[,)])", other, line, count=1)
    error = refusal(line)
    assert error is None or error.code.startswith(("WS02", "WS03"))


def refusal(line: str) -> WarpsmithError | None:
    try:
        verify_module(module(line))
    except WarpsmithError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("word", "meant"),
    [("tahn", "tanh"), ("mutliply", "multiply"), ("brodcast", "broadcast"), ("exponental", "exponential")],
)
def test_two_swapped_letters_are_the_likeliest_slip(word: str, meant: str) -> None:
    assert did_you_mean(word, OPCODES) == f"did you mean '{meant}'?"
    assert did_you_mean("x" * 70, OPCODES) is None
    assert did_you_mean("qqqq", iter(OPCODES)) is None
