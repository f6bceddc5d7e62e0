"""`bisect` names the pass that a test broke, in each of the ways in which a pass can be broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from warpsmith.cli import main
from warpsmith.compiler.bisection import bisect
from warpsmith.compiler.generated import random_inputs
from warpsmith.errors import ArgumentMismatch, PassFailed
from warpsmith.hlo import parse_hlo
from warpsmith.hlo.module import HloModule
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import INDEX
from warpsmith.ir.dialects import arith
from warpsmith.passes import cse, erase_dead_functions, expand_math, flatten_tensors, licm, manager

CHAIN = """HloModule chain

ENTRY e {
  x = f32[64,48] parameter(0)
  y = f32[64,48] parameter(1)
  sum = f32[64,48] add(x, y)
  ROOT root = f32[64,48] multiply(sum, x)
}
"""
TANH = "HloModule t\nENTRY e { x = f32[300] parameter(0) ROOT t = f32[300] tanh(x) }"
TWO_KERNELS = """HloModule two

ENTRY e {
  x = f32[32,32] parameter(0)
  turned = f32[32,32] transpose(x), dimensions={1,0}
  order = f32[32,32] sort(turned), dimensions={1}, to_apply=less
  ROOT twice = f32[32,32] add(order, order)
}
"""
LESS = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n"

Break = Callable[[Operation], None]


@pytest.fixture(autouse=True)
def passes_are_looked_up_anew() -> Iterator[None]:
    manager.lookup.cache_clear()
    yield
    manager.lookup.cache_clear()


def broken(monkeypatch: pytest.MonkeyPatch, module: object, damage: Break) -> None:
    """The pass in `module` also does `damage`, each time it runs."""
    right: Callable[[Operation], None] = vars(module)["run"]

    def run(ir: Operation) -> None:
        right(ir)
        damage(ir)

    monkeypatch.setattr(module, "run", run)
    manager.lookup.cache_clear()


def first(ir: Operation, name: str) -> Operation:
    return next(op for op in ir.walk() if op.name == name)


def add_twice_the_same(ir: Operation) -> None:
    op = first(ir, "arith.addf")
    op.set_operand(1, op.operands[0])


def blame(module: HloModule, target: str = "sm_90") -> tuple[str, str]:
    culprit = bisect(module, *random_inputs(module), target=target).culprit
    assert culprit is not None
    return culprit.step, culprit.what


def test_too_few_arrays_are_refused() -> None:
    module = parse_hlo(
        "ENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] parameter(1)\n  ROOT z = f32[4] add(x, y)\n}\n"
    )
    with pytest.raises(ArgumentMismatch, match="takes 2 arrays and was given 1"):
        bisect(module, np.ones(4, np.float32))


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
def test_right_passes_are_not_blamed(target: str) -> None:
    for text in (CHAIN, TANH, TWO_KERNELS.replace("ENTRY", LESS + "ENTRY")):
        module = parse_hlo(text)
        found = bisect(module, *random_inputs(module), target=target)
        assert found.culprit is None
        assert all(ran > 5 for _, ran in found.steps)


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
def test_a_pass_that_changes_values_is_named_with_elements_and_its_change(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, licm, add_twice_the_same)
    module = parse_hlo(CHAIN)
    culprit = bisect(module, *random_inputs(module), target=target).culprit
    assert culprit is not None
    assert (culprit.step, culprit.what, culprit.contract) == ("licm", "values", "bit-exact")
    assert 0 < culprit.wrong <= culprit.elements == 64 * 48
    assert culprit.examples[0].before == culprit.examples[0].reference != culprit.examples[0].after
    changed = [line for line in culprit.diff.splitlines() if "arith.addf" in line]
    assert [line[0] for line in changed] == ["-", "+"]


def test_an_access_out_of_bounds_is_an_access(monkeypatch: pytest.MonkeyPatch) -> None:
    def beyond(ir: Operation) -> None:
        op = first(ir, "tensor.extract")
        builder = Builder.before(op)
        op.set_operand(1, arith.binary(builder, "addi", op.operands[1], arith.constant(builder, 1 << 20, INDEX)))

    broken(monkeypatch, flatten_tensors, beyond)
    assert blame(parse_hlo(CHAIN)) == ("flatten-tensors", "access")


def test_a_pass_that_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Operation) -> None:
        raise PassFailed("no form for this")

    broken(monkeypatch, cse, fail)
    assert blame(parse_hlo(CHAIN)) == ("cse", "raised")


def test_ir_that_does_not_verify_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop_the_end(ir: Operation) -> None:
        last = [op for op in ir.walk() if op.name == "func.return"][-1]
        last.erase()

    broken(monkeypatch, erase_dead_functions, drop_the_end)
    assert blame(parse_hlo(CHAIN)) == ("erase-dead-functions", "invalid IR")


def test_an_expansion_may_differ_within_its_bound_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_hlo(TANH)
    assert bisect(module, *random_inputs(module)).culprit is None

    def square(ir: Operation) -> None:
        for op in ir.walk():
            if op.name == "arith.mulf":
                op.set_operand(1, op.operands[0])

    broken(monkeypatch, expand_math, square)
    assert blame(module) == ("expand-math", "values")


def test_the_kernel_after_a_host_step_gets_the_values_that_the_host_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, licm, add_nothing)
    module = parse_hlo(TWO_KERNELS.replace("ENTRY", LESS + "ENTRY"))
    inputs = [np.arange(1024, dtype=np.float32)[::-1].reshape(32, 32).copy()]
    culprit = bisect(module, *inputs).culprit
    assert culprit is not None
    assert (culprit.kernel, culprit.step) == ("twice", "licm")
    # The first row after the sort is 31, 63, ...: twice that is what the kernel should give.
    assert culprit.examples[0].reference == "62.0"


def add_nothing(ir: Operation) -> None:
    for op in list(ir.walk()):
        if op.name == "arith.addf":
            op.set_operand(1, arith.constant(Builder.before(op), 0.0, op.operands[0].type))


def test_the_command_prints_the_culprit_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "chain.hlo"
    file.write_text(CHAIN)
    assert main(["bisect", str(file)]) == 0
    assert "no step changed a result" in capsys.readouterr().out
    broken(monkeypatch, licm, add_twice_the_same)
    assert main(["bisect", str(file)]) == 1
    out = capsys.readouterr().out
    assert ", licm, changes the result" in out
    assert "--- before licm" in out
    assert main(["bisect", str(file), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["culprit"]["step"] == "licm"


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
def test_empty_and_complex_results_are_compared(target: str) -> None:
    for text in (
        "HloModule m\nENTRY e { x = f32[8,0] parameter(0) ROOT r = f32[8,0] add(x, x) }",
        "HloModule m\nENTRY e { x = c64[9] parameter(0) ROOT r = c64[9] add(x, x) }",
    ):
        module = parse_hlo(text)
        assert bisect(module, *random_inputs(module), target=target).culprit is None
