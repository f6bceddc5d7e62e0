"""Every op in every element type is supported and right, or refused in words.

A sample; bench/support_table.py takes all.
"""

from __future__ import annotations

import oracle.support as support
import pytest
from differential import check_passes
from fusion_corpus import Case
from oracle.support import Support, SupportCase, check, support_cases, support_table

from warpsmith.dtypes import BY_NAME
from warpsmith.emitters.elemental import HANDLERS

_CASES = list(support_cases())
_SAMPLE = _CASES[7::41]  # 41 shares no factor with the number of types, so all of these come up
_NARROW = [
    SupportCase(case.opcode, case.dtype, case.text, case.profile)
    for case in support_cases(["add", "convert to f32", "reverse"], ["s2", "u4", "f4e2m1fn", "f8e4m3fn", "f8e8m0fnu"])
]


def _name(case: SupportCase) -> str:
    return f"{case.opcode}-{case.dtype}".replace(" ", "_")


def test_every_opcode_and_type_has_cases() -> None:
    """Nothing that an emitter takes is left out of the table."""
    opcodes = {case.opcode.split(" ")[0] for case in _CASES}
    assert set(HANDLERS) - {"get-tuple-element"} <= opcodes
    assert {case.dtype.name for case in _CASES} == {name for name, row in BY_NAME.items() if row.is_array_element}
    assert {case.dtype for case in _SAMPLE} == {case.dtype for case in _CASES}


@pytest.mark.parametrize("case", [*_SAMPLE, *_NARROW], ids=_name)
def test_it_is_right_or_refused_in_words(case: SupportCase) -> None:
    row = check(case)
    assert not row.wrong, row.wrong
    for target, reason in row.refused.items():
        assert len(reason) > 20, f"{target} refuses and doesn't say why: {reason!r}"


_STEPS = {
    "add": "f8e4m3fn",
    "tanh": "f8e5m2",
    "convert to f8e3m4": "f64",
    "convert to f8e8m0fnu": "s64",
    "remainder": "f32",
    "exponential": "f64",
    "sine": "c64",
    "mulhi": "s32",
    "shift-left": "u64",
    "pad": "bf16",
}


@pytest.mark.parametrize("target", support.TARGETS)
@pytest.mark.parametrize("opcode", _STEPS)
def test_kernels_compute_the_same_after_every_pass(opcode: str, target: str) -> None:
    (case,) = support_cases([opcode], [_STEPS[opcode]])
    counts = check_passes(Case(_name(case), case.text, case.profile), target)
    assert counts.simulated > 5


def test_the_table_has_a_row_for_each_case() -> None:
    rows = support_table(["tanh", "and"], ["f32", "s8"])
    marks = {(row.opcode, row.dtype.name): row.mark("cpu") for row in rows}
    assert marks["tanh", "f32"] == "yes"
    assert marks["and", "s8"] == "yes"
    assert marks["tanh", "s8"] in ("no", "")
    assert marks["and", "f32"] in ("no", "")


def test_a_refusal_is_kept_with_its_reason() -> None:
    row = Support("sort", BY_NAME["f32"], refused={"cpu": "no emitter takes 'sort'"})
    assert row.mark("cpu") == "no"
    assert row.mark("sm_90") == "yes"
    assert Support("sort", BY_NAME["f32"], absent="no such op").mark("cpu") == ""


def test_a_wrong_result_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case whose kernel computes something else than the reference: the comparison must notice, on both targets."""
    (case,) = support_cases(["negate"], ["s32"])
    (other,) = support_cases(["not"], ["s32"])
    real = support.compile
    monkeypatch.setattr(support, "compile", lambda _, target, **options: real(other.module(), target, **options))
    for target in support.TARGETS:
        assert "37 of 37 elements differ" in check(case, [target]).wrong
