"""`reduce` keeps the failure and loses the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_fusions import random_fusion

from warpsmith.cli import main
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shrink import candidates, shrink, weight
from warpsmith.hlo.verifier import verify_module
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes import licm, manager
from warpsmith.report.reduction import reduce


def chain(count: int) -> str:
    """A module of `count` ops of which one is a tanh and one, far from it, a maximum of the tanh's result."""
    lines = ["x = f32[40,24] parameter(0)", "y = f32[40,24] parameter(1)", "v0 = f32[40,24] add(x, y)"]
    cycle = ("multiply", "add", "subtract")
    for i in range(1, count):
        op = {count // 3: "tanh(v%d)", 2 * count // 3: "maximum(v%d, y)"}.get(i, f"{cycle[i % 3]}(v%d, x)")
        lines.append(f"v{i} = f32[40,24] {op % (i - 1)}")
    lines[-1] = f"ROOT {lines[-1]}"
    return "HloModule chain\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def has(*opcodes: str) -> Callable[[HloModule], bool]:
    return lambda module: set(opcodes) <= {each.opcode for each in module.instructions()}


def test_two_ops_far_apart_are_all_that_stays() -> None:
    small = shrink(parse_hlo(chain(30)), has("tanh", "maximum"))
    verify_module(small)
    assert weight(small) < (3, 10)
    assert has("tanh", "maximum")(small)


FORMS = {
    "fusion": (
        """HloModule m
f {
  a = f32[16,8] parameter(0)
  b = f32[16,8] parameter(1)
  c = f32[16,8] add(a, b)
  d = f32[16,8] sine(c)
  ROOT r = f32[8,16] transpose(d), dimensions={1,0}
}
ENTRY e {
  x = f32[16,8] parameter(0)
  n = f32[16,8] negate(x)
  ROOT f = f32[8,16] fusion(n, x), kind=kInput, calls=f
}""",
        "sine",
        1,
    ),
    "while": (
        """HloModule m
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[4] cosine(v)
  ROOT t = (s32[], f32[4]) tuple(next, w)
}
cond {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(10)
  ROOT c = pred[] compare(i, ten), direction=LT
}
ENTRY e {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[4]) tuple(zero, x)
  ROOT l = (s32[], f32[4]) while(start), condition=cond, body=body
}""",
        "cosine",
        1,
    ),
    "reducer": (
        """HloModule m
mix {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
  d = f32[] negate(c)
  ROOT e = f32[] maximum(d, b)
}
ENTRY e {
  x = f32[16,8] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[8] reduce(x, zero), dimensions={0}, to_apply=mix
}""",
        "reduce",
        1,
    ),
    "tuple": (
        """HloModule m
ENTRY e {
  x = f32[16] parameter(0)
  a = f32[16] negate(x)
  b = f32[16] exponential(x)
  c = f32[16] floor(x)
  ROOT t = (f32[16], f32[16], f32[16]) tuple(a, b, c)
}""",
        "exponential",
        1,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_structure_around_the_op_goes(name: str) -> None:
    text, opcode, most = FORMS[name]
    small = shrink(parse_hlo(text), has(opcode))
    verify_module(small)
    assert weight(small)[0] <= most
    assert has(opcode)(small)


def test_extents_shrink_with_what_depends_on_them() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[1000,64] parameter(0)
  r = f32[64000] reshape(x)
  ROOT s = f32[500] slice(r), slice={[0:1000:2]}
}"""
    small = shrink(parse_hlo(text), has("reshape", "slice"))
    verify_module(small)
    assert weight(small) < (3, 100)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_candidates_of_random_fusions_are_smaller_and_valid(seed: int) -> None:
    module = parse_hlo(random_fusion(Random(seed)).text)
    size = weight(module)
    for i, candidate in zip(range(40), candidates(module), strict=False):
        assert weight(candidate) < size, i
        verify_module(candidate)
        assert parse_hlo(str(candidate)) == candidate


# ------------------------------------------------------------------------------------------------------ real failures
@pytest.fixture
def maximum_is_wrong(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pass that takes the left operand of every maximum."""
    right = licm.run

    def run(module: Operation) -> None:
        right(module)
        for op in list(module.walk()):
            if op.name == "arith.maximumf":
                op.set_operand(1, op.operands[0])

    monkeypatch.setattr(licm, "run", run)
    manager.lookup.cache_clear()
    yield
    manager.lookup.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("maximum_is_wrong")
@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_a_miscompiled_module_of_thirty_ops_ends_as_the_op_alone(target: str) -> None:
    found = reduce(parse_hlo(chain(30)), target=target)
    assert found is not None
    assert found.failure == "wrong"
    assert (found.before, found.after) == (30, 1)
    assert has("maximum")(found.module)


def test_a_module_that_holds_is_not_reduced() -> None:
    assert reduce(parse_hlo(chain(5)), "wrong") is None


@pytest.mark.usefixtures("maximum_is_wrong")
def test_the_command_writes_the_module_and_a_repro(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out, repro = tmp_path / "m.hlo", tmp_path / "small.hlo", tmp_path / "r.zip"
    file.write_text(chain(12))
    assert main(["reduce", str(file), "--failure", "wrong", "-o", str(out), "--save-repro", str(repro)]) == 1
    assert "12 instructions became 1" in capsys.readouterr().err
    assert has("maximum")(parse_hlo(out.read_text()))
    assert repro.stat().st_size > 0


def test_a_command_of_the_users_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(chain(6))
    script = tmp_path / "ask.py"
    script.write_text("import sys\nsys.exit('tanh(' not in open(sys.argv[1]).read())\n")
    status = main(["reduce", str(file), "--question", f"{sys.executable} {script}", "--limit", "40"])
    assert status == 1
    module = parse_hlo(capsys.readouterr().out)
    assert weight(module)[0] == 1


def test_a_module_that_does_not_fail_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(chain(4))
    assert main(["reduce", str(file), "--failure", "wrong"]) == 0
    assert "doesn't fail" in capsys.readouterr().err
