"""What the tests of the hero emitters share: rows measured with XLA, small fusions as cases, PTX and its assembler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from differential import fusion_of
from fusion_corpus import REDUCERS, Case

from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.backends.nvptx.ptxas import Cubin, assemble
from warpsmith.compiler import lower_fusion
from warpsmith.devices import device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.fusion import FusionAnalysis, analyze
from warpsmith.hlo.module import HloComputation
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.ir.core.verifier import verify
from warpsmith.numerics.inputs import Profile

__all__ = ["analysis_of", "assembled", "body", "case", "emitted", "ids_of", "launched", "rows", "rows_of"]

_MORE_REDUCERS = """
overwrite { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }
mul_c64 { a = c64[] parameter(0)  b = c64[] parameter(1)  ROOT r = c64[] multiply(a, b) }
add_s4 { a = s4[] parameter(0)  b = s4[] parameter(1)  ROOT r = s4[] add(a, b) }
take_away { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] subtract(a, b) }
largest {
  a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(i, j), direction=LT  t = pred[] and(e, l)  k = pred[] or(g, t)
  m = f32[] select(k, a, b)  n = s32[] select(k, i, j)
  ROOT r = (f32[], s32[]) tuple(m, n)
}
"""
_ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "hlo" / "cases" / "launch.json").read_text())


def rows() -> list[dict[str, Any]]:
    """All measured rows."""
    return _ROWS


def rows_of(emitter: str, *variants: str) -> list[dict[str, Any]]:
    """The measured rows of an emitter (of some of its variants)."""
    return [row for row in _ROWS if row["emitter"] == emitter and (not variants or row["variant"] in variants)]


def ids_of(row: dict[str, Any]) -> str:
    return str(row["name"])


def launched(row: dict[str, Any]) -> tuple[dict[str, Any], EmittedKernel]:
    """What we launch for a row's fusion, in the row's words (IR verified), and the kernel."""
    kernel = emit(fusion_of(parse_hlo(row["hlo"])), device("H200"))
    verify(kernel.module)
    found = {
        "emitter": kernel.origin.emitter,
        "variant": kernel.origin.variant,
        "grid": list(kernel.launch.grid),
        "block": list(kernel.launch.block),
        "factor": kernel.launch.unroll,
        "shared_bytes": kernel.launch.shared_bytes,
    }
    return found, kernel


def body(text: str) -> str:
    """A module whose last computation is the fusion's body, given line by line."""
    lines = "\n".join("  " + line.strip() for line in text.strip().splitlines())
    return f"HloModule m\n{REDUCERS}{_MORE_REDUCERS}\nfused {{\n{lines}\n}}"


def case(name: str, text: str, profile: Profile = Profile.MIXTURE, indices: tuple[tuple[int, int], ...] = ()) -> Case:
    """A fusion body as a case of the differential tests."""
    return Case(name, body(text), profile, indices)


def emitted(text: str, target: str = "sm_90") -> EmittedKernel:
    """The kernel of a fusion body, its IR verified."""
    kernel = emit(fusion_of(parse_hlo(body(text))), device(target))
    verify(kernel.module)
    return kernel


def analysis_of(text: str, target: str = "sm_90") -> FusionAnalysis:
    """The analysis of a fusion body."""
    fusion = fusion_of(parse_hlo(body(text)))
    return analyze(fusion.attr("calls", HloComputation), device(target), fusion.name)


def assembled(text: str, target: str) -> tuple[str, Cubin]:
    """PTX of a fusion body, and what ptxas makes of it."""
    machine = device(target)
    lowered = lower_fusion(fusion_of(parse_hlo(body(text))), machine)
    ptx = ptx_from_llvm(lowered.code, machine.architecture)
    return ptx, assemble(ptx, machine.architecture)
