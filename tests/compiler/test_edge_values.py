"""What kernels give at the edges: every family of edge values on the CPU and, through PTX, in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from oracle.edge_cases import FAMILIES, Batch
from oracle.edge_groups import Group, groups

import warpsmith as ws
from warpsmith.dtypes import by_name


@cache
def _batches(family: str) -> Sequence[Batch]:
    return list(FAMILIES[family]())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cpu_keeps_the_contract(family: str) -> None:
    """If this failed, the CPU's code would give other bits than exact arithmetic, or be beyond an op's bound."""
    wrong: list[str] = []
    for group in groups(_batches(family)):
        executable = ws.compile(ws.parse_hlo(group.text()), target="cpu")
        assert executable.kernels, group.id
        wrong += group.wrong(executable(*(array for _, array in group.operands)))
    assert not wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_ptx_keeps_the_contract(family: str) -> None:
    """If this failed, a GPU's code would give other bits than exact arithmetic, or be beyond an op's bound."""
    wrong: list[str] = []
    for group in groups(_batches(family)):
        run = ws.simulate(ws.parse_hlo(group.text()), *(array for _, array in group.operands), target="sm_90")
        assert not run.findings, (group.id, run.findings[0])
        assert run.counters, group.id
        wrong += group.wrong(run.outputs)
    assert not wrong


def test_every_batch_is_in_a_group() -> None:
    """If this failed, a type or an op would be held by the interpreter's test alone."""
    for family in FAMILIES:
        batches = _batches(family)
        assert sorted(b.id for g in groups(batches) for b in g.batches) == sorted(b.id for b in batches)


def test_a_wrong_result_is_found() -> None:
    """If this failed, the tests above would pass whatever kernels give."""
    batches = [b for b in _batches("float unary") if b.id in ("tanh-f32", "floor-f32")]
    (group,) = groups(batches)
    right = [np.resize(batch.expected, group.length) for batch in group.batches]
    assert not group.wrong(right)
    for place, batch in enumerate(group.batches):
        allowed = 4 if batch.opcode == "tanh" else 0
        moved = right[place].copy()
        one = int(np.flatnonzero(moved == 1.0)[0])
        moved[one] = _next(moved[one], allowed)
        assert not group.wrong([moved if i == place else each for i, each in enumerate(right)])
        moved[one] = _next(moved[one], 1)
        assert len(group.wrong([moved if i == place else each for i, each in enumerate(right)])) == 1
    zero = right[0].copy()
    zero[np.flatnonzero((zero == 0) & ~np.signbit(zero))[0]] = -0.0
    assert group.wrong([zero, *right[1:]])


def _next(value: np.float32, steps: int) -> np.float32:
    return (np.array([value]).view(np.int32) + np.int32(steps)).view(by_name("f32").numpy)[0]


def test_a_group_reads_an_array_once() -> None:
    """If this failed, a kernel of many ops on one array would have an argument for each."""
    batches = [b for b in _batches("float unary") if b.sources[0].name == "f32"]
    group = Group(batches[:5], len(batches[0].expected))
    assert len(group.operands) == 1
