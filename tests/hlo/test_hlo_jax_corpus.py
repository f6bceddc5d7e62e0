"""What JAX makes of real programs is read, verified and printed back, before and after XLA's optimisation."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hlo.jax_programs import dump
from hlo.jax_programs.dump import Dump

from warpsmith.errors import InvalidHlo
from warpsmith.hlo import HloInstruction, HloModule, parse_hlo, verify_module
from warpsmith.hlo.attributes import Alias
from warpsmith.hlo.edit import clone, extract, prune
from warpsmith.hlo.query import find, fingerprint
from warpsmith.hlo.shapes import Shape, TupleShape
from warpsmith.hlo.text.printer import print_module
from warpsmith.hlo.text.style import PrintStyle
from warpsmith.hlo.verifier import STATED, infer_shape, verify_instruction

pytestmark = pytest.mark.skipif(not dump.available(), reason=dump.REASON)

Corpus = list[tuple[Dump, HloModule]]


pytestmark = pytest.mark.slow  # XLA makes or reads every program first


@pytest.fixture(scope="module")
def corpus(pytestconfig: pytest.Config) -> Corpus:
    return [(each, parse_hlo(each.text, f"{each.id}.hlo")) for each in dump.load(pytestconfig.cache)]


def test_at_least_forty_programs_at_two_stages(corpus: Corpus) -> None:
    names = {each.name for each, _ in corpus}
    assert len(names) >= 40
    assert {(each.name, each.stage) for each, _ in corpus} == {(n, s) for n in names for s in ("before", "after")}
    opcodes = {instruction.opcode for _, module in corpus for instruction in module.instructions()}
    assert len(opcodes) >= 70
    assert {"scatter", "select-and-scatter", "while", "conditional", "sort", "fft", "convolution"} < opcodes


def test_text_comes_back_byte_for_byte(corpus: Corpus) -> None:
    for each, module in corpus:
        assert str(module) == each.text, each.id
        assert parse_hlo(str(module)) == module, each.id


def test_the_verifier_raises_no_false_alarm(corpus: Corpus) -> None:
    for _, module in corpus:
        verify_module(module)


def test_parameters_have_the_shapes_of_the_inputs(corpus: Corpus) -> None:
    for each, module in corpus:
        parameters = module.entry.parameters
        assert len(parameters) == len(each.inputs), each.id
        for parameter, array in zip(parameters, each.inputs, strict=True):
            shape = parameter.array_shape
            assert (shape.dims, shape.dtype.numpy) == (array.shape, array.dtype), f"{each.id}: {parameter.name}"
        results = module.entry.root.shape.leaves()
        assert [(leaf.dims, leaf.dtype.numpy) for leaf in results] == [(o.shape, o.dtype) for o in each.outputs], (
            each.id
        )
        assert all(np.asarray(array).size for array in each.outputs), each.id


def test_custom_calls_are_those_that_the_program_names(corpus: Corpus) -> None:
    for each, module in corpus:
        targets = {str(call.attributes["custom_call_target"]) for call in find(module, "custom-call")}
        assert set(each.custom_calls) <= targets, each.id
        assert targets <= {*each.custom_calls, "TopK"}, each.id


def test_donated_arguments_share_memory_with_results(corpus: Corpus) -> None:
    shared: Counter[str] = Counter()
    for each, module in corpus:
        aliases = module.attributes.get("input_output_alias", ())
        assert isinstance(aliases, tuple), each.id
        shared[each.stage] += any(isinstance(alias, Alias) for alias in aliases)
    assert min(shared["before"], shared["after"]) >= 3


def static(shape: Shape | TupleShape) -> Shape | TupleShape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(static, shape.elements)))
    return Shape(shape.dtype, shape.dims)


def test_inferred_shapes_are_those_that_xla_inferred(corpus: Corpus) -> None:
    """The stated shape is hidden, so a rule that copied it would fail."""
    counted: Counter[str] = Counter()
    for each, module in corpus:
        for instruction in module.instructions():
            if instruction.opcode in STATED:
                continue
            blank = HloInstruction(
                "blank",
                instruction.opcode,
                TupleShape(),
                instruction.operands,
                instruction.attributes,
                instruction.literal,
                instruction.parameter_number,
            )
            assert static(infer_shape(blank)) == static(instruction.shape), f"{each.id}: {instruction!r}"
            counted[instruction.opcode] += 1
    assert len(counted) >= 55
    assert counted.total() > 4000


def wrong(shape: Shape | TupleShape) -> Shape | TupleShape:
    """Nearly the same shape: one element more in the last dimension, or a dimension where there was none."""
    if isinstance(shape, TupleShape):
        return TupleShape((*shape.elements[:-1], wrong(shape.elements[-1]))) if shape.elements else shape
    return Shape(shape.dtype, (*shape.dims[:-1], shape.dims[-1] + 1) if shape.dims else (1,))


SIZED = {"dot", "convolution", "broadcast", "reshape", "convert", "constant"}
"""Ops whose result's element type is free, or some of its sizes."""


def any_size_will_do(instruction: HloInstruction) -> bool:
    """Whether the last size of the result isn't decided by the operands."""
    if instruction.opcode == "broadcast":
        return instruction.array_shape.rank - 1 not in instruction.ints("dimensions")
    return instruction.opcode == "reshape" and 0 in instruction.array_shape.dims


def passes(instruction: HloInstruction) -> bool:
    try:
        verify_instruction(instruction)
    except InvalidHlo:
        return False
    return True


def test_a_slightly_wrong_result_is_refused(corpus: Corpus) -> None:
    refused: Counter[str] = Counter()
    for each, module in corpus:
        for instruction in module.instructions():
            opcode = instruction.opcode
            if opcode in STATED - SIZED or refused[opcode] >= 20 or instruction.shape == TupleShape():
                continue
            if any_size_will_do(instruction):
                continue
            broken = HloInstruction(
                *("broken", opcode, wrong(instruction.shape), instruction.operands, instruction.attributes),
                instruction.literal,
            )
            assert not passes(broken), f"{each.id}: {broken!r}"
            refused[opcode] += 1
    assert len(refused) >= 60


def test_fingerprints_ignore_names_and_metadata_and_tell_programs_apart(corpus: Corpus) -> None:
    seen: dict[str, str] = {}
    for each, module in corpus:
        expected = fingerprint(module)
        assert fingerprint(clone(module, "m", lambda name: f"z{name}")) == expected, each.id
        plain = print_module(module, PrintStyle(percent=False, metadata=False))
        assert fingerprint(parse_hlo(plain)) == expected, each.id
        assert seen.setdefault(expected, each.id) == each.id
    assert len(seen) == len(corpus)


def test_every_fusion_can_be_extracted(corpus: Corpus) -> None:
    count = 0
    for _, module in corpus:
        for fusion in find(module, "fusion"):
            alone = extract(module, fusion)
            verify_module(alone)
            assert len(find(alone, "fusion")) >= 1
            count += 1
    assert count > 100


def test_pruning_keeps_what_is_needed(corpus: Corpus) -> None:
    for each, module in corpus:
        small = prune(module)
        verify_module(small)
        assert len(small.entry.parameters) == len(module.entry.parameters), each.id
        assert prune(small) == small, each.id
