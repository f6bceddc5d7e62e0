"""Text that XLA reads and never prints: it is read here as well, and printed in the canonical form."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest
from hlo.lenient_texts import TEXTS

from warpsmith import compile, evaluate
from warpsmith.errors import BadAttribute, ElidedConstant, HloSyntaxError
from warpsmith.hlo.attributes import MeshGroups
from warpsmith.hlo.elided import fill_elided
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo.verifier import verify_module

ALL = [(kind, number) for kind, texts in TEXTS.items() for number in range(len(texts))]

# Reads each text in a child of its own, since XLA aborts the process for some; "" where it did, or refused.
CHILD = r"""
import json, os, sys
from jaxlib import _hlo
style = _hlo.HloPrintOptions()
style.print_large_constants = True
answers = []
for text in json.load(sys.stdin):
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            answer = _hlo.hlo_module_from_text(text).to_string(style)
        except Exception as error:
            answer = "refused: " + str(error)
        with os.fdopen(write, "w") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answers.append(pipe.read())
    os.wait()
json.dump(answers, sys.stdout)
"""


def module_of(kind: str, number: int) -> HloModule:
    return parse_hlo(TEXTS[kind][number])


@pytest.mark.parametrize(("kind", "number"), ALL)
def test_it_is_read_verified_and_printed_in_canonical_form(kind: str, number: int) -> None:
    """A form that XLA's users write would be refused, or would print as something else than it was read as."""
    module = module_of(kind, number)
    verify_module(module)
    text = str(module)
    again = parse_hlo(text)
    assert again == module
    assert str(again) == text


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="jaxlib isn't installed: pip install jax")
def test_xla_reads_the_text_and_our_print_of_it_as_one_module() -> None:
    """The text would mean something else to XLA than to us."""
    texts = [TEXTS[kind][number] for kind, number in ALL]
    ours = [str(parse_hlo(text)) for text in texts]
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(texts + ours),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answers = json.loads(child.stdout)
    for place, text, theirs, back in zip(ALL, texts, answers[: len(texts)], answers[len(texts) :], strict=True):
        assert theirs.startswith("HloModule"), (place, theirs)
        assert back == theirs, (place, text)


def test_a_signature_without_colons_or_with_other_parameters_gives_the_instructions_word() -> None:
    """A stale signature would change what a module takes."""
    for text in TEXTS["signatures"]:
        assert [each.name for each in parse_hlo(text).entry.parameters] == ["a"]


def test_groups_of_a_mesh_are_those_of_its_axes() -> None:
    """Devices would exchange data with others than XLA's."""
    given = {
        "mesh['a'=2,'b'=4] {'b'}": ((0, 1, 2, 3), (4, 5, 6, 7)),
        "mesh['a'=2,'b'=4] {'a'}": ((0, 4), (1, 5), (2, 6), (3, 7)),
        "mesh['a'=2,'b'=4] {'b':(1)2}": ((0, 2), (1, 3), (4, 6), (5, 7)),
        "mesh['a'=2,'b'=4] {'b':(2)2}": ((0, 1), (2, 3), (4, 5), (6, 7)),
        "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}": ((0, 2), (1, 3)),
        "mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}": ((3, 2), (1, 0)),
    }
    for text, expected in given.items():
        groups = parse_hlo(TEXTS["groups of devices"][0].replace("mesh['a'=2,'b'=4] {'b'}", text)).entry.root.attributes
        found = groups["replica_groups"]
        assert isinstance(found, MeshGroups)
        assert found.groups() == expected


@pytest.mark.parametrize(
    "groups", ["mesh['a'=2] {'c'}", "mesh['a'=4] {'a':(1)3}", "mesh['a'=4], device_ids=(0,1,1,2) {'a'}"]
)
def test_a_mesh_that_means_nothing_is_refused_at_its_own_place(groups: str) -> None:
    """The message would blame another attribute."""
    with pytest.raises(BadAttribute, match="replica_groups") as caught:
        parse_hlo(TEXTS["groups of devices"][0].replace("mesh['a'=2,'b'=4] {'b'}", groups))
    assert caught.value.span is not None


def test_a_shape_that_nothing_decides_must_be_written() -> None:
    """A reshape to nowhere would be read."""
    with pytest.raises(HloSyntaxError, match="don't decide what reshape makes"):
        parse_hlo("ENTRY e { a = f32[4] parameter(0)  ROOT r = reshape(a) }")


ELIDED = """HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  c = f32[4] constant({...})
  ROOT r = f32[4] add(a, c)
}
"""


def test_values_that_were_left_out_are_asked_for_by_those_who_need_them_alone() -> None:
    """Garbage would take the place of the values, or a dump without them couldn't even be read."""
    module = parse_hlo(ELIDED)
    constant = module.entry.instruction("c")
    assert constant.literal is not None
    assert constant.literal.is_elided
    assert "constant({...})" in str(module)
    x = np.ones(4, np.float32)
    for needs in (lambda: evaluate(module, x), lambda: compile(module)):
        with pytest.raises(ElidedConstant) as caught:
            needs()
        assert caught.value.span is not None
        assert caught.value.span.line == 4
        assert "--fill-elided" in str(caught.value)


def test_a_tuple_may_be_left_out_as_a_whole() -> None:
    """XLA prints `{...}` for every constant that is a tuple, so its dump would be refused."""
    module = parse_hlo(
        "HloModule m\nENTRY e {\n  c = (f32[2], (s32[3], pred[])) constant({...})\n"
        "  ROOT g = f32[2] get-tuple-element(c), index=0\n}\n"
    )
    assert parse_hlo(str(module)) == module
    with pytest.raises(ElidedConstant):
        evaluate(module)
    filled, names = fill_elided(module, 3)
    assert names == ["c"]
    assert evaluate(filled)[0].shape == (2,)


def test_made_up_values_are_the_seeds_and_reported() -> None:
    """Two runs would compare different modules, or nobody would know that values were made up."""
    module = parse_hlo(ELIDED)
    one, filled = fill_elided(module, 7)
    assert filled == ["c"]
    assert "{...}" not in str(one)
    assert str(one) == str(fill_elided(module, 7)[0]) != str(fill_elided(module, 8)[0])
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(compile(one)(x)[0], evaluate(one, x)[0])
    whole = parse_hlo("ENTRY e { a = f32[4] parameter(0)  ROOT r = f32[4] negate(a) }")
    assert fill_elided(whole, 0) == (whole, [])
    integers = parse_hlo("ENTRY e { ROOT c = s32[3] constant({...}) }")
    assert fill_elided(integers, -1)[1] == ["c"]  # as --seed -1 is taken elsewhere
