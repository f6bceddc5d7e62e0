"""What XLA:GPU's own pipeline makes of real programs is read, verified and printed back byte for byte."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from warpsmith.hlo import HloModule, parse_hlo, verify_module
from warpsmith.hlo.edit import extract
from warpsmith.hlo.module import HloComputation
from warpsmith.hlo.query import find

FILES = sorted((Path(__file__).parent / "gpu_hlo").glob("*.hlo"))

OPAQUE = {
    "__cublas$lt$matmul",
    "__cublas$triangularSolve",
    "__cudnn$convBackwardFilter",
    "__cudnn$convBackwardInput",
    "__cudnn$convForward",
    "cu_lu_pivots_to_permutation",
    "cusolver_geqrf_ffi",
    "cusolver_getrf_ffi",
    "cusolver_orgqr_ffi",
    "cusolver_potrf_ffi",
    "cusolver_syevd_ffi",
}
"""Custom calls into libraries: their text is kept, and nothing is known of what they compute."""


@lru_cache(maxsize=64)
def _module(path: Path) -> HloModule:
    return parse_hlo(path.read_text(encoding="utf-8"), path.name)


def test_at_least_thirty_programs() -> None:
    assert len(FILES) >= 30
    opcodes = Counter(i.opcode for path in FILES for i in _module(path).instructions())
    assert len(opcodes) >= 60
    assert {"fusion", "while", "conditional", "sort", "scatter", "custom-call", "reduce-window"} < set(opcodes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_read_verified_and_printed_back(path: Path) -> None:
    module = _module(path)
    verify_module(module)
    assert str(module) == path.read_text(encoding="utf-8")
    assert parse_hlo(str(module)) == module


def test_opaque_custom_calls_are_those_that_are_named() -> None:
    """No new one, and no row that nothing needs."""
    found = {str(c.attributes["custom_call_target"]) for path in FILES for c in find(_module(path), "custom-call")}
    assert found == OPAQUE


def test_fusions_have_kinds_and_can_be_extracted() -> None:
    """Each of XLA's own fusions is a module of its own once it is cut out."""
    kinds: Counter[str] = Counter()
    for path in FILES:
        module = _module(path)
        for fusion in find(module, "fusion"):
            kinds[str(fusion.attributes["kind"])] += 1
            alone = extract(module, fusion)
            verify_module(alone)
            (copied,) = find(alone, "fusion")
            body = copied.attr("calls", HloComputation)
            assert len(body.instructions) == len(fusion.attr("calls", HloComputation).instructions)
    assert kinds.total() > 150
    assert {"kLoop", "kInput", "kCustom"} <= set(kinds)
