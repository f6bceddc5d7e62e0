"""What passes are told of the processor that a module is for."""

from __future__ import annotations

import pytest

from warpsmith.ir.core.types import BF16, F16
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.support.capabilities import capabilities

MODULE = 'func.func @f() attributes {{warpsmith.target = "{}"}} {{\n  return\n}}\n'


@pytest.mark.parametrize(
    ("target", "compute", "arithmetic", "lanes"),
    [
        ("sm_80", 80, {F16}, 32),
        ("sm_90a", 90, {F16, BF16}, 32),
        ("h200", 90, {F16, BF16}, 32),
        ("cpu", 0, set(), 1),
        ("sm_75", 75, {F16}, 32),  # no device file
        ("sm_103", 103, {F16, BF16}, 32),
    ],
)
def test_a_device_is_asked_by_any_of_its_names(target: str, compute: int, arithmetic: set[object], lanes: int) -> None:
    """If this failed, a GPU called by its own name would be taken for one without instructions."""
    can = capabilities(parse_module(MODULE.format(target)))
    assert (can.compute_capability, can.arithmetic, can.warp_size) == (compute, arithmetic, lanes)


def test_a_module_without_a_target_has_no_instructions_of_its_own() -> None:
    """If this failed, IR written by hand would be lowered for a processor that nobody named."""
    can = capabilities(parse_module("func.func @f() {\n  return\n}\n"))
    assert (can.target, can.arithmetic, can.library) == ("", frozenset(), "")
    assert not can.has_instruction("nvgpu.mma.sync")
