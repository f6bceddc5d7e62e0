"""Edits give new modules that mean what was asked for, share what didn't change, and leave the old ones alone."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.errors import InvalidHlo
from warpsmith.hlo import HloInstruction, HloModule, parse_hlo, verify_module
from warpsmith.hlo.edit import clone, clone_computation, extract, prune, replace, replace_all
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.module import HloComputation
from warpsmith.hlo.query import fingerprint, statistics
from warpsmith.hlo.shapes import array

TEXT = """HloModule m

inner { p = f32[4] parameter(0)  one = f32[] constant(1)  ones = f32[4] broadcast(one), dimensions={}
  ROOT r = f32[4] add(p, ones) }

body { p = f32[4] parameter(0)  ROOT f = f32[4] fusion(p), kind=kLoop, calls=inner }
cond { p = f32[4] parameter(0)  ROOT r = pred[] constant(false) }

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  sum = f32[4] add(x, y)
  twice = f32[4] add(sum, sum)
  dead = f32[4] negate(twice)
  loop = f32[4] while(twice), condition=cond, body=body
  f = f32[4] fusion(loop), kind=kLoop, calls=inner
  after = f32[4] subtract(f, x), control-predecessors={dead}
  ROOT out = f32[4] multiply(after, sum)
}
"""
X, Y = np.array([1, 2, 3, 4], np.float32), np.array([5, 6, 7, 9], np.float32)


def value(module: HloModule) -> list[float]:
    (result,) = evaluate(module, X, Y)
    return np.asarray(result).tolist()


def made(
    opcode: str, *operands: HloInstruction, name: str | None = None, calls: HloComputation | None = None
) -> HloInstruction:
    attributes = {} if calls is None else {"kind": "kLoop", "calls": calls}
    return HloInstruction(name or opcode, opcode, operands[0].shape, operands, attributes)


def test_a_replaced_instruction_takes_its_uses_and_its_place() -> None:
    module = parse_hlo(TEXT)
    before = str(module)
    entry = module.entry
    changed = replace(
        module, entry.instruction("twice"), made("multiply", entry.instruction("x"), entry.instruction("y"))
    )
    verify_module(changed)
    assert str(module) == before
    assert [each.name for each in changed.entry] == ["x", "y", "sum", "multiply", "dead", "loop", "f", "after", "out"]
    assert changed.entry.instruction("loop").operands[0].opcode == "multiply"
    assert value(changed) == ((X * Y + 1 - X) * (X + Y)).tolist()
    assert parse_hlo(str(changed)) == changed


def test_what_did_not_change_is_shared() -> None:
    module = parse_hlo(TEXT)
    entry = module.entry
    changed = replace(module, entry.instruction("after"), made("negate", entry.instruction("f")))
    assert changed.computation("inner") is module.computation("inner")
    assert changed.computation("body") is module.computation("body")
    assert all(
        changed.entry.instruction(name) is entry.instruction(name) for name in ("x", "sum", "twice", "loop", "f")
    )
    assert changed.entry.root is not entry.root


def test_callers_follow_a_change_in_a_computation_they_reach() -> None:
    module = parse_hlo(TEXT)
    inner = module.computation("inner")
    root = inner.root
    changed = replace(module, root, made("subtract", *root.operands))
    verify_module(changed)
    assert changed.entry.instruction("f").attributes["calls"] is changed.computation("inner")
    assert changed.computation("body").root.attributes["calls"] is changed.computation("inner")
    assert changed.entry.instruction("loop").attributes["body"] is changed.computation("body")
    assert value(changed) == (((X + Y) * 2 - 1 - X) * (X + Y)).tolist()


def test_the_new_instruction_may_use_the_old_one() -> None:
    module = parse_hlo(TEXT)
    old = module.entry.instruction("sum")
    changed = replace(module, old, made("negate", old))
    verify_module(changed)
    assert changed.entry.instruction("negate").operands[0].name == "sum"
    assert value(changed) == (((X + Y) * -2 + 1 - X) * -(X + Y)).tolist()


def test_a_parameter_can_be_replaced_and_stays() -> None:
    module = parse_hlo(TEXT)
    x = module.entry.instruction("x")
    changed = replace(module, x, made("negate", x))
    assert [each.name for each in changed.entry.parameters] == ["x", "y"]
    assert value(changed) == (((Y - X) * 2 + 1 + X) * (Y - X)).tolist()
    constant = HloInstruction("zeros", "subtract", x.shape, (module.entry.instruction("y"),) * 2)
    without = replace(module, x, constant)
    verify_module(without)
    assert value(without) == (((Y) * 2 + 1) * Y).tolist()


def test_the_root_can_be_replaced_and_an_existing_instruction_can_replace() -> None:
    module = parse_hlo(TEXT)
    changed = replace(module, module.entry.root, module.entry.instruction("sum"))
    assert changed.entry.root.name == "sum"
    assert value(changed) == (X + Y).tolist()
    user = replace(module, module.entry.instruction("twice"), module.entry.instruction("dead"))
    assert user.entry.instruction("loop").operands[0].name == "dead"
    verify_module(user)


def test_names_stay_distinct_and_old_ones_stay() -> None:
    module = parse_hlo(TEXT)
    entry = module.entry
    new = made("negate", made("negate", entry.instruction("x"), name="sum"), name="f")
    changed = replace(module, entry.instruction("twice"), new)
    verify_module(changed)
    assert [each.name for each in changed.entry] == [
        "x",
        "y",
        "sum",
        "sum.1",
        "f.1",
        "dead",
        "loop",
        "f",
        "after",
        "out",
    ]
    assert changed.entry.instruction("loop").operands[0].name == "f.1"


def test_operands_that_come_later_move_forward() -> None:
    text = "ENTRY e { a = f32[4] parameter(0)  b = f32[4] negate(a)  c = f32[4] abs(a)  ROOT r = f32[4] add(b, c) }"
    module = parse_hlo(text)
    entry = module.entry
    changed = replace(module, entry.instruction("b"), made("exponential", entry.instruction("c")))
    assert [each.name for each in changed.entry] == ["a", "c", "exponential", "r"]
    verify_module(changed)


def test_a_replacement_brings_its_computations() -> None:
    module = parse_hlo(TEXT)
    other = clone_computation(module.computation("inner"), "other")
    twice = module.entry.instruction("twice")
    changed = replace(module, twice, made("fusion", module.entry.instruction("sum"), calls=other))
    verify_module(changed)
    assert [each.name for each in changed.computations] == ["other", "inner", "body", "cond", "main"]
    assert value(changed) == ((X + Y + 1 + 1 - X) * (X + Y)).tolist()


def test_several_replacements_in_one_walk() -> None:
    module = parse_hlo(TEXT)
    entry, inner = module.entry, module.computation("inner")
    changed = replace_all(
        module,
        {
            entry.instruction("sum"): made("subtract", entry.instruction("y"), entry.instruction("x")),
            entry.instruction("twice"): made("negate", entry.instruction("x"), name="n"),
            inner.root: made("multiply", *inner.root.operands),
        },
    )
    verify_module(changed)
    assert value(changed) == ((-X - X) * (Y - X)).tolist()
    swapped = replace_all(
        module, {entry.instruction("x"): entry.instruction("y"), entry.instruction("y"): entry.instruction("x")}
    )
    assert value(swapped) == (((X + Y) * 2 + 1 - Y) * (X + Y)).tolist()


def test_control_predecessors_follow() -> None:
    module = parse_hlo(TEXT)
    dead = module.entry.instruction("dead")
    changed = replace(module, dead, made("abs", dead.operands[0]))
    assert changed.entry.instruction("after").attributes["control-predecessors"] == (changed.entry.instruction("abs"),)


def test_edits_that_make_no_sense_are_refused() -> None:
    module = parse_hlo(TEXT)
    entry = module.entry
    with pytest.raises(InvalidHlo, match="can't be replaced by 'w' of"):
        replace(module, entry.instruction("sum"), HloInstruction("w", "parameter", array("f32", 5), parameter_number=0))
    with pytest.raises(InvalidHlo, match="isn't an instruction of module"):
        replace(module, made("negate", entry.instruction("x")), entry.instruction("x"))
    with pytest.raises(InvalidHlo, match="depend on itself"):
        replace(module, entry.instruction("sum"), made("negate", entry.instruction("after")))
    with pytest.raises(InvalidHlo, match="is a parameter"):
        extract(module, entry.instruction("x"))


def test_prune_drops_what_nothing_needs() -> None:
    text = TEXT.replace(", control-predecessors={dead}", "").replace(
        "ENTRY", "unused { p = f32[] parameter(0) }\n\nENTRY"
    )
    module = parse_hlo(text)
    small = prune(module)
    verify_module(small)
    assert [each.name for each in small.computations] == ["inner", "body", "cond", "main"]
    assert "dead" not in [each.name for each in small.entry]
    assert len(small.entry) == len(module.entry) - 1
    assert value(small) == value(module)
    assert prune(small) == small
    kept = prune(parse_hlo(TEXT))
    assert "dead" in [each.name for each in kept.entry]  # a control predecessor is needed


def test_prune_keeps_effects_and_parameters() -> None:
    text = (
        "ENTRY e { a = f32[2] parameter(0)  b = f32[2] parameter(1)\n"
        '  c = f32[2] custom-call(a), custom_call_target="log"  ROOT r = f32[] constant(1) }'
    )
    module = parse_hlo(text)
    assert prune(module) == module


def test_a_clone_is_equal_and_nothing_is_shared() -> None:
    module = parse_hlo(TEXT)
    copy = clone(module)
    assert copy == module
    assert not set(copy.computations) & set(module.computations)
    assert not set(copy.instructions()) & set(module.instructions())
    renamed = clone(module, "other", lambda name: f"{name}.clone")
    verify_module(renamed)
    assert renamed.name == "other"
    assert renamed.entry.name == "main.clone"
    assert renamed.entry.root.name == "out.clone"
    assert renamed.entry.instruction("f.clone").attributes["calls"] is renamed.computation("inner.clone")
    assert value(renamed) == value(module)
    assert parse_hlo(str(renamed)) == renamed


def test_an_extracted_instruction_computes_the_same_from_its_operands() -> None:
    module = parse_hlo(TEXT)
    loop = extract(module, module.entry.instruction("loop"))
    verify_module(loop)
    assert [each.name for each in loop.computations] == ["cond", "inner", "body", "main"]
    assert [each.name for each in loop.entry] == ["twice", "loop"]
    twice = extract(module, module.entry.instruction("twice"))
    assert str(twice.entry.root.operands) == str((twice.entry.parameters[0],) * 2)
    assert np.asarray(evaluate(twice, X)[0]).tolist() == (X + X).tolist()
    alone = extract(module, module.computation("inner"))
    verify_module(alone)
    assert alone.entry.name == "inner"
    assert np.asarray(evaluate(alone, X)[0]).tolist() == (X + 1).tolist()


def test_constants_can_stay_constants() -> None:
    module = parse_hlo(
        "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }\n"
        "ENTRY e { x = f32[4] parameter(0)  z = f32[] constant(3)\n"
        "  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add }"
    )
    assert len(extract(module, module.entry.root).entry.parameters) == 2
    kept = extract(module, module.entry.root, keep_constants=True)
    assert len(kept.entry.parameters) == 1
    assert float(np.asarray(evaluate(kept, X)[0])) == 13.0


def chain(length: int) -> HloModule:
    lines = ["  v0 = f32[2] parameter(0)"]
    lines += [f"  v{i} = f32[2] negate(v{i - 1})" for i in range(1, length)]
    return parse_hlo("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n")


def calls_in(work: Callable[[], object]) -> int:
    """How many Python and C functions `work` calls."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


WORK: dict[str, Callable[[HloModule], object]] = {
    "parse": lambda module: parse_hlo(str(module)),
    "verify": verify_module,
    "replace": lambda module: replace(module, module.entry.instruction("v1"), made("abs", module.entry.parameters[0])),
    "clone": clone,
    "prune": prune,
    "fingerprint": fingerprint,
    "statistics": statistics,
}


@pytest.mark.parametrize("name", WORK)
def test_work_grows_with_the_module_not_with_its_square(name: str) -> None:
    small, large = chain(500), chain(2000)
    assert calls_in(lambda: WORK[name](large)) < 5 * calls_in(lambda: WORK[name](small))


@pytest.mark.slow
def test_twenty_thousand_instructions() -> None:
    module = chain(20_000)
    verify_module(module)
    changed = replace(module, module.entry.instruction("v1"), made("abs", module.entry.parameters[0]))
    assert len(changed.entry) == 20_000
    assert changed.entry.root is not module.entry.root
    assert parse_hlo(str(clone(changed))) == changed


@settings(max_examples=40)
@given(st.data())
def test_replacing_an_instruction_by_what_computes_the_same_changes_no_value(data: st.DataObject) -> None:
    """x becomes -(-x), somewhere in a random graph."""
    count = data.draw(st.integers(1, 8))
    lines = ["x = f32[4] parameter(0)", "y = f32[4] parameter(1)"]
    names = ["x", "y"]
    for index in range(count):
        opcode = data.draw(st.sampled_from(["add", "subtract", "maximum"]))
        a, b = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
        lines.append(f"v{index} = f32[4] {opcode}({a}, {b})")
        names.append(f"v{index}")
    module = parse_hlo("ENTRY e {\n" + "\n".join(lines) + "\n}")
    old = module.entry.instruction(data.draw(st.sampled_from(names)))
    changed = replace(module, old, made("negate", made("negate", old)))
    verify_module(changed)
    assert value(changed) == value(module)
    assert value(prune(changed)) == value(module)
